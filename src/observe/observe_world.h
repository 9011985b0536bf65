/* SPDX-License-Identifier: MIT */
/* Records observations of the machine, of time and of whole fleets. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/reader_state.h"

struct fleet;
struct worker;
struct world;

/* Records the time of a tick by three clocks, in microseconds. Returns true if time became doubtful since the
 * last tick (P9). Call observe_time() afterwards. */
bool observe_clocks(struct world *world, usec_t monotonic, usec_t boottime, usec_t realtime);

/* Records the memory that is available now, in bytes. */
void observe_available_memory(struct world *world, uint64_t bytes);

/* Records the number of processes that the kernel's OOM killer has ended so far. The first reading is only
 * the baseline. */
void observe_oom_kills(struct world *world, uint64_t kills, usec_t now);

/* The state was written, or could not be. */
void observe_saved(struct world *world, bool saved, usec_t now);

/* The connection to the fleet's server has this state now; READER_STATE_CONNECTED for a fleet without a
 * server. The first connection reports no event. A server that refuses writes counts as down, since no
 * worker can send heartbeats. */
void observe_server(struct fleet *fleet, enum reader_state state, usec_t now);

static inline void observe_redis(struct fleet *fleet, bool up, usec_t now)
{
        observe_server(fleet, up ? READER_STATE_CONNECTED : READER_STATE_DOWN, now);
}

/* The Sentinels report another server as the fleet's master; from, to: `host:port`. The caller has reported
 * the loss with observe_redis() before. Evidence from the new server counts as after any reconnection. */
void observe_failover(struct fleet *fleet, const char *from, const char *to);

/* An adopted worker cannot be watched: it is released as if never adopted. */
void observe_unadopted(struct worker *worker);

/* durable: the ledger outlives sqmgr. */
void observe_ledger(struct world *world, bool durable);

/* held: starts wait, because processes that may be workers of this fleet are not judged yet. unknown:
 * moreover, the state file has no record of the fleet. */
void observe_hold(struct fleet *fleet, bool held, bool unknown);

/* A worker of this generation was found; raises the fleet's generation to it. */
void observe_generation(struct fleet *fleet, uint64_t generation);
