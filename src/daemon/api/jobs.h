/* SPDX-License-Identifier: MIT */
/* Answers what the workers run now, as their last beats told. */
#pragma once

#include "daemon/api/server.h"
#include "model/world.h"

/* Answers the call once each Redis has, with the jobs of these fleets, and the reasons for which some are not
 * known; where nothing is known with an error. */
void jobs_reply(struct call *call, struct fleet *const *fleets, size_t n_fleets);
