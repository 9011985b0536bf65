/* SPDX-License-Identifier: MIT */
/* Answers GetJobs: the running jobs of the workers, as of their last heartbeats. */
#pragma once

#include "daemon/api/api_server.h"

struct fleet;

/* The calls that wait for a reply. */
struct jobs_calls {
        struct jobs_query *first; /* NULL initially */
        usec_t view_at;           /* start of the last reading for a read-only client; 0: none */
};

/* Replies once each Redis has answered, with the jobs of these fleets and the reasons why some are unknown.
 * Replies with an error if nothing is known. Calls for the same fleets share one reading while it runs. A
 * read-only client is refused if another reading for one runs or began within the last second. */
void jobs_calls_add(struct jobs_calls *list, struct call *call, struct fleet *const *fleets, size_t n_fleets,
                    usec_t now);
