/* SPDX-License-Identifier: MIT */
/* Readers that run on the loop of the test, over the same sockets as a process of their own. */
#pragma once

#include "base/fd.h"
#include "loop.h"
#include "servers/backend.h"
#include "servers/configuration.h"
#include "servers/server.h"
#include <sys/socket.h>

struct reader_process {
        struct reader_server *server;
        void (*ended)(const char *how, void *userdata);
        void *userdata;
};

static unsigned local_readers; /* running */
static const struct reader_backend *local_backend = &redis_backend;

static inline void local_reader_end(void *userdata)
{
        struct reader_process *process = userdata;

        process->ended("has left", process->userdata);
}

static inline int local_reader_start(struct reader_starter *starter _unused_,
                                     const struct reader_configuration *configuration _unused_,
                                     void (*ended)(const char *how, void *userdata), void *userdata,
                                     struct reader_process **ret, int *ret_fd)
{
        static struct reader_server_ops ops = {.on_end = local_reader_end};
        struct reader_process *process = calloc(1, sizeof(*process));
        int fds[2];

        ck_assert_ptr_nonnull(process);
        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        ops.backend = local_backend;
        *process = (struct reader_process){.ended = ended, .userdata = userdata};
        ck_assert_int_eq(reader_server_new(event, fds[1], &ops, process, &process->server), 0);
        local_readers++;
        *ret = process;
        *ret_fd = fds[0];
        return 0;
}

static inline void local_reader_stop(struct reader_process *process)
{
        reader_server_free(process->server);
        free(process);
        local_readers--;
}

static struct reader_starter local_starter = {.start = local_reader_start, .stop = local_reader_stop};

/* A reader for the server of the settings. */
static inline struct reader *local_reader_new(const struct redis_settings *settings, const char *url,
                                              unsigned framework, reader_state_fn on_state, void *userdata)
{
        struct reader_configuration configuration;
        struct reader *reader;

        ck_assert_int_eq(reader_configuration_make(settings, url, framework, &configuration), 0);
        ck_assert_int_eq(reader_new(event, &local_starter, &configuration, on_state, userdata, &reader), 0);
        return reader;
}

/* The same, once it is connected. */
static inline struct reader *local_reader_up(const struct redis_settings *settings, unsigned framework)
{
        struct reader *reader = local_reader_new(settings, NULL, framework, NULL, NULL);

        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        return reader;
}
