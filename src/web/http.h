/* SPDX-License-Identifier: MIT */
/* Serves HTTP: libmicrohttpd on sd-event, with bounds on whatever a client may do. */
#pragma once

#include "base/usec.h"
#include "web/address.h"
#include "web/http_counts.h"
#include "web/stream.h"
#include <systemd/sd-event.h>

struct http;
/* One that waits for its answer. */
struct http_request;

struct http_answer {
        unsigned status; /* of HTTP */
        const char *type;
        const char *csp;     /* Content-Security-Policy; NULL: nothing may be loaded */
        const char *cache;   /* Cache-Control; NULL: no-store */
        struct shared *text; /* held as long as it is sent */
};

/* Has to call http_answer(), http_stream() or http_wait(). Called again after http_resume(). */
typedef void (*http_handler)(void *userdata, struct http_request *request, const char *path);

struct http_limits {
        unsigned connections;
        unsigned streams;   /* of these */
        usec_t wait_usec;   /* for a whole request, from the last answer or the beginning on */
        usec_t answer_usec; /* for a whole answer to be taken, and for any of a stream */
};

extern const struct http_limits http_default_limits;

/* Returns 0 or -errno; *ret is to be freed by http_free(). */
int http_new(struct http **ret, sd_event *event, const struct http_limits *limits, http_handler handler,
             void *userdata);
/* Ends all connections. Returns NULL, as http may be. */
struct http *http_free(struct http *http);

/* Takes connections there. A socket at a path is of mode 0660, and takes the place of one that nobody answers
 * on. Returns 0, or -errno with a sentence in error. */
int http_listen(struct http *http, const struct address *address, char *error, size_t error_size);
/* n names, not copied, that a request may call the server by, besides `localhost` and the addresses listened
 * on. */
void http_allow_hosts(struct http *http, const char *const *names, size_t n);
/* Serves one connection; fd is taken over. Returns 0 or -errno. */
int http_add(struct http *http, int fd, const struct sockaddr *peer, socklen_t peer_size);
/* Does what can be done now, for whoever has no loop. */
void http_run(struct http *http);

/* The value of the argument of that name behind the path, as it stands there; NULL: none. */
const char *http_argument(const struct http_request *request, const char *name);
/* Same of a header. */
const char *http_header(const struct http_request *request, const char *name);

void http_answer(struct http_request *request, const struct http_answer *answer);
/* A sentence, as text. */
void http_answer_sentence(struct http_request *request, unsigned status, const char *sentence);
/* first: what is sent at once; may be NULL. */
void http_stream(struct http_request *request, struct stream *stream, struct shared *first);
/* To be given to the stream as it is made. */
void http_wake(struct viewer *viewer);

/* Put off: all of them are asked for anew by http_resume(). */
void http_wait(struct http_request *request);
void http_resume(struct http *http);

struct http_counts http_count(const struct http *http);
