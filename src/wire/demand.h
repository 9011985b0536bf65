/* SPDX-License-Identifier: MIT */
/* Derives from a reply to GetStatus what the queues of each fleet demand, for scalers outside of sqmgr. */
#pragma once

#include "wire/json.h"

/* Lists the fleets of a reply to GetStatus (NULL or null: no reply, no fleets), each with the members that
 * sqmgrctl(1) describes at `demand`. A member that is not known is null; so are all members of autoscaling
 * for a fleet without active_process_max.
 *
 * The caller owns the list; NULL if memory is short. */
json_t *demand_fleets(const json_t *status);
