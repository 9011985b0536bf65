/* SPDX-License-Identifier: MIT */
/* The order to restart all hosts of a group. */
#pragma once

#include "ctl/ctl.h"

/* Carries out restart --everywhere. Returns an exit code. */
int group_rollout_restart(struct ctl *ctl);
