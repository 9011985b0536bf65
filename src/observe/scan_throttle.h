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
#define SCAN_THROTTLE_AT_ONCE_USEC (20 * USEC_PER_MSEC)
/* With a gap beyond this there is a crowd: a walk is wished for only once there may be something to find. */
#define SCAN_THROTTLE_CONTENDED_USEC (5 * USEC_PER_SEC)
/* Who waits asks this often whether others have done with it, or by a fiftieth of its gap. */
#define SCAN_THROTTLE_RETRY_USEC (5 * USEC_PER_SEC)
/* No counts, however wrong, keep a host from walking for longer. */
#define SCAN_THROTTLE_GAP_MAX_USEC (30 * USEC_PER_MIN)
struct scan_throttle_reading {
        uint64_t members;  /* of the set */
        uint64_t scanners; /* hosts that wish for a walk, this one too */
        unsigned nsec;     /* of Redis for one member, on a slow machine */
        unsigned scans;    /* through the set that make one: one for each name of this host */
};

struct scan_throttle {
        usec_t requested_at; /* 0: no walk is wished for */
        usec_t scanned_at;   /* when the last one began; 0: none did */
        usec_t gap;          /* as of the last reading since a walk is wanted; 0: there was none */
        usec_t read_at;      /* that reading; 0: there was none since the wish */
        usec_t ask_at;       /* no reading before */
};

/* Between two walks of one host. */
usec_t scan_throttle_gap(const struct scan_throttle_reading *reading);

/* A walk is wanted. may_find: something may be there by now that the last did not find. Returns whether the
 * wish counts: in a crowd only then. */
bool scan_throttle_request(struct scan_throttle *scan_throttle, usec_t now, bool may_find);
/* None is wanted any more. */
void scan_throttle_cancel(struct scan_throttle *scan_throttle);
/* While one is wished for: is it time for a reading? */
bool scan_throttle_is_due(const struct scan_throttle *scan_throttle, usec_t now);
/* Returns whether the walk is to be made now. lot: any number, another one each time. */
bool scan_throttle_decide(struct scan_throttle *scan_throttle, const struct scan_throttle_reading *reading,
                          uint32_t lot, usec_t now);
