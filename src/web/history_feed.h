/* SPDX-License-Identifier: MIT */
/* What of the instances goes into the history. No I/O, no clock. */
#pragma once

#include "web/history.h"
#include "web/instances.h"

/* How the fleets are now of those instances that answer. latency_seconds is that of the queue that waits
 * longest of all that its sqmgr knows: which queues a fleet serves is not told. *ret is to be freed, and
 * borrows its strings from the instances. Returns how many there are, or -ENOMEM. */
ssize_t history_feed_samples(const struct instances *instances, struct history_sample **ret);

/* What an event is called as a mark (`restart`, `crash`, `halt`, ...); NULL where it is none. */
const char *history_feed_mark_name(const char *event);
