/* SPDX-License-Identifier: MIT */
/* Answers what the workers run now, as their last beats told. */
#pragma once

#include "daemon/api/server.h"

struct fleet;

/* The calls that wait for an answer. */
struct jobs_calls {
        struct query *first; /* NULL in the beginning */
        usec_t view_at;      /* the last reading for those who may only look; 0: none was */
};

/* Answers the call once each Redis has, with the jobs of these fleets, and the reasons for which some are not
 * known; where nothing is known with an error. One reading serves all who ask for the same while it lasts.
 * Who may only look is refused where another such has been read for within the last second. */
void jobs_calls_add(struct jobs_calls *list, struct call *call, struct fleet *const *fleets, size_t n_fleets,
                    usec_t now);
