/* SPDX-License-Identifier: MIT */
/* A reader: answers the queries of sqmgr (queries/query.h) with what one server says. Runs as a process of
 * its own (reader/main.c), or in a test on the test's loop. */
#pragma once

#include <systemd/sd-event.h>

struct reader_server;

/* Starts the work of a query; see reader/ask.h. */
struct ask;
typedef void (*ask_fn)(struct ask *ask);

/* The queries that a reader of Redis answers, by enum query_kind; NULL: it does not. */
extern const ask_fn reader_asks[];

struct reader_server_ops {
        const ask_fn *asks;
        /* sqmgr has closed its end, or broken the protocol. */
        void (*on_end)(void *userdata);
        /* The configuration was read, and the files in it were loaded: nothing but the network is needed from
         * now on. Returns 0 or -errno, which refuses the configuration. NULL: nothing is done. */
        int (*on_configured)(void *userdata);
};

/* fd: the reader's end of the socket. connections_fd: where sqmgr sends connected Unix sockets; -1: the
 * reader connects itself. Takes ownership of both, also on failure. ops must stay valid. Returns 0 with *ret,
 * to be freed by reader_server_free(); or -errno. */
int reader_server_new(sd_event *event, int fd, int connections_fd, const struct reader_server_ops *ops,
                      void *userdata, struct reader_server **ret);
/* Returns NULL. */
struct reader_server *reader_server_free(struct reader_server *server);
