/* SPDX-License-Identifier: MIT */
/* Follows restarts for those who wait for them: tells what moved, and when they have ended. */
#pragma once

#include "daemon/api/server.h"
#include "model/world.h"

/* All restarts that are waited for. Zero is an empty list. */
struct watch_list {
        struct watch *first;
};

struct watch_order {
        bool refused;        /* the fleet is stopped, so that there is nothing to wait for */
        uint64_t superseded; /* the generation of a restart that was running; 0: none was */
};

/* Answers how the restarts of these fleets stand; orders[i]: what became of the order
 * just given for it; orders may be NULL. Where wait, the call is kept until the
 * restarts have ended (drained: until the old workers are gone); newer restarts of these fleets are followed.
 */
void watch_reply(struct watch_list *list, struct call *call, const struct world *world,
                 struct fleet *const *fleets, const struct watch_order *orders, size_t n_fleets, bool wait,
                 bool drained, usec_t now);

/* Sends what has moved since. */
void watch_tick(struct watch_list *list, const struct world *world, usec_t now);
