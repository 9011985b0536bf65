/* SPDX-License-Identifier: MIT */
/* A socket to a server that speaks the Redis protocol, from the lookup of the host name to the loss of the
 * connection. Never blocks the loop, and enforces the timeouts. The commands are up to the owner. */
#pragma once

#include "base/macro.h"
#include <systemd/sd-event.h>

struct connection;
struct tls;
struct redisReply; /* of hiredis */

/* The address of the server. The texts must stay valid until the connection is closed or opened again. */
struct endpoint {
        const char *path; /* of the unix socket; NULL: use host and port */
        const char *host; /* a name or an address */
        unsigned port;
        struct tls *tls; /* NULL: no TLS */
};

/* All callbacks run from the loop, never from within a function of this file. A callback may do anything,
 * including closing, opening and freeing the connection. */
struct connection_ops {
        /* The socket is connected. No command has been sent. */
        void (*on_up)(struct connection *connection, void *userdata);
        /* The connection failed or was lost, and is closed. why is a sentence without secrets. Commands
         * without a reply will never get one. */
        void (*on_lost)(struct connection *connection, const char *why, void *userdata);
        /* Called instead of on_lost() if the reply to the oldest pending command exceeds a limit. what
         * describes the reply: "a reply of more than ...". NULL: on_lost() is called for oversized replies
         * too. */
        void (*on_oversized)(struct connection *connection, const char *what, void *userdata);
        /* The reply to the oldest pending command. reply is valid during the call. */
        void (*on_reply)(struct connection *connection, const struct redisReply *reply, void *userdata);
        /* No command was sent for a while. Send one, so that a silently dead connection is noticed. */
        void (*on_idle)(struct connection *connection, void *userdata);
        /* A message of a subscribed channel, `message CHANNEL TEXT`. NULL: no messages are expected, and an
         * unexpected message or reply ends the connection. */
        void (*on_message)(struct connection *connection, const struct redisReply *reply, void *userdata);
};

/* Creates a closed connection. ops must stay valid. timeout applies to each address of a server, and
 * limits the wait for a reply; a reply that keeps arriving may take ten times as long.
 * Returns 0 with *ret to be freed by connection_free(); or -errno. */
int connection_new(sd_event *event, const struct connection_ops *ops, usec_t timeout, void *userdata,
                   struct connection **ret);
/* Returns NULL. */
struct connection *connection_free(struct connection *connection);

/* Has decoding called around the handling of what has arrived; see redis_on_decoding(). */
void connection_on_decoding(struct connection *connection, void (*decoding)(bool begins, void *userdata),
                            void *userdata);

/* Closes the connection if open, then starts connecting. on_up() or on_lost() follows. */
void connection_open(struct connection *connection, const struct endpoint *endpoint);
/* Closes the connection. No callback follows. */
void connection_close(struct connection *connection);

/* Returns true if the connection was lost because no reply came in time. */
bool connection_was_late(const struct connection *connection);

/* Queues a command. All commands queued in one iteration of the loop are sent together. argvlen has the
 * lengths of the arguments; NULL if they are strings. Returns 0, -ENOTCONN, or -ENOMEM with nothing
 * queued. */
int connection_send(struct connection *connection, int argc, const char *const argv[],
                    const size_t argvlen[]);
