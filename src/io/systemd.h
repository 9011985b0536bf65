/* SPDX-License-Identifier: MIT */
/* Asks the service manager why our unit is being stopped. */
#pragma once

#include "base/macro.h"
#include <systemd/sd-event.h>

enum systemd_intent {
        SYSTEMD_UNKNOWN,    /* no answer */
        SYSTEMD_STOPS,      /* our unit is being stopped, or has no pending job */
        SYSTEMD_RESTARTS,   /* our unit is being restarted */
        SYSTEMD_SHUTS_DOWN, /* the machine or the user's manager is shutting down */
};

struct systemd_query;

/* Asks without waiting: over the manager's private socket, or, in a system service of another user than root,
 * over the system bus. answered() is called once, at the latest after 2 s, unless the query is freed before.
 * Returns 0 with *ret to be freed by systemd_query_free(), also from within answered(); -ENXIO if we are not
 * a systemd service; or -errno, for example if there is no system bus. */
int systemd_ask(sd_event *event, void (*answered)(enum systemd_intent intent, void *userdata), void *userdata,
                struct systemd_query **ret);
/* Accepts NULL; returns NULL. */
struct systemd_query *systemd_query_free(struct systemd_query *query);

/* As sd_notify(), but never blocks: if systemd does not read, the message is dropped. */
void systemd_notify(const char *text);
