/* SPDX-License-Identifier: MIT */
/* Derives what the queues of a fleet demand, in figures for scalers outside of sqmgr. */
#pragma once

#include "base/macro.h"

struct fleet;

/* Figures of the last reading. A figure that is not known is 0, and an outer scaler must not act on it. The
 * queues are the served ones that have a target and are not paused. */
struct demand {
        bool waiting_known, latency_known, backlog_known, needed_known;
        uint64_t waiting;       /* jobs */
        double latency_seconds; /* how long the oldest of these jobs has waited; 0: none waits */
        double backlog_seconds; /* waiting jobs times the time that a job takes: how long one thread needs */
        unsigned needed;        /* workers, whatever the limits of the settings and the memory are */
        double needed_threads;  /* the same in threads, not rounded: for sums over many hosts */
};

/* The fleet must be autoscaled (fleet_scales()). */
void demand_derive(const struct fleet *fleet, struct demand *ret);
