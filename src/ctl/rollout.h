/* SPDX-License-Identifier: MIT */
/* Orders to all hosts of a group: restart --everywhere, and abort --everywhere. They return an exit code. */
#pragma once

#include "ctl/ctl.h"

int rollout_restart(struct ctl *ctl);
int rollout_abort(struct ctl *ctl);
