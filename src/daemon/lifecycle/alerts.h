/* SPDX-License-Identifier: MIT */
/* Publishes events to the log, to clients and to alert_command, and the status to systemd. alert_command has
 * one run at a time, each with a time limit, similar events grouped. */
#pragma once

#include "daemon/api/events.h"
#include "daemon/runtime/runtime.h"

struct event;

/* State of the notifications to systemd. */
struct notify {
        usec_t watchdog_usec; /* watchdog timeout of the unit; 0: no watchdog */
        usec_t fed_at;        /* time of the last watchdog ping */
        char status_text[256];
};

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

/* Reports that sqmgr is ready. */
void notify_ready(struct notify *notify);
/* Reports the status, and sends a watchdog ping when due. Call in each tick. */
void notify_systemd(struct notify *notify, const struct world *world, usec_t now);
/* Latest time of the next call of notify_systemd(). */
usec_t notify_wake_at(const struct notify *notify, usec_t now);
/* Publishes the queued events of the world, and clears the queue. */
void notify_events(struct world *world, struct events *events, struct alerts *alerts);
