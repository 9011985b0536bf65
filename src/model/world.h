/* SPDX-License-Identifier: MIT */
/* The world: all fleets, their host, the trust in time, and the events not reported yet. */
#pragma once

#include "model/names.h"
#include "model/worker_facts.h"

/* A larger step means a suspend or a clock step: clocks drift less between two ticks. */
#define CLOCK_STEP_USEC ((int64_t)USEC_PER_SEC)

/* Trust in time (P9): after a suspend, a clock step or a stall, nothing from before `since` is evidence. */
struct doubt {
        usec_t since;           /* 0: never in doubt */
        usec_t due;             /* the latest promised time of the next tick; 0: no tick yet */
        int64_t boot_lag;       /* CLOCK_BOOTTIME - CLOCK_MONOTONIC at the last tick */
        int64_t real_lag;       /* CLOCK_REALTIME - CLOCK_MONOTONIC at the last tick */
        usec_t stepped_back_at; /* when the wall clock was last seen to have been stepped back; 0: never */
        usec_t steady_since; /* by CLOCK_BOOTTIME: since then, all steps of the wall clock were seen, and were
                                less than CLOCK_STEP_USEC together */
        int64_t steady_lag;  /* CLOCK_REALTIME - CLOCK_BOOTTIME then */
};

/* True if the wall clock was stepped back since the last tick. */
static inline bool doubt_steps_back(const struct doubt *doubt, usec_t boottime, usec_t realtime)
{
        int64_t ahead = (int64_t)(realtime - boottime);

        return doubt->due != 0 && ahead < doubt->real_lag - doubt->boot_lag - CLOCK_STEP_USEC;
}

struct world {
        const struct settings *settings; /* not owned */
        struct fleet **fleets;           /* owned */
        size_t n_fleets;
        uint64_t seed;     /* for the jitter of the next fleet */
        const char *shims; /* the folder of shims, not owned; NULL: the installed one */

        struct doubt doubt;
        usec_t unsaved_since;     /* since when the state cannot be written; 0: the last write succeeded */
        uint64_t available_bytes; /* memory available to an extra process; 0: not known */
        bool oom_known;
        uint64_t oom_kills; /* count of the kernel's OOM kills on this machine, as last read */
        usec_t oom_at;      /* when that count was last seen to rise; 0: never */

        bool ledger_volatile; /* the ledger would be lost if sqmgr ended: a stop signal that must not be sent
                                 twice waits */
        bool shutting_down;
        bool shutdown_now; /* shutdown was ordered twice */
        usec_t shutdown_at;

        uint64_t event_totals[_EVENT_MAX]; /* events of no fleet, since sqmgr started */
        struct event *events;              /* owned; call world_events_clear() after reporting them */
        size_t n_events;
        size_t events_allocated;
};

/* Loops over the fleets of a world, including removed ones; declares fleet. */
#define WORLD_FOREACH_FLEET(of, fleet) FOREACH_POINTER(fleet, (of)->fleets, (of)->n_fleets)

/* Returns the fleet of that name, or NULL. */
struct fleet *world_fleet(const struct world *world, const char *name);

/* Returns the worker of id "FLEET/INDEX", or NULL. */
struct worker *world_worker(const struct world *world, const char *id);
/* Returns true if a worker or a template has this process. start: 0: any process that had this pid. */
bool world_has_process(const struct world *world, pid_t pid, uint64_t start);

/* Appends an event, and counts it in the totals; fleet and worker may be NULL. Returns the event, valid until
 * the next one is added. Returns NULL if memory is short or too many events are pending: the event is then
 * lost, but counted. */
struct event *world_event(struct world *world, enum event_kind kind, struct fleet *fleet,
                          const struct worker *worker, const char *format, ...) _printf_(5, 6);

/* Appends an event of a worker: the text follows "FLEET/INDEX (pid N)". */
struct event *worker_event(const struct worker *worker, enum event_kind kind, const char *format, ...)
        _printf_(3, 4);

/* Appends an event of a whole fleet: the text follows "fleet 'NAME'". */
struct event *fleet_event(struct fleet *fleet, enum event_kind kind, const char *format, ...) _printf_(3, 4);

/* Marks the event as an order, or as the immediate effect of one. event: NULL if it was lost. by: who gave
 * the order; NULL: not known. */
static inline void event_by(const struct orderer *by, struct event *event)
{
        if (event && by)
                event->by = *by;
}

/* Adds a copy of text from elsewhere to the event. event: NULL if it was lost; quoted: NULL: nothing to add.
 * If memory is short, the event has no quoted text. */
void event_quote(struct event *event, const struct quoted *quoted);

void world_events_clear(struct world *world);
