/* SPDX-License-Identifier: MIT */
/* How sqmgr ends: it drains its workers, or leaves them to the next one. */
#pragma once

#include "daemon/runtime/runtime.h"

struct systemd_query; /* io/systemd.h */

struct termination {
        struct runtime *runtime;     /* not owned */
        struct systemd_query *query; /* told to end, systemd is asked why; NULL: it is not */
};

/* Told to end by this signal; a second one ends faster. */
void termination_request(struct termination *termination, int signo);
void termination_forget(struct termination *termination);
