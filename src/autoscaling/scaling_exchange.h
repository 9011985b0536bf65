/* SPDX-License-Identifier: MIT */
/* Tells the other hosts of a group what this one takes of the need of their queues, and reads what they tell.
 * Each has a key of its own, `sqmgr:rollout:GROUP:threads:HOST`, that expires soon after it is silent. */
#pragma once

#include "autoscaling/scaling_peer_rules.h"
#include "model/group_key.h"

struct redis;

/* What this host exchanges with the other hosts of one group. */
struct scaling_exchange {
        struct redis *redis;
        char *namespace; /* owned, as group */
        char *group;
        struct redis_batch *redis_batch;
        char host[ROLLOUT_TEXT_MAX]; /* this one */
        char **keys;                 /* owned: of the hosts that are asked for */
        size_t n_keys;
        bool reads, refused; /* this time */
        uint64_t connection; /* redis_connection_count() when it was last asked */
        usec_t keep_until;   /* who is silent still counts */
        usec_t next_at;

        /* For the caller to read: */
        bool known;         /* the others were read, or Redis refuses to tell */
        struct peers peers; /* as they were last read */
        char error[256];    /* why they cannot be read, or written; "": they can */
};

/* redis must outlive it. Returns 0 with *ret to be freed by scaling_exchange_free(), or -ENOMEM. */
int scaling_exchange_new(struct redis *redis, const char *namespace, const char *group,
                         struct scaling_exchange **ret);
/* Takes NULL, and returns it. */
struct scaling_exchange *scaling_exchange_free(struct scaling_exchange *scaling_exchange);

/* Writes the share of this host, where it is not NULL, to last for so many seconds, and reads those of the
 * others where that is due: the more hosts, the more rarely. The share need not stay. */
void scaling_exchange_look(struct scaling_exchange *scaling_exchange, const char *host,
                           const struct peer_share *share, unsigned seconds, usec_t now);
