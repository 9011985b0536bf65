/* SPDX-License-Identifier: MIT */
/* What `doctor` finds of autoscaling: what keeps a fleet from its targets, and queues that nobody serves. */
#pragma once

#include "advice/findings.h"

struct link;
struct queues;
struct world;

/* What keeps its targets from being kept, the i-th such thing: one sentence, with what to do about it.
 * Returns false where there are no more. */
bool autoscale_trouble(const struct fleet *fleet, size_t i, usec_t now, char text[static DOCTOR_TROUBLE_MAX],
                       const char **ret_remedy);

/* What was read of the queues of one Redis of which fleets' counts follow queues. */
struct doctor_queues {
        const struct world *world;
        const struct link *link; /* theirs */
        const struct queues *queues;
        /* Takes a process from it that is of none of our fleets? True, too, where that is not known. */
        bool (*others_serve)(const char *queue, void *userdata);
        void *userdata;
};
/* Tells of jobs that wait where nobody takes them. */
void doctor_queues(struct findings *findings, const struct doctor_queues *facts);
