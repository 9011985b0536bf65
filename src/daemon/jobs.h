/* SPDX-License-Identifier: MIT */
/* Answers what the workers run now, as their last beats told. */
#pragma once

#include "core/world.h"
#include "daemon/server.h"

/* Answers the call once Redis has, with the jobs of these fleets, or with the reason for which they are not
 * known. */
void jobs_reply(struct call *call, struct fleet *const *fleets, size_t n_fleets);
