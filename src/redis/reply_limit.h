/* SPDX-License-Identifier: MIT */
/* Measures a reply as it arrives. Checks the bytes of the Redis protocol before hiredis sees them. hiredis
 * allocates memory for any announced size, and keeps all of a reply until its end. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Sidekiq's keys are much smaller: the largest are running job lists, with the arguments of all jobs of a
 * process. */
#define REPLY_LIMIT_BYTES_MAX    ((size_t)32 * 1024 * 1024)
#define REPLY_LIMIT_ELEMENTS_MAX ((size_t)256 * 1024)
/* Limit for an error, a number or a header. hiredis rescans an incomplete line from its start whenever more
 * bytes arrive. */
#define REPLY_LIMIT_LINE_MAX ((size_t)64 * 1024)

/* All zero: nothing received. */
struct reply_limit {
        size_t bytes;    /* of the reply, including announced bytes of its strings */
        size_t elements; /* of all lists, including announced elements */
        size_t left;  /* elements not yet complete, plus the reply itself; 0: the next byte starts a reply */
        size_t skip;  /* bytes left of the current string */
        size_t items; /* lines received: an object of hiredis each */

        char line[24]; /* start of the current line, with its type */
        size_t length; /* of the whole line */
        char last;     /* the previous byte */

        size_t ended; /* replies completed by the last feed */
        size_t tail;  /* bytes of the last feed behind those; all of them if it completed none */
};

enum reply_limit_outcome {
        REPLY_LIMIT_FITS = 0,
        REPLY_LIMIT_TOO_MANY_BYTES,
        REPLY_LIMIT_TOO_MANY_ELEMENTS,
        REPLY_LIMIT_LINE_TOO_LONG,
        REPLY_LIMIT_MALFORMED, /* an invalid length */
        REPLY_LIMIT_FOREIGN,   /* an unknown type: no client can continue */
};

/* Feeds the next received bytes, in pieces of any size. After any outcome but REPLY_LIMIT_FITS, do not feed
 * again: close the connection. */
enum reply_limit_outcome reply_limit_feed(struct reply_limit *reply_limit, const char *bytes, size_t n);

/* After REPLY_LIMIT_FITS: returns the memory of what has arrived of the reply, its bytes and the objects of
 * hiredis. */
size_t reply_limit_memory(const struct reply_limit *reply_limit);

/* Returns true if the reply is valid except for its size. */
bool reply_limit_is_oversized(enum reply_limit_outcome outcome);

/* Returns the outcome as part of a sentence. */
const char *reply_limit_explain(enum reply_limit_outcome outcome);
