/* SPDX-License-Identifier: MIT */
/* `why FLEET`: what happened to a fleet as a whole, and why it has the count that it has. */
#pragma once

#include "ctl/ctl.h"

/* Of the fleet that the first argument names. Returns an exit code. */
int why_fleet(struct ctl *ctl);
