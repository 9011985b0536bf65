/* SPDX-License-Identifier: MIT */
/* How large is the reply that arrives? It looks at the bytes of Redis's protocol before hiredis does, which
 * makes room for whatever a reply announces, and keeps all of it until its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What Sidekiq's keys hold is smaller by far: the largest are work lists with the arguments of all jobs that
 * a process runs. */
#define REPLY_LIMIT_BYTES_MAX    ((size_t)32 * 1024 * 1024)
#define REPLY_LIMIT_ELEMENTS_MAX ((size_t)256 * 1024)
/* An error, a number, or what a header announces. hiredis looks for the end of a line from its beginning,
 * each time that more of it comes. */
#define REPLY_LIMIT_LINE_MAX ((size_t)64 * 1024)

/* All zero: nothing has come. */
struct reply_limit {
        size_t bytes;    /* of the reply, with those of its strings that are still to come */
        size_t elements; /* of all its lists, those to come too */
        size_t left;     /* of them, and the reply itself: how many are yet to end; 0: a reply begins next */
        size_t skip;     /* of a string that long */

        char line[24]; /* the first of it, with its type */
        size_t length; /* of all of it */
        char last;     /* the byte before */

        size_t ended; /* replies, in the last feed */
};

enum reply_limit_outcome {
        REPLY_LIMIT_FITS = 0,
        REPLY_LIMIT_TOO_MANY_BYTES,
        REPLY_LIMIT_TOO_MANY_ELEMENTS,
        REPLY_LIMIT_LINE_TOO_LONG,
        REPLY_LIMIT_MALFORMED, /* a length that is none */
        REPLY_LIMIT_FOREIGN,   /* a type that is none, with which no reader goes on */
};

/* What has come next, whatever it is cut into. After another outcome than REPLY_LIMIT_FITS it is not to be
 * asked again: the connection has to go. */
enum reply_limit_outcome reply_limit_feed(struct reply_limit *reply_limit, const char *bytes, size_t n);

/* Is it a reply like any other, but for its size? */
bool reply_limit_is_oversized(enum reply_limit_outcome outcome);

/* The outcome as part of a sentence. */
const char *reply_limit_explain(enum reply_limit_outcome outcome);
