/* SPDX-License-Identifier: MIT */
/* Answers what the workers run now, as their last beats told. */
#pragma once

#include "daemon/api/server.h"
#include "model/world.h"

/* The calls that wait for an answer. */
struct jobs_calls {
        struct query *first; /* NULL in the beginning */
};

/* Answers the call once each Redis has, with the jobs of these fleets, and the reasons for which some are not
 * known; where nothing is known with an error. One reading serves all who ask for the same while it lasts. */
void jobs_calls_add(struct jobs_calls *list, struct call *call, struct fleet *const *fleets, size_t n_fleets);
