/* SPDX-License-Identifier: MIT */
/* Ends sqmgr: drains the workers, or leaves them running for the next sqmgr. */
#pragma once

#include "daemon/runtime/runtime.h"

/* Handles a termination signal: drains the workers, or leaves them running for the next sqmgr. Under systemd,
 * a SIGTERM first asks systemd for the reason, without waiting. A second signal ends sqmgr faster. */
void termination_request(struct runtime *runtime, int signo);
/* Cancels the query to systemd, if any. Call before the loop is freed. */
void termination_forget(struct runtime *runtime);
