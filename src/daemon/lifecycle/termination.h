/* SPDX-License-Identifier: MIT */
/* Ends sqmgr: drains the workers, or leaves them running for the next sqmgr. */
#pragma once

#include "daemon/runtime/runtime.h"

struct systemd_query; /* io/systemd.h */

struct termination {
        struct runtime *runtime;     /* not owned */
        struct systemd_query *query; /* asks systemd why sqmgr is to end; NULL: not asked */
};

/* Handles a termination signal. A second signal ends sqmgr faster. */
void termination_request(struct termination *termination, int signo);
void termination_forget(struct termination *termination);
