/* SPDX-License-Identifier: MIT */
/* When a host may walk through the set of all identities.
 *
 * The set lists the workers of all hosts, and each host that starts workers walks through all of it: what
 * that costs Redis grows with both. So a host that wishes for a walk has itself counted, and asks how many
 * are and how many identities there are. From that follows how long all of them together must take for one
 * walk each, so that walks take a twentieth of Redis' one core, however many hosts start at once: so long is
 * the gap between two walks of one host, in the mean: at each reading it is drawn by lot whether it walks, by
 * the part of the gap that has passed since the last. So the rate of all stays the same as hosts come and go,
 * whoever has waited for how long. */
#pragma once

#include "base/usec.h"
#include <stdbool.h>
#include <stdint.h>

/* So little is not worth waiting for. */
#define PACE_AT_ONCE_USEC (20 * USEC_PER_MSEC)
/* With a gap beyond this there is a crowd: a walk is wished for only once there may be something to find. */
#define PACE_CROWD_USEC (5 * USEC_PER_SEC)
/* Who waits asks this often whether others have done with it, or by a fiftieth of its gap. */
#define PACE_ASK_USEC (5 * USEC_PER_SEC)
/* No counts, however wrong, keep a host from walking for longer. */
#define PACE_GAP_MAX_USEC (30 * USEC_PER_MIN)
struct pace_reading {
        uint64_t members; /* of the set */
        uint64_t walkers; /* hosts that wish for a walk, this one too */
        unsigned nsec;    /* of Redis for one member, on a slow machine */
        unsigned walks;   /* through the set that make one: one for each name of this host */
};

struct pace {
        usec_t wished_at; /* 0: no walk is wished for */
        usec_t walked_at; /* when the last one began; 0: none did */
        usec_t gap;       /* as of the last reading since a walk is wanted; 0: there was none */
        usec_t read_at;   /* that reading; 0: there was none since the wish */
        usec_t ask_at;    /* no reading before */
};

/* Between two walks of one host. */
usec_t pace_gap(const struct pace_reading *reading);

/* A walk is wanted. may_find: something may be there by now that the last did not find. Returns whether the
 * wish counts: in a crowd only then. */
bool pace_wish(struct pace *pace, usec_t now, bool may_find);
/* None is wanted any more. */
void pace_rest(struct pace *pace);
/* While one is wished for: is it time for a reading? */
bool pace_asks(const struct pace *pace, usec_t now);
/* Returns whether the walk is to be made now. lot: any number, another one each time. */
bool pace_read(struct pace *pace, const struct pace_reading *reading, uint32_t lot, usec_t now);
