/* SPDX-License-Identifier: MIT */
/* Reports that hosts that scale by the same queues exchange through Redis: their share of the need and
 * their threads. The data may be forged, so it is bounded and only ever compared. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

#define PEER_TEXT_MAX    4096 /* bytes of a host's report */
#define PEER_QUEUES_MAX  64
#define PEER_WEIGHT_MAX  1000000
#define PEER_THREADS_MAX 1000000

/* The share of one host, for one of its fleets. */
struct peer_share {
        unsigned weight; /* sum of active_process_max of its fleets that scale by these queues; 0: none scales
                          * now */
        unsigned busy;   /* threads of those fleets that run jobs */
        unsigned threads;   /* threads of those fleets that accept jobs */
        unsigned idle;      /* idle threads of everything else there that serves any of these queues */
        const char *queues; /* borrowed: the queues that the fleet serves, each name ends with a NUL, the list
                             * with two; "": unknown, the share does not count */
};

/* Returns the number of bytes used in text, including NULs. If the queue names do not fit, all of them are
 * left out. */
size_t peer_encode(const struct peer_share *share, char text[static PEER_TEXT_MAX]);
/* text[len] must be a NUL. ret->queues points into text. Returns 0, or -EBADMSG with *ret untouched. */
int peer_decode(const char *text, size_t len, struct peer_share *ret);

struct peer {
        char *host; /* owned */
        char *text; /* owned */
        struct peer_share share;
        usec_t reported_at; /* when the share was read */
};

/* The other hosts of the group. */
struct peers {
        struct peer *list; /* owned */
        size_t n;
};

void peers_clear(struct peers *peers);
/* Adds the report of a host; an unreadable report is ignored. Returns 0 or -ENOMEM. */
int peers_add(struct peers *peers, const char *host, const char *text, size_t len, usec_t now);
/* Moves the peers of `from` that reported at or after `since` and are missing in peers, until peers has
 * `most` entries. peers must be sorted and is sorted again. Clears `from`. Returns 0 or -ENOMEM. */
int peers_keep(struct peers *peers, struct peers *from, usec_t since, size_t most);
/* Sorts by host, as peers_find() requires. */
void peers_sort(struct peers *peers);
const struct peer *peers_find(const struct peers *peers, const char *host);
