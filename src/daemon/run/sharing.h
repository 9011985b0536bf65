/* SPDX-License-Identifier: MIT */
/* The share that each host of a group takes of what its queues need: has it told and read for each fleet
 * whose count follows them and that has rollout_group. Of others nothing is asked. */
#pragma once

#include "daemon/run/links.h"

struct autoscale_reading;
struct fleet;

/* With each regular look, once it is known from which queues the fleets take. */
void sharing_look(struct link *link, usec_t now);
/* Puts into the reading of one fleet what other hosts tell, and what the crowd has counted besides. */
void sharing_take(const struct fleet *fleet, struct autoscale_reading *reading, usec_t now);
