/* SPDX-License-Identifier: MIT */
/* Whether all is up, for probes: judged by what GetStatus replies. */
#pragma once

#include "wire/json.h"

/* What is missing, by a reply to GetStatus (null where there is none): a list of sentences, one for each
 * fleet that is to run and has fewer active workers than its count; one of its own where sqmgr is to end, or
 * the reply is none. An empty list: sqmgr is ready. A fleet that is quieted, stopped, drained or switched off
 * (count 0) by its operator is missed by nobody. To be released; NULL: memory is short. */
json_t *ready_lacks(const json_t *status);
