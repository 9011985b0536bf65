/* SPDX-License-Identifier: MIT */
/* Messages over one SOCK_SEQPACKET socket between sqmgr and a reader process. Never blocks the loop.
 *
 * Many small messages share a datagram and a large message takes several: a poll of 1000 workers costs a few
 * system calls. Each message is preceded by its length, and both directions are bounded. */
#pragma once

#include "base/macro.h"
#include <systemd/sd-event.h>

struct message_socket;

/* The callbacks run from the loop. They may do anything, including freeing the socket. */
struct message_socket_ops {
        /* A whole message, valid during the call. */
        void (*on_message)(const uint8_t *bytes, size_t n, void *userdata);
        /* Nothing more is received. error: 0 if the peer closed its end; -EMSGSIZE if it announced a message
         * over the bound; or another -errno. */
        void (*on_end)(int error, void *userdata);
};

/* Bounds, in bytes. */
struct message_socket_limits {
        size_t receive; /* of one received message */
        size_t send;    /* of all messages that the peer has not taken yet */
};

/* Takes ownership of fd, also on failure. ops must stay valid. Returns 0 with *ret, to be freed by
 * message_socket_free(); or -errno. */
int message_socket_new(sd_event *event, int fd, const struct message_socket_limits *limits,
                       const struct message_socket_ops *ops, void *userdata, struct message_socket **ret);
/* Closes the socket. Messages that were not sent yet are lost. Returns NULL. */
struct message_socket *message_socket_free(struct message_socket *message_socket);

/* Queues a message, which is sent once the loop runs. Copies the bytes. Returns 0; -ENOBUFS if the unsent
 * messages exceed limits.send, because the peer reads too slowly or n is too large; or -ENOMEM. */
int message_socket_send(struct message_socket *message_socket, const uint8_t *bytes, size_t n);
