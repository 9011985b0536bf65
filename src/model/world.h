/* SPDX-License-Identifier: MIT */
/* All fleets, the host they run on, the trust in time, and the events not yet told. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/fleet.h"
#include "model/pressure.h"
#include "settings/settings.h"

/* Trust in time (P9): after a suspend, a clock step or a stall, what came before `since` is no evidence. */
struct doubt {
        usec_t since;     /* 0: never in doubt */
        usec_t due;       /* the latest time at which the next tick was promised; 0: no tick yet */
        int64_t boot_lag; /* CLOCK_BOOTTIME - CLOCK_MONOTONIC at the last tick */
        int64_t real_lag; /* CLOCK_REALTIME - CLOCK_MONOTONIC at the last tick */
};

struct world {
        const struct settings *settings; /* not owned */
        struct fleet **fleets;           /* owned */
        size_t n_fleets;
        uint64_t seed; /* of the jitter of the next fleet */

        struct doubt doubt;
        uint64_t available_bytes; /* memory available to an extra process; 0: not known */
        bool oom_known;
        uint64_t oom_kills; /* of the kernel, on this machine, as last read */
        usec_t oom_at;      /* when they were last seen to have become more; 0: never */

        struct pressure pressure;                 /* zeroes without pressure_limit */
        struct pressure_reading pressure_reading; /* the last */

        const struct orderer *by; /* whose order is carried out now, borrowed; NULL: nobody's */

        bool shutting_down;
        bool shutdown_now; /* asked twice */
        usec_t shutdown_at;

        uint64_t event_totals[_EVENT_MAX]; /* those of no fleet, since sqmgr started */
        struct event *events;              /* owned: world_events_clear() after telling them */
        size_t n_events;
        size_t events_allocated;
};

/* Makes a world of a fleet for each section of settings, which must outlive it. seed feeds the jitter of
 * backoff. Returns -ENOMEM, or 0 with *ret to be freed by world_free(). */
int world_new(const struct settings *settings, uint64_t seed, struct world **ret);
struct world *world_free(struct world *world);

/* Puts other settings in force, which have all fleets that there are (settings_merge()): those that are
 * missing are added, those that are removed drain. Workers that would be started otherwise now are outdated.
 * Returns 0, or -ENOMEM: then nothing is changed. */
int world_reload(struct world *world, const struct settings *settings, usec_t now);

/* Forgets the removed fleets that have no workers and no templates. No event may tell of them any more. */
void world_forget_removed(struct world *world);

/* The fleet of that name, or NULL. */
struct fleet *world_fleet(const struct world *world, const char *name);

/* How the end of sqmgr comes forward: "2 workers left, 3 running jobs, 25s until all are told to exit".
 * Returns text. */
const char *world_stopping_text(const struct world *world, usec_t now, char *text, size_t size);

/* The worker of id "FLEET/INDEX", or NULL. */
struct worker *world_worker(const struct world *world, const char *id);
