/* SPDX-License-Identifier: MIT */
/* Problems of autoscaling: why a fleet misses its targets. For `doctor`: queues that no worker serves. */
#pragma once

#include "advice/doctor_rules.h"

struct link;
struct problems;
struct queues;
struct world;

/* Adds what keeps a fleet from its targets. A function of struct subsystem. */
void autoscale_problems(const void *self, const struct fleet *fleet, usec_t now, struct problems *problems);

/* The queues of one Redis with autoscaled fleets, as read. */
struct doctor_queues {
        const struct world *world;
        const struct link *link; /* the link of these queues */
        const struct queues *queues;
        /* True if a process outside our fleets serves the queue, or if that is unknown. */
        bool (*foreign_serve)(const char *queue, void *userdata);
        void *userdata;
};
/* Adds findings about jobs that wait in queues that no worker serves. */
void doctor_queues(struct problems *findings, const struct doctor_queues *facts);
