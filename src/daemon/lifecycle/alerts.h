/* SPDX-License-Identifier: MIT */
/* Has alert_command run for events: one after the other, none for longer than it may, like ones together. */
#pragma once

#include "daemon/runtime/runtime.h"

struct event;

/* How long one run of alert_command may take. */
#define ALERT_TIMEOUT_USEC (30 * USEC_PER_SEC)

struct alerts;

/* crew must outlive the alerts; a run is killed after timeout. Returns 0 with *ret to be freed by
 * alerts_free(), or -errno. */
int alerts_new(struct runtime *runtime, usec_t timeout, struct alerts **ret);
/* One that is running goes on; those that wait are forgotten. Returns NULL. */
struct alerts *alerts_free(struct alerts *alerts);

/* Something has happened, at realtime by the wall clock. Never blocks; what fails is logged. */
void alerts_event(struct alerts *alerts, const struct event *event, usec_t realtime);
