/* SPDX-License-Identifier: MIT */
/* How large is the reply that arrives? It looks at the bytes of Redis's protocol before hiredis does, which
 * makes room for whatever a reply announces, and keeps all of it until its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* What Sidekiq's keys hold is smaller by far: the largest are work lists with the arguments of all jobs that
 * a process runs. */
#define GAUGE_BYTES_MAX    ((size_t)32 * 1024 * 1024)
#define GAUGE_ELEMENTS_MAX ((size_t)256 * 1024)
/* An error, a number, or what a header announces. hiredis looks for the end of a line from its beginning,
 * each time that more of it comes. */
#define GAUGE_LINE_MAX ((size_t)64 * 1024)

/* All zero: nothing has come. */
struct gauge {
        size_t bytes;    /* of the reply, with those of its strings that are still to come */
        size_t elements; /* of all its lists, those to come too */
        size_t left;     /* of them, and the reply itself: how many are yet to end; 0: a reply begins next */
        size_t skip;     /* of a string that long */

        char line[24]; /* the first of it, with its type */
        size_t length; /* of all of it */
        char last;     /* the byte before */

        size_t ended; /* replies, in the last feed */
};

enum gauge_outcome {
        GAUGE_FITS = 0,
        GAUGE_TOO_MANY_BYTES,
        GAUGE_TOO_MANY_ELEMENTS,
        GAUGE_LINE_TOO_LONG,
        GAUGE_MALFORMED, /* a length that is none */
        GAUGE_FOREIGN,   /* a type that is none, with which no reader goes on */
};

/* What has come next, whatever it is cut into. After another outcome than GAUGE_FITS it is not to be asked
 * again: the connection has to go. */
enum gauge_outcome gauge_feed(struct gauge *gauge, const char *bytes, size_t n);

/* Is it a reply like any other, but for its size? */
bool gauge_is_oversized(enum gauge_outcome outcome);

/* The outcome as part of a sentence. */
const char *gauge_explain(enum gauge_outcome outcome);
