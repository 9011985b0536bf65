/* SPDX-License-Identifier: MIT */
/* Tells the other hosts of a group what this one takes of the need of their queues, and reads what they tell.
 * Each has a key of its own, `sqmgr:rollout:GROUP:threads:HOST`, that expires soon after it is silent. */
#pragma once

#include "base/usec.h"
#include <stdbool.h>

struct peer_share;
struct peering;
struct peers;
struct redis;

/* redis must outlive it. Returns 0 with *ret to be freed by peering_free(), or -ENOMEM. */
int peering_new(struct redis *redis, const char *namespace, const char *group, struct peering **ret);
/* Takes NULL, and returns it. */
struct peering *peering_free(struct peering *peering);

const char *peering_group(const struct peering *peering);
/* Writes the share of this host, where it is not NULL, to last for so many seconds, and reads those of the
 * others where that is due: the more hosts, the more rarely. The share need not stay. */
void peering_look(struct peering *peering, const char *host, const struct peer_share *share, unsigned seconds,
                  usec_t now);
/* They were read, or Redis refuses to tell. */
bool peering_is_known(const struct peering *peering);
/* As they were last read. */
const struct peers *peering_peers(const struct peering *peering);
/* Why they cannot be read, or written; "": they can. */
const char *peering_error(const struct peering *peering);
