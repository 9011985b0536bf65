/* SPDX-License-Identifier: MIT */
/* What follows from a life that ended too soon. */
#include "model/failure.h"
#include "model/backoff.h"
#include "model/fleet.h"
#include "model/rollout.h"

void failure_back_off(struct fleet *fleet, usec_t now)
{
        backoff_fail(&fleet->crash, fleet->settings->backoff_min, fleet->settings->backoff_max,
                     &fleet->random, now);
}

void failure_observe(struct fleet *fleet, uint64_t generation, usec_t spawned_at, bool short_life, usec_t now)
{
        if (short_life)
                failure_back_off(fleet, now);
        fleet->crash_last_apart = !short_life;
        if (generation == fleet->generation && fleet->redis_up && fleet->redis_at <= spawned_at)
                rollout_observe_failure(fleet, now);
}
