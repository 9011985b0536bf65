/* SPDX-License-Identifier: MIT */
/* Asks the systemd that runs us what it has in mind. */
#pragma once

#include "base/macro.h"
#include <systemd/sd-event.h>

enum systemd_intent {
        SYSTEMD_UNKNOWN,    /* it did not say */
        SYSTEMD_STOPS,      /* our unit is to stop, or was told nothing */
        SYSTEMD_RESTARTS,   /* our unit is to start again */
        SYSTEMD_SHUTS_DOWN, /* everything ends: the machine, or the user's manager */
};

struct systemd_query;

/* Asks over the manager's private socket, which needs no message bus, without waiting: answered is called
 * once, after 2 s at the latest, unless the query is freed before. Returns 0 with *ret, to be freed by
 * systemd_query_free() (in answered, too); -ENXIO where we are no service of systemd's; or -errno. */
int systemd_ask(sd_event *event, void (*answered)(enum systemd_intent intent, void *userdata), void *userdata,
                struct systemd_query **ret);
/* Takes NULL, and returns NULL. */
struct systemd_query *systemd_query_free(struct systemd_query *query);

/* As sd_notify(), which waits where systemd does not read: what finds no place is lost. */
void systemd_notify(const char *text);
