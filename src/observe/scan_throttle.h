/* SPDX-License-Identifier: MIT */
/* Decides when a host may scan the set of all identities.
 *
 * The set lists the workers of all hosts. Each host that starts workers scans all of it, so the cost for
 * Redis grows with both. A host that wants a scan therefore registers, and reads the number of waiting hosts
 * and of identities. These two numbers give the gap between two scans of one host. With this mean gap all
 * scans together take a twentieth of Redis' one core, however many hosts start at once.
 *
 * At each reading the host decides at random whether to scan. The probability is the part of the gap that has
 * passed since the last reading. The total rate thus stays constant as hosts join and leave, however long
 * each one has waited. */
#pragma once

#include "base/macro.h"

/* Shorter gaps are not worth waiting for. */
#define SCAN_THROTTLE_AT_ONCE_USEC (20 * USEC_PER_MSEC)
/* Longer gaps mean contention: a request then counts only if the scan may find something. */
#define SCAN_THROTTLE_CONTENDED_USEC (5 * USEC_PER_SEC)
/* A waiting host reads the counts again after this time or a fiftieth of its gap, whichever is longer. */
#define SCAN_THROTTLE_RETRY_USEC (5 * USEC_PER_SEC)
/* Maximum gap, however wrong the counts are. */
#define SCAN_THROTTLE_GAP_MAX_USEC (30 * USEC_PER_MIN)
struct scan_throttle_reading {
        uint64_t members;  /* number of identities in the set */
        uint64_t scanners; /* hosts that want a scan, this one included */
        unsigned nsec;     /* nanoseconds of Redis for one member, on a slow machine */
        unsigned scans;    /* passes over the set in one scan: one for each name of this host */
};

struct scan_throttle {
        usec_t requested_at; /* 0: no scan is requested */
        usec_t scanned_at;   /* start of the last scan; 0: none */
        usec_t gap;          /* mean gap by the last reading; 0: none since scan_throttle_cancel() */
        usec_t read_at;      /* time of the last reading; 0: none since the request */
        usec_t ask_at;       /* time of the next reading */
};

/* Returns the mean gap between two scans of one host. */
usec_t scan_throttle_gap(const struct scan_throttle_reading *reading);

/* Requests a scan. may_find: the scan may find something that the last one did not. Returns true if the
 * request counts; under contention only if may_find. */
bool scan_throttle_request(struct scan_throttle *scan_throttle, usec_t now, bool may_find);
/* Withdraws the request. */
void scan_throttle_cancel(struct scan_throttle *scan_throttle);
/* Returns true if a request is pending and the next reading is due. */
bool scan_throttle_is_due(const struct scan_throttle *scan_throttle, usec_t now);
/* Records a reading. Returns true if the host must scan now. lot: a fresh random number. */
bool scan_throttle_decide(struct scan_throttle *scan_throttle, const struct scan_throttle_reading *reading,
                          uint32_t lot, usec_t now);
