/* SPDX-License-Identifier: MIT */
/* Links whose server is in quarantine (continuity/quarantine.h). Their connection is opened once per
 * QUARANTINE_PERIOD_USEC, for one poll of the heartbeats. Their fleets count as fleets whose server is down:
 * what was read is shown, and no worker is signaled. */
#pragma once

#include "daemon/runtime/links.h"

/* Call once, before the loop runs. Judges how the sqmgr before ended, and reports it. Returns 0 or -ENOMEM.
 */
int links_judge_crash(struct links *links, usec_t now);
/* Ends all quarantines: the servers are connected to again as soon as the loop runs. */
void links_end_quarantine(struct links *links);
