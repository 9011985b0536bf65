/* SPDX-License-Identifier: MIT */
/* Adopts the workers of an earlier sqmgr. */
#pragma once

#include "daemon/takeover/persist.h"

/* Adopts the workers named in the state, and searches for others. Unclear processes are searched for a while
 * longer; meanwhile no worker is started in fleets that they may belong to. settings are the current
 * settings; fleets that are no longer configured but still have workers are added to them. Returns 0, or
 * -errno if a running worker cannot be watched: then no fleet may run. */
int adopt_begin(struct runtime *runtime, struct persist *persist, struct settings *settings, usec_t now);
/* Ends the search, if any. Accepts NULL; returns NULL. */
struct search *adopt_free(struct search *search);
/* Continues a search that awaits answers of the readers (daemon/runtime/proc_facts.h). */
void adopt_resume(struct persist *persist);
