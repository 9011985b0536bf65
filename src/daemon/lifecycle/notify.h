/* SPDX-License-Identifier: MIT */
/* Tells the world outside how things stand: the events to the log, to clients and to alert_command, the
 * status to systemd. */
#pragma once

#include "daemon/api/events.h"
#include "daemon/lifecycle/alerts.h"

/* What systemd was told. */
struct notify {
        usec_t watchdog_usec; /* how often it wants to hear from us; 0: never */
        usec_t fed_at;        /* it last did */
        char status_text[256];
};

/* That sqmgr has come up. */
void notify_ready(struct notify *notify);
/* How the world stands; to be called with each turn. */
void notify_systemd(struct notify *notify, const struct world *world, usec_t now);
/* When it must be called again at the latest. */
usec_t notify_wake_at(const struct notify *notify, usec_t now);

/* Tells of the events, and clears them. */
void notify_events(struct world *world, struct events *events, struct alerts *alerts);
