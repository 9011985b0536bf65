/* SPDX-License-Identifier: MIT */
/* Writes this host's share of the need of shared queues to Redis for its group, and reads the shares of
 * the other hosts. Each host has its own key, `sqmgr:rollout:GROUP:threads:HOST`, which expires soon after
 * the host falls silent. */
#pragma once

#include "autoscaling/scaling_peer_rules.h"
#include "model/group_key.h"
#include "wire/quoted.h"

struct reader;

/* The exchange of this host with the other hosts of one group. */
struct scaling_exchange {
        struct reader *reader;
        char *group;                 /* owned */
        char host[ROLLOUT_TEXT_MAX]; /* the name of this host */
        bool pending;                /* an exchange is in progress */
        bool reads;                  /* in the current exchange */
        uint64_t connection;         /* reader_connection_count() at the last exchange */
        usec_t keep_until;           /* until then, the last shares of silent hosts still count */
        usec_t next_at;

        /* Read by the caller: */
        bool known;                /* the shares were read, or Redis refuses to give them */
        struct peers peers;        /* as last read */
        struct error_report error; /* why shares cannot be read or written */
};

/* reader must outlive the object. Returns 0 with *ret, which the caller frees with scaling_exchange_free(),
 * or -ENOMEM. */
int scaling_exchange_new(struct reader *reader, const char *group, struct scaling_exchange **ret);
/* Takes NULL. Returns NULL. */
struct scaling_exchange *scaling_exchange_free(struct scaling_exchange *scaling_exchange);

/* Writes this host's share, unless share is NULL, with an expiry of `seconds`. Reads the shares of the
 * other hosts if that is due: the more hosts, the less often. share need not outlive the call. */
void scaling_exchange_poll(struct scaling_exchange *scaling_exchange, const char *host,
                           const struct peer_share *share, unsigned seconds, usec_t now);
