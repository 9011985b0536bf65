/* SPDX-License-Identifier: MIT */
/* Folds what was observed of the machine, of time and of a fleet as a whole into the model. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct worker;
struct world;

/* The time of a tick by three clocks, in microseconds. Returns true where time became doubtful since the last
 * (P9). Follow with observe_time(). */
bool observe_clocks(struct world *world, usec_t monotonic, usec_t boottime, usec_t realtime);

void observe_available_memory(struct world *world, uint64_t bytes);

/* How many processes the kernel's OOM killer has ended so far; the first reading tells nothing yet. */
void observe_oom_kills(struct world *world, uint64_t kills, usec_t now);

void observe_redis(struct fleet *fleet, bool up, usec_t now);

/* Its Redis is another server now, as the Sentinels told; both as `host:port`. What is read there is judged
 * as after any loss, which observe_redis() has told before. */
void observe_failover(struct fleet *fleet, const char *from, const char *to);

/* It was adopted and cannot be watched: as if it had not been. */
void observe_unadopted(struct worker *worker);

/* Not all that may be workers of this fleet are known: none is started before that time. 0: they are.
 * unknown: nor does a state tell of any. */
void observe_hold(struct fleet *fleet, usec_t until, bool unknown);

/* A worker of this generation was found. */
void observe_generation(struct fleet *fleet, uint64_t generation);

/* Another machine has the name of this host in the rollout_group of the fleet, or no longer. */
void observe_name_taken(struct fleet *fleet, bool taken);
