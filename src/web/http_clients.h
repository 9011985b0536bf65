/* SPDX-License-Identifier: MIT */
/* The connections of the HTTP server: which requests wait, and which connections are ended when time, places
 * or memory run short. */
#pragma once

#include "web/http_counts.h"
#include "web/stream.h"
#include <sys/socket.h>

struct http;
struct MHD_Connection;

/* A connection and its current request. */
struct http_request {
        struct http *http;
        TAILQ_ENTRY(http_request) entry;
        struct MHD_Connection *connection;
        int fd;              /* owned by libmicrohttpd */
        uint64_t peer;       /* the same for all connections from an address, for IPv6 from a /64 */
        bool asked;          /* the request header was read */
        usec_t since;        /* last progress: connection opened, request read, or response finished */
        bool put_off;        /* waits for http_resume(), see http_wait() */
        bool answered;       /* a response was queued, or http_wait() was called */
        bool reads_head;     /* the request is HEAD: the response has no body */
        bool ended;          /* shut down; the library has yet to close it */
        struct shared *text; /* response that the client reads; NULL: none, or that of a stream */
        usec_t text_at;      /* since when the client may read text or the message of the stream */
        struct viewer viewer;
};

struct http_clients {
        struct http_limits limits;
        TAILQ_HEAD(http_requests, http_request) list; /* ordered by since */
        struct http_counts counts;
        unsigned sweeps;                              /* number of calls of http_clients_sweep() */
        void (*resume)(struct http_request *request); /* continues a suspended connection later */
};

/* Returns the same number for all connections from an address. Sockets at a path have one address. */
uint64_t http_clients_peer(const struct sockaddr *address);

/* Marks progress of the request. */
void http_clients_touch(struct http_clients *clients, struct http_request *request, usec_t now);
/* The stream has ended. Does nothing if the request has no stream. */
void http_clients_leave_stream(struct http_clients *clients, struct http_request *request);
/* Continues the waiting requests of http_wait(). */
void http_clients_stop_waiting(struct http_clients *clients);

/* Ends one connection: the one that has kept the server waiting for the longest time. If all are streams or
 * wait for the server: a stream. If there is no stream: the latest. Returns false if there is no connection.
 */
bool http_clients_make_room(struct http_clients *clients);
/* Ends streams until there is a place for one more: the oldest of those whose address has the most. */
void http_clients_make_room_for_stream(struct http_clients *clients);
/* Ends connections that take too long, and those that read the oldest texts if these need too much memory. */
void http_clients_sweep(struct http_clients *clients, usec_t now);
