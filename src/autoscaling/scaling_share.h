/* SPDX-License-Identifier: MIT */
/* The share that each host of a group takes of the need of its queues. Shares are written and read for
 * each autoscaled fleet with rollout_group. Other fleets cost nothing. */
#pragma once

#include "base/usec.h"

struct autoscale_reading;
struct fleet;
struct scaled_link;
struct scaling_share;

/* Call at each regular poll, after the queues that the fleets serve were determined. */
void scaling_share_poll(struct scaled_link *scaled, usec_t now);
/* Adds the shares of other hosts and the count of foreign consumers to the reading of one fleet. */
void scaling_share_take(const struct scaled_link *scaled, const struct fleet *fleet,
                        struct autoscale_reading *reading, usec_t now);
/* Frees the whole list. */
void scaling_share_free(struct scaling_share *scaling_share);
