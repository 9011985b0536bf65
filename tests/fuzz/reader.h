/* SPDX-License-Identifier: MIT */
/* A reader on the loop of peer.h, which decodes what the peer sends. */
#pragma once

#include "peer.h"
#include "servers/backend.h"
#include "servers/configuration.h"
#include "servers/server.h"

struct reader_process {
        struct reader_server *server;
};

static void on_reader_end(void *userdata _unused_)
{
        fuzz_check(false);
}

static int reader_start(struct reader_starter *starter _unused_,
                        const struct reader_configuration *configuration _unused_,
                        void (*ended)(const char *how, void *userdata) _unused_, void *userdata _unused_,
                        struct reader_process **ret, int *ret_fd)
{
        static const struct reader_server_ops ops = {.backend = &redis_backend, .on_end = on_reader_end};
        struct reader_process *process = calloc(1, sizeof(*process));
        int fds[2];

        fuzz_check(process && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) == 0);
        fuzz_check(reader_server_new(event, fds[1], &ops, NULL, &process->server) == 0);
        *ret = process;
        *ret_fd = fds[0];
        return 0;
}

static void reader_stop(struct reader_process *process)
{
        reader_server_free(process->server);
        free(process);
}

static struct reader *reader_make(const struct redis_settings *settings, unsigned framework)
{
        static struct reader_starter starter = {.start = reader_start, .stop = reader_stop};
        struct reader_configuration configuration;
        struct reader *reader;

        fuzz_check(reader_configuration_make(settings, NULL, framework, &configuration) == 0);
        fuzz_check(reader_new(event, &starter, &configuration, NULL, NULL, &reader) == 0);
        return reader;
}

/* Checks that the reader has sent nothing that sqmgr refuses, whatever the server sent. */
static void reader_end(struct reader *reader)
{
        fuzz_check(!reader || reader_refusals(reader) == 0);
        reader_free(reader);
}
