/* SPDX-License-Identifier: MIT */
/* The share that each host of a group takes of what its queues need: written and read for each fleet whose
 * count follows them and that has rollout_group. Nothing is asked for other fleets. */
#pragma once

#include "base/usec.h"

struct autoscale_reading;
struct fleet;
struct scaled_link;
struct scaling_share;

/* At each regular poll, once it is known from which queues the fleets take. */
void scaling_share_look(struct scaled_link *scaled, usec_t now);
/* Puts into the reading of one fleet what other hosts have written, and what the count of foreign consumers
 * adds. */
void scaling_share_take(const struct scaled_link *scaled, const struct fleet *fleet,
                        struct autoscale_reading *reading, usec_t now);
/* Frees the whole list. */
void scaling_share_free(struct scaling_share *scaling_share);
