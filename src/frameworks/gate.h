/* SPDX-License-Identifier: MIT */
/* Asks one Redis how many walk through sets of identities there, so that they take turns (observe/scan_throttle.h).
 *
 * Who wishes for a walk has CLIENT TRACKING on, with OPTIN: no key is tracked by that, and Redis counts who
 * has it. So nothing is written, and who dies counts no longer. Of a Redis before 6, or whose ACL forbids to
 * ask, nothing is known: then each walk is made as if there were no others. */
#pragma once

#include "observe/scan_throttle.h"

struct asks;
struct redis;

/* May the walk be made now? Called once for each gate_ask() that returned 0, never from within it, and also
 * where the connection was lost. */
typedef void (*gate_fn)(bool open, void *userdata);

struct gate {
        struct redis *redis; /* not owned */
        struct asks *asks;   /* to be freed by asks_free() */
        gate_fn callback;
        void *userdata;
        struct scan_throttle scan_throttle;
        struct scan_throttle_reading reading; /* under way */
        bool read;                   /* of it: the members are */
        bool open;                   /* what it came to */
        bool counted;                /* CLIENT TRACKING is on */
        bool blind;                  /* it does not tell */
};

/* nsec: see scan_throttle_reading. The gate must stay until each gate_ask() was called back. Returns 0 or -ENOMEM. */
int gate_init(struct gate *gate, struct redis *redis, unsigned nsec, gate_fn callback, void *userdata);
/* The connection is a new one. */
void gate_connected(struct gate *gate);
/* At the last reading many wished for a walk. */
bool gate_is_crowded(const struct gate *gate);
/* A walk is wanted; see scan_throttle_request(). Returns whether gate_ask() is due. */
bool gate_wish(struct gate *gate, usec_t now, bool may_find);
/* Returns 0; 1: the walk may be made at once, callback is not called; -ENOTCONN or -ENOMEM. walks: see
 * scan_throttle_reading. */
int gate_ask(struct gate *gate, const char *set_key, unsigned scans);
/* No walk is wanted any more. */
void gate_rest(struct gate *gate);
