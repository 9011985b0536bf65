/* SPDX-License-Identifier: MIT */
/* Publishes events to the log, to clients and to alert_command, and the status to systemd. */
#pragma once

#include "daemon/api/events.h"
#include "daemon/lifecycle/alerts.h"

/* State of the notifications to systemd. */
struct notify {
        usec_t watchdog_usec; /* watchdog timeout of the unit; 0: no watchdog */
        usec_t fed_at;        /* time of the last watchdog ping */
        char status_text[256];
};

/* Reports that sqmgr is ready. */
void notify_ready(struct notify *notify);
/* Reports the status, and sends a watchdog ping when due. Call in each tick. */
void notify_systemd(struct notify *notify, const struct world *world, usec_t now);
/* Latest time of the next call of notify_systemd(). */
usec_t notify_wake_at(const struct notify *notify, usec_t now);

/* Publishes the queued events of the world, and clears the queue. */
void notify_events(struct world *world, struct events *events, struct alerts *alerts);
