/* SPDX-License-Identifier: MIT */
/* Restarts that are held at a few new workers until their jobs are judged, and returns to the release before.
 */
#pragma once

#include "rng.h"

struct action;
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
};

void trial_open(struct sim *sim);
/* Call before each pass. */
void trial_look(struct sim *sim, unsigned fleet);
/* P2 and P7: what a limit and a return allow. */
void trial_check(struct sim *sim, const struct action *action, const struct process *process);
/* Returns true if the fleet stays below its count until a restart, as the release before is not in memory, and
 * no worker leaves any more. */
bool trial_withholds(const struct sim *sim, unsigned fleet);
