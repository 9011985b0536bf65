/* SPDX-License-Identifier: MIT */
/* Takes over the workers of an earlier sqmgr. */
#pragma once

#include "daemon/takeover/persist.h"

/* What is not clear at once is looked for a while longer; none is started meanwhile in a fleet that it may be
 * of. settings: those in force, which fleets are added to that are no longer configured. Returns 0, or
 * -errno where a worker that lives cannot be watched: then no fleet may run. */
int adopt_begin(struct runtime *runtime, struct persist *persist, struct settings *settings, usec_t now);
struct search *adopt_free(struct search *search);
