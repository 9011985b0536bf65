/* SPDX-License-Identifier: MIT */
/* Runs alert_command for events: one run at a time, each with a time limit, similar events grouped. */
#pragma once

#include "daemon/runtime/runtime.h"

struct event;

/* Time limit of one run of alert_command. */
#define ALERT_TIMEOUT_USEC (30 * USEC_PER_SEC)

struct alerts;

/* runtime must outlive the alerts. A run is killed after timeout. Returns 0 with *ret, to be freed with
 * alerts_free(), or -errno. */
int alerts_new(struct runtime *runtime, usec_t timeout, struct alerts **ret);
/* Drops waiting alerts; a running command continues. Returns NULL. */
struct alerts *alerts_free(struct alerts *alerts);

/* Queues an alert for an event at wall clock time realtime. Never blocks; failures are logged. */
void alerts_event(struct alerts *alerts, const struct event *event, usec_t realtime);
