/* SPDX-License-Identifier: MIT */
/* Waits for a rollout over many hosts: what happens is shown meanwhile. */
#pragma once

#include "ctl/ctl.h"

/* epoch: of the rollout that was begun. Returns CTL_DONE where all hosts are done, or an exit code. */
int await_rollout(struct ctl *ctl, const char *fleet, long long epoch);
