/* SPDX-License-Identifier: MIT */
/* All fleets, the host they run on, the trust in time, and the events not yet told. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/event.h"
#include "model/pressure.h"
#include "settings/settings.h"

struct fleet;
struct worker;

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

        bool shutting_down;
        bool shutdown_now; /* asked twice */
        usec_t shutdown_at;

        uint64_t event_totals[_EVENT_MAX]; /* those of no fleet, since sqmgr started */
        struct event *events;              /* owned: world_events_clear() after telling them */
        size_t n_events;
        size_t events_allocated;
};

/* Loops over the fleets of a world, those that a reload has removed included; fleet is declared. */
#define WORLD_FOREACH_FLEET(of, fleet) FOREACH_POINTER(fleet, (of)->fleets, (of)->n_fleets)

/* The fleet of that name, or NULL. */
struct fleet *world_fleet(const struct world *world, const char *name);

/* The worker of id "FLEET/INDEX", or NULL. */
struct worker *world_worker(const struct world *world, const char *id);

/* Appends an event; worker may be NULL, and fleet too. Returns the event, which stays in place
 * until the next one, or NULL where memory is short and it is lost: an event is never worth a worker. */
struct event *world_event(struct world *world, enum event_kind kind, struct fleet *fleet,
                          const struct worker *worker, const char *format, ...) _printf_(5, 6);

/* The same of a worker: the text follows "FLEET/INDEX (pid N)". */
struct event *worker_event(const struct worker *worker, enum event_kind kind, const char *format, ...)
        _printf_(3, 4);

/* The same of a fleet as a whole: the text follows "fleet 'NAME'". */
struct event *fleet_event(struct fleet *fleet, enum event_kind kind, const char *format, ...) _printf_(3, 4);

/* The event is one of an order, or follows from an order at once. event: NULL where it was lost. by: who gave
 * the order; NULL: not known. */
static inline void event_by(const struct orderer *by, struct event *event)
{
        if (event && by)
                event->by = *by;
}

void world_events_clear(struct world *world);

/* Memory is so short that no worker beyond the count is started, and none in the place of one that left for
 * it. */
static inline bool pressure_response_holds(const struct world *world)
{
        return world->pressure.high && world->settings->pressure_limit > 0;
}
