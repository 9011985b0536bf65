/* SPDX-License-Identifier: MIT */
/* Has the queues of each Redis read, and compared with their limits. One reading of all serves whoever asks
 * while it lasts. What was read stands in the links. */
#pragma once

#include "daemon/runtime/links.h"

/* Begins one, unless it is under way. */
void queue_reading_begin(struct links *links);
/* The same where there is a limit to compare with. */
void queue_reading_poll(struct links *links);
/* True once, when all that was asked has answered: it is compared with the limits, which may add events. */
bool queue_reading_tick(struct links *links);

/* Why there are none of this Redis; "": they were read. */
const char *queue_reading_error(const struct link *link);
