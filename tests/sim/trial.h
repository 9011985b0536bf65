/* SPDX-License-Identifier: MIT */
/* Restarts that are held at a few new workers until their jobs are judged, and returns to the release before.
 */
#pragma once

#include "base/macro.h"
#include "rng.h"

struct action;
struct worker;
struct process;
struct sim;

/* The trials of a fleet. */
struct trial_sim {
        struct rng rng;
        bool tries;          /* restarts of the fleet are judged, and it may return */
        uint64_t generation; /* of the restart for which the following was chosen */
        unsigned limit;
        usec_t until;     /* when the verdict falls */
        bool worse;       /* the verdict */
        usec_t return_at; /* when the operator orders the return; USEC_INFINITY: never */
        usec_t kill_at;   /* when the template that is returned to dies; USEC_INFINITY: never */
};

void trial_open(struct sim *sim);
/* Call before each pass. */
void trial_look(struct sim *sim, unsigned fleet);
/* P2 and P7: what a limit and a return allow. */
void trial_check(struct sim *sim, const struct action *action, const struct process *process);
/* Returns true if the fleet stays below its count until a restart, as the release before is not in memory,
 * and no worker leaves any more. */
bool trial_withholds(const struct sim *sim, unsigned fleet);

/* Interruptible jobs: some fleets name the class of some jobs in `interruptible`. */
void interrupt_open(struct sim *sim);
/* Returns the number of jobs that the process runs and that are of another class. */
unsigned interrupt_plain_jobs(const struct process *process);
/* Returns the end, moved by less than 10 us: a job that ends then instead of before stays of its class. */
usec_t interrupt_end(usec_t before, usec_t end);
/* Reads the work list of a quieted worker, as its last heartbeat copied it. */
void interrupt_look(struct sim *sim, struct worker *worker);
