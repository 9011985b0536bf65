/* SPDX-License-Identifier: MIT */
/* The HTTP server: libmicrohttpd on sd-event, with limits on what a client can use. */
#pragma once

#include "web/address.h"
#include "web/stream.h"
#include <systemd/sd-event.h>

struct http;
/* A request that is waiting for its response. */
struct http_request;

/* Counters for the metrics. */
struct http_counts {
        unsigned connections, streams; /* open now; streams are also counted as connections */
        uint64_t requests;
        uint64_t refused; /* connections closed to free a slot or after a timeout */
};

struct http_limits {
        unsigned connections;
        unsigned streams;    /* maximum streams among the connections */
        usec_t wait_usec;    /* for reading a whole request, from the last response or the start of the
                                connection */
        usec_t answer_usec;  /* for the client to read a whole response */
        usec_t message_usec; /* for the client to read a whole message of a stream */
        size_t unread_bytes; /* of all texts together that clients are reading; a text that many clients read
                                counts once */
};

struct http_answer {
        unsigned status; /* HTTP status code */
        const char *type;
        const char *csp;     /* Content-Security-Policy; NULL: forbids loading anything */
        const char *cache;   /* Cache-Control; NULL: no-store */
        struct shared *text; /* http_answer() holds a reference while sending */
};

/* Handles a request. Must call http_answer(), http_answer_sentence(), http_stream() or http_wait(); otherwise
 * the connection ends. Called again for a waiting request after http_resume(). path is valid during the call.
 */
typedef void (*http_handler)(void *userdata, struct http_request *request, const char *path);

extern const struct http_limits http_default_limits;

/* Returns 0 or -errno. Free *ret with http_free(). limits is copied. */
int http_new(struct http **ret, sd_event *event, const struct http_limits *limits, http_handler handler,
             void *userdata);
/* Closes all connections and listeners; http may be NULL. Returns NULL. */
struct http *http_free(struct http *http);

/* Listens on address. A socket at a path has mode 0660 and replaces a socket on which no process listens.
 * Returns 0, or -errno with a sentence in error. */
int http_listen(struct http *http, const struct address *address, char *error, size_t error_size);
/* Allows n more names in Host headers, besides `localhost` and the addresses that clients connect to. names
 * is not copied. */
void http_allow_hosts(struct http *http, const char *const *names, size_t n);
/* Serves one connection and takes over fd. Returns 0 or -errno. */
int http_add(struct http *http, int fd, const struct sockaddr *peer, socklen_t peer_size);
/* Handles everything that is due now, for callers without an event loop. */
void http_run(struct http *http);

/* Returns true for a HEAD request: the response has the size of the body, but no body. */
bool http_is_head(const struct http_request *request);
/* Returns the query argument of that name, not unescaped; NULL: none. */
const char *http_argument(const struct http_request *request, const char *name);
/* Returns the header of that name; NULL: none. */
const char *http_header(const struct http_request *request, const char *name);

void http_answer(struct http_request *request, const struct http_answer *answer);
/* Answers with one sentence of plain text. */
void http_answer_sentence(struct http_request *request, unsigned status, const char *sentence);
/* Adds a viewer to the stream, ending another one if there are too many. Returns the viewer, for
 * stream_send_first(); NULL: the request has no body, or memory is short. */
struct viewer *http_stream(struct http_request *request, struct stream *stream);
/* Continues the response to a waiting viewer. Set this function as `wake` of each stream. */
void http_wake(struct viewer *viewer);

/* Postpones the response. http_resume() has the handler called again for all waiting requests, later from the
 * loop. */
void http_wait(struct http_request *request);
void http_resume(struct http *http);

struct http_counts http_count(const struct http *http);
