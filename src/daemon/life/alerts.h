/* SPDX-License-Identifier: MIT */
/* Has alert_command run for events: one after the other, none for longer than it may, like ones together. */
#pragma once

#include "base/usec.h"
#include "daemon/runtime/children.h"
#include <sys/resource.h>
#include <systemd/sd-event.h>

struct event;
struct world;

/* So long one may take. */
#define ALERT_TIMEOUT_USEC (30 * USEC_PER_SEC)

struct alerts;

struct alerts_options {
        sd_event *event;
        const struct world *world; /* its settings are those in force */
        struct children *children; /* who reaps tells us through these */
        struct rlimit nofile;      /* that the command gets */
        usec_t timeout;            /* 0: ALERT_TIMEOUT_USEC */
};

/* What the options point to must outlive the alerts. Returns 0 with *ret to be freed by alerts_free(), or
 * -errno. */
int alerts_new(const struct alerts_options *options, struct alerts **ret);
/* One that is running goes on; those that wait are forgotten. Returns NULL. */
struct alerts *alerts_free(struct alerts *alerts);

/* Something has happened, at realtime by the wall clock. Never blocks; what fails is logged. */
void alerts_event(struct alerts *alerts, const struct event *event, usec_t realtime);
