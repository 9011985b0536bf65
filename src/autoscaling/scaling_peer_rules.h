/* SPDX-License-Identifier: MIT */
/* What hosts that scale by the same queues tell each other by way of Redis: how much of the need each takes,
 * and the threads that it has. What is read of it may be forged: it is bounded, and only ever compared. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

#define PEER_TEXT_MAX    4096 /* bytes of what a host tells */
#define PEER_QUEUES_MAX  64
#define PEER_WEIGHT_MAX  1000000
#define PEER_THREADS_MAX 1000000

/* Of one host, and one of its fleets. */
struct peer_share {
        unsigned weight;  /* active_process_max of its fleets that scale by these queues; 0: none does now */
        unsigned busy;    /* threads of those fleets that run jobs */
        unsigned threads; /* and that take jobs */
        unsigned idle;    /* threads that run nothing of whatever else serves any of these queues there */
        const char *queues; /* borrowed: from which it takes, names, each ended by a NUL, the last by two; "":
                             * it does not say, and its share is no share */
};

/* Returns how many bytes of text are used, NULs among them; names that do not fit are left out, all of them.
 */
size_t peer_encode(const struct peer_share *share, char text[static PEER_TEXT_MAX]);
/* text[len] is a NUL; ret->queues points into it. Returns 0, or -EBADMSG with *ret untouched. */
int peer_decode(const char *text, size_t len, struct peer_share *ret);

struct peer {
        char *host; /* owned */
        char *text; /* owned */
        struct peer_share share;
        usec_t reported_at; /* when that was read */
};

/* The other hosts. */
struct peers {
        struct peer *list; /* owned */
        size_t n;
};

void peers_clear(struct peers *peers);
/* Adds what that host has just told; what cannot be read is left out. Returns 0, or -ENOMEM. */
int peers_add(struct peers *peers, const char *host, const char *text, size_t len, usec_t now);
/* Moves over those of `from` that have told since then, and that the others, which are sorted, have not, as
 * long as there are fewer than `most`; clears `from`. They are sorted again. Returns 0, or -ENOMEM. */
int peers_keep(struct peers *peers, struct peers *from, usec_t since, size_t most);
/* By host, as peers_find() needs it. */
void peers_sort(struct peers *peers);
const struct peer *peers_find(const struct peers *peers, const char *host);
