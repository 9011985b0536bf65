/* SPDX-License-Identifier: MIT */
/* The questions to one Redis whose replies were too large (io/reply_limit.h): each of them would end the
 * connection again, so they are left out for a while. */
#pragma once

#include "base/usec.h"
#include <stdbool.h>
#include <stddef.h>

/* So long one is left out. */
#define OVERSIZED_USEC (5 * USEC_PER_MIN)
/* More of them within that time than the waits between connections allow. */
#define OVERSIZED_MAX 128

struct question {
        uint64_t hash; /* of all its words */
        char text[96]; /* the first two of them, cut, without control characters */
};

struct oversized {
        struct {
                struct question question;
                usec_t until;
        } list[OVERSIZED_MAX];
        size_t n;
};

/* argvlen: the lengths of the words, or NULL where they are strings. */
struct question question_of(int argc, const char *const argv[], const size_t argvlen[]);

/* Leaves it out from now on, the one that was so for longest for it where there is no room. */
void oversized_add(struct oversized *oversized, const struct question *question, usec_t now);
/* Drops those whose time is over. */
void oversized_expire(struct oversized *oversized, usec_t now);
bool oversized_has(const struct oversized *oversized, const struct question *question);
