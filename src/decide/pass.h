/* SPDX-License-Identifier: MIT */
/* One pass over all fleets: observe the time, plan, save, execute, and when to look and wake next. The
 * shell's part is handed in: the daemon's, a test's, the simulator's. */
#pragma once

#include "base/usec.h"
#include "decide/plan.h"

struct process;
struct world;

/* How many passes there were, and how long they took in all. */
struct tick_totals {
        uint64_t n;
        usec_t usec;
};

struct pass {
        struct world *world; /* not owned */
        struct plan plan;    /* to be freed by plan_free() */
        bool unsaved;        /* what the state holds may have changed */
        uint64_t serial;     /* changes whenever the model may have */

        usec_t poll_at; /* the next look, at all workers or at some; USEC_INFINITY: set by pass_wake_at() */
        usec_t regular_at;  /* the last look at all */
        uint64_t n_regular; /* of these so far */
        bool calm;          /* at the last pass_wake_at(): nothing was in transition */
        struct tick_totals ticks;
};

struct pass_ops {
        /* Writes the state; starting: as state_pack() takes it, NULL outside of starts. Returns false where
         * it is not written: it is asked again with the next pass. */
        bool (*save)(const struct plan *starting, usec_t now, void *userdata);
        /* Carries out one action, and observes what became of it. Returns false where nothing did. */
        bool (*execute)(const struct action *action, usec_t now, void *userdata);
        /* Frees what the shell holds of a worker that is forgotten; NULL: there is nothing. */
        void (*release)(struct process *process);
};

/* What the clocks say; see observe_clocks(). */
struct pass_clocks {
        usec_t monotonic;
        usec_t boottime;
        usec_t realtime;
};

/* The timer went off: what is to be looked at now, before pass_run()? */
enum pass_poll {
        PASS_POLL_NONE,
        PASS_POLL_FAST, /* at those that are in transition */
        PASS_POLL_REGULAR,
};
enum pass_poll pass_poll(struct pass *pass, usec_t now);

/* Plans and executes until nothing more comes of it, but never without end. The state is saved before and
 * after starts, and where anything else that it holds has changed or events tell of something. Returns 0, or
 * -ENOMEM where a plan was incomplete: it is made again at the next pass. */
int pass_run(struct pass *pass, const struct pass_ops *ops, const struct pass_clocks *clocks, void *userdata);

/* When the timer must go off for the next pass, beyond now. */
usec_t pass_wake_at(struct pass *pass, usec_t now);
