/* SPDX-License-Identifier: MIT */
/* What `doctor` finds of autoscaling: what keeps a fleet from its targets, and queues that nobody serves. */
#pragma once

#include "advice/findings.h"

struct link;
struct queues;
struct world;

/* Adds what keeps the targets of a fleet from being kept; as struct subsystem has it. */
void autoscale_trouble(const void *self, const struct fleet *fleet, const char *about, usec_t now,
                       struct findings *findings);

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
