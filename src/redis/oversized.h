/* SPDX-License-Identifier: MIT */
/* The commands to one Redis whose replies were too large (redis/reply_limit.h). Sending one again would end
 * the connection again, so these commands are skipped for a while. */
#pragma once

#include "base/macro.h"

/* How long a command is skipped. */
#define OVERSIZED_USEC (5 * USEC_PER_MIN)
/* The backoff between connections does not allow more commands within that time. */
#define OVERSIZED_MAX 128

struct question {
        uint64_t hash; /* of all arguments */
        char text[96]; /* the first two arguments, truncated, without control characters */
};

struct oversized {
        struct {
                struct question question;
                usec_t until;
        } list[OVERSIZED_MAX];
        size_t n;
};

/* argvlen has the lengths of the arguments; NULL if they are strings. */
struct question question_of(int argc, const char *const argv[], const size_t argvlen[]);

/* Adds a command to skip, and drops the oldest entry if the list is full. */
void oversized_add(struct oversized *oversized, const struct question *question, usec_t now);
/* Drops expired entries. */
void oversized_expire(struct oversized *oversized, usec_t now);
bool oversized_has(const struct oversized *oversized, const struct question *question);
