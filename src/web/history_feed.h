/* SPDX-License-Identifier: MIT */
/* Converts the state and events of instances to samples and marks of the history. No I/O, no clock. */
#pragma once

#include "web/history.h"
#include "web/instances.h"

/* Makes a sample of each fleet of the reachable instances. latency_seconds is the highest latency of all
 * queues that the fleet's sqmgr reports, because sqmgr does not report which queues a fleet serves. Free
 * *ret; its strings are borrowed from the instances. Returns the number of samples, or -ENOMEM. */
ssize_t history_feed_samples(const struct instances *instances, struct history_sample **ret);

/* Returns the mark's name for an event (`restart`, `crash`, `halt`, ...), or NULL if the event has no
 * mark. */
const char *history_feed_mark_name(const char *event);
