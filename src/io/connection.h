/* SPDX-License-Identifier: MIT */
/* One socket to one server that speaks Redis's protocol, from the look-up of its name to its loss. It never
 * blocks the loop, and keeps the deadlines. What is said over it is its owner's business.
 *
 * The process must ignore SIGPIPE: hiredis writes without MSG_NOSIGNAL. */
#pragma once

#include "base/usec.h"
#include <systemd/sd-event.h>

struct connection;
struct tls;
struct redisReply; /* hiredis's */

/* Where the server is. The texts must stay until the connection is closed or opened anew. */
struct endpoint {
        const char *path; /* of its unix socket; NULL: host and port say it */
        const char *host; /* a name or an address */
        unsigned port;
        struct tls *tls; /* NULL: without */
};

/* All are called from the loop, never from within a function of this file; everything is allowed in them,
 * closing, opening and freeing too. */
struct connection_ops {
        /* The socket is connected; nothing has been said yet. */
        void (*on_up)(struct connection *connection, void *userdata);
        /* It could not be connected, or is lost, and is closed. why: a sentence without secrets. What was
         * sent and not answered never will be. */
        void (*on_lost)(struct connection *connection, const char *why, void *userdata);
        /* Instead of on_lost, where the reply to the oldest command that has none is beyond the bound.
         * what: a reply of more than so much. NULL: it does not matter which one it is. */
        void (*on_oversized)(struct connection *connection, const char *what, void *userdata);
        /* The answer to the oldest command that has none. reply: valid for the call. */
        void (*on_reply)(struct connection *connection, const struct redisReply *reply, void *userdata);
        /* Nothing was asked for a while: ask something, that a silent death is seen. */
        void (*on_idle)(struct connection *connection, void *userdata);
        /* A message of a channel that was subscribed to. NULL: none is expected, and one that comes ends the
         * connection, as does an answer to nothing. */
        void (*on_message)(struct connection *connection, const struct redisReply *reply, void *userdata);
};

/* ops must stay. Times: what each address of a server gets to accept, and how long answers may keep us
 * waiting. Returns 0 with *ret, which is closed, to be freed by connection_free(); or -errno. */
int connection_new(sd_event *event, const struct connection_ops *ops, usec_t connect_timeout,
                   usec_t command_timeout, void *userdata, struct connection **ret);
/* Returns NULL. */
struct connection *connection_free(struct connection *connection);

/* Closes it and begins to connect; on_up or on_lost follows. */
void connection_open(struct connection *connection, const struct endpoint *endpoint);
/* No callback follows. */
void connection_close(struct connection *connection);

/* Queues a command; all that are queued in one pass of the loop go out together. argvlen: the lengths of the
 * words, or NULL where they are strings. Returns 0; -ENOTCONN; or -ENOMEM: then nothing was queued. */
int connection_send(struct connection *connection, int argc, const char *const argv[],
                    const size_t argvlen[]);
