/* SPDX-License-Identifier: MIT */
/* A pass over all fleets: observe the time, plan, save, execute, and compute the times of the next poll and
 * wakeup. The caller provides the I/O: daemon, tests and simulator each pass their own operations. */
#pragma once

#include "decide/plan.h"

struct process;

/* Number of passes, and their total duration. */
struct tick_totals {
        uint64_t n;
        usec_t usec;
};

struct pass {
        struct world *world; /* not owned */
        struct plan plan;    /* to be freed by plan_free() */
        bool unsaved;        /* the contents of the state file may have changed */
        uint64_t serial;     /* raised whenever the model may have changed */

        usec_t poll_at;     /* the next poll of all or some workers; USEC_INFINITY: pass_wake_at() sets it */
        usec_t regular_at;  /* the last regular poll */
        uint64_t n_regular; /* number of regular polls so far */
        bool calm;          /* nothing was in transition at the last pass_wake_at() */
        struct tick_totals ticks;

        usec_t deferred_until; /* when a pass is completed at the latest, with its save; 0: it is complete */
};

struct pass_ops {
        /* Writes the state. Returns false on failure; the next pass then calls save() again. */
        bool (*save)(usec_t now, void *userdata);
        /* Executes one action and observes its result. Returns false if nothing changed. */
        bool (*execute)(const struct action *action, usec_t now, void *userdata);
        /* Frees the caller's data of a forgotten worker (struct process); NULL: workers have none. */
        void (*release)(struct process *process);
};

/* The three clock readings of one pass; see observe_clocks(). */
struct pass_clocks {
        usec_t monotonic;
        usec_t boottime;
        usec_t realtime;
};

/* Returns what to poll now. Call when the timer has expired, before pass_run(); the poll counts as made, so a
 * second call returns PASS_POLL_NONE. */
enum pass_poll {
        PASS_POLL_NONE,
        PASS_POLL_FAST, /* only workers in transition */
        PASS_POLL_REGULAR,
};
enum pass_poll pass_poll(struct pass *pass, usec_t now);

/* Plans and executes until an execution changes nothing, for a bounded number of rounds. Saves the state at
 * the end if its contents have changed or events are pending; without a durable ledger, also before forked
 * workers may continue. Returns 0, or -ENOMEM if a plan was incomplete; the next pass plans again. */
int pass_run(struct pass *pass, const struct pass_ops *ops, const struct pass_clocks *clocks, void *userdata);

/* Returns true if the last pass_run() started workers and left its remaining rounds and the save to the next
 * one. The caller then only sets the timer by pass_wake_at() and sleeps; whatever else it does after a pass
 * waits, too. Always false without a durable ledger. */
bool pass_is_deferred(const struct pass *pass);

/* Returns when the timer must expire for the next pass; always later than now. */
usec_t pass_wake_at(struct pass *pass, usec_t now);
