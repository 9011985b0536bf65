/* SPDX-License-Identifier: MIT */
/* What a command leaves behind that goes to the background. */
#pragma once

#include "daemon/run/crew.h"
#include "io/proc.h"

/* What lives on of a worker whose process has exited before any of it beat. As subreaper we are its parent
 * now. To be closed; NULL: nothing. */
struct proc *heir_find(const struct crew *crew, const struct worker *worker);
