/* SPDX-License-Identifier: MIT */
/* A reader: answers the queries of sqmgr (queries/query.h) with what one server says, through a backend
 * (reader/backend.h). Runs as a process of its own (reader/run.h), or in a test on the test's loop. */
#pragma once

#include "queries/answer.h"
#include <systemd/sd-event.h>

struct reader_backend; /* reader/backend.h */
struct reader_server;

struct reader_server_ops {
        const struct reader_backend *backend;
        /* sqmgr has closed its end, or broken the protocol. May free the server, unless that is about to be
         * freed. */
        void (*on_end)(void *userdata);
};

/* fd: the reader's end of the socket, which is taken also on failure. ops must stay valid. Returns 0 with
 * *ret, to be freed by reader_server_free(); or -errno. */
int reader_server_new(sd_event *event, int fd, const struct reader_server_ops *ops, void *userdata,
                      struct reader_server **ret);
/* Returns NULL. */
struct reader_server *reader_server_free(struct reader_server *server);

/* For the backend: */
sd_event *reader_server_event(const struct reader_server *server);
/* Sends sqmgr the state of the connection. Call from the loop, as the last call: the server may be freed
 * within it. */
void reader_server_report(struct reader_server *server, const struct reader_report *report);
/* Sends a message, and frees the bytes of the writer. After a failure the reader ends at the next message or
 * report. */
void reader_server_send(struct reader_server *server, struct codec_writer *writer);
