/* SPDX-License-Identifier: MIT */
/* Asks one Redis how many walk through sets of identities there, so that they take turns
 * (observe/scan_throttle.h).
 *
 * Who wishes for a walk has CLIENT TRACKING on, with OPTIN: no key is tracked by that, and Redis counts who
 * has it. So nothing is written, and who dies counts no longer. Of a Redis before 6, or whose ACL forbids to
 * ask, nothing is known: then each walk is made as if there were no others. */
#pragma once

#include "observe/scan_throttle.h"

struct redis_batch;
struct redis;

/* May the walk be made now? Called once for each scan_permit_request() that returned 0, never from within it,
 * and also where the connection was lost. */
typedef void (*scan_permit_fn)(bool open, void *userdata);

struct scan_permit {
        struct redis *redis;             /* not owned */
        struct redis_batch *redis_batch; /* to be freed by redis_batch_free() */
        scan_permit_fn callback;
        void *userdata;
        struct scan_throttle scan_throttle;
        struct scan_throttle_reading reading; /* under way */
        bool read;                            /* of it: the members are */
        bool open;                            /* what it came to */
        bool counted;                         /* CLIENT TRACKING is on */
        bool blind;                           /* it does not tell */
};

/* nsec: see scan_throttle_reading. The gate must stay until each scan_permit_request() was called back.
 * Returns 0 or -ENOMEM. */
int scan_permit_init(struct scan_permit *scan_permit, struct redis *redis, unsigned nsec,
                     scan_permit_fn callback, void *userdata);
/* The connection is a new one. */
void scan_permit_connected(struct scan_permit *scan_permit);
/* At the last reading many wished for a walk. */
bool scan_permit_is_contended(const struct scan_permit *scan_permit);
/* A walk is wanted; see scan_throttle_request(). Returns whether scan_permit_request() is due. */
bool scan_permit_want(struct scan_permit *scan_permit, usec_t now, bool may_find);
/* Returns 0; 1: the walk may be made at once, callback is not called; -ENOTCONN or -ENOMEM. walks: see
 * scan_throttle_reading. */
int scan_permit_request(struct scan_permit *scan_permit, const char *set_key, unsigned scans);
/* No walk is wanted any more. */
void scan_permit_cancel(struct scan_permit *scan_permit);
