/* SPDX-License-Identifier: MIT */
/* Decides about workers that outlive their client; see the header. */
#include "observe/leftover.h"
#include "model/world.h"

/* Heartbeats in a row that prove idleness, as of other workers without title and threads. */
#define IDLE_HEARTBEATS 2

static enum leftover_step next_step(struct leftover *leftover, const struct fleet *fleet,
                                    const struct heartbeat *heartbeat, usec_t now)
{
        usec_t drain = fleet->settings->drain_timeout;
        bool late = drain > 0 && usec_sub(now, leftover->since) >= drain;
        bool repeats = leftover->unheeded >= WORKER_NOT_QUIET_HEARTBEATS;

        if (late || leftover->stopped || leftover->idle_count >= IDLE_HEARTBEATS)
                return !leftover->stopped || repeats ? LEFTOVER_STOP : LEFTOVER_WAIT;
        return !heartbeat->quiet && (!leftover->signaled || repeats) ? LEFTOVER_QUIET : LEFTOVER_WAIT;
}

enum leftover_step leftover_observe(struct leftover *leftover, const struct fleet *fleet,
                                    const struct heartbeat *heartbeat, usec_t now)
{
        usec_t alive_at = MAX(MAX(leftover->changed_at, leftover->since),
                              MAX(fleet->redis_at, fleet->world->doubt.since));
        bool first = leftover->written_usec == 0;

        /* An earlier time is a change, too: the clock of that machine may have gone back. If a living
         * process counted as dead, its jobs would run twice. */
        if (!heartbeat || heartbeat->sent_usec == leftover->written_usec)
                return usec_sub(now, alive_at) > fleet->settings->traits->stale_usec ? LEFTOVER_ENDED
                                                                                     : LEFTOVER_WAIT;
        leftover->written_usec = heartbeat->sent_usec;
        /* The first one may be the last that the process has sent. */
        if (first)
                return LEFTOVER_WAIT;
        leftover->changed_at = now;
        bool idle = heartbeat->quiet && heartbeat->busy == 0 && heartbeat->work_list_known &&
                    heartbeat->work_list_empty;
        leftover->idle_count = idle ? leftover->idle_count + 1 : 0;
        leftover->unheeded = leftover->stopped || !heartbeat->quiet ? leftover->unheeded + 1 : 0;
        enum leftover_step step = next_step(leftover, fleet, heartbeat, now);
        if (step == LEFTOVER_WAIT)
                return step;
        leftover->unheeded = 0;
        leftover->signaled = true;
        leftover->stopped |= step == LEFTOVER_STOP;
        return step;
}
