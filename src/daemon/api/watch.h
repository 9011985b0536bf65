/* SPDX-License-Identifier: MIT */
/* Follows restarts for waiting clients: reports progress and the end. */
#pragma once

#include "daemon/api/api_server.h"
#include "daemon/api/events.h"
#include "model/fleet.h"
#include <systemd/sd-event.h>

struct world;

/* All restarts that clients wait for. */
struct watch_list {
        struct watcher *first; /* NULL initially */
        const struct world *world;
        const struct events *events;
        sd_event *event;
};

struct watch_order {
        enum fleet_order kept; /* ORDER_RUN: restarted; otherwise the fleet remains stopped or quieted, and
                                  there is no restart to wait for */
        uint64_t superseded;   /* generation of the interrupted restart; 0: none */
        uint64_t returned_to;  /* follow the return to this generation instead of a restart; 0: a restart */
        /* Why the fleet does not return, a reason of the error NotInMemory: there is no return to wait for.
         * NULL: it returns. */
        const char *not_in_memory;
};

struct watch_request {
        struct fleet *const *fleets;
        const struct watch_order *orders; /* result of the order just given, per fleet; NULL: no order */
        size_t n_fleets;
        /* Keep the call until the restarts have ended. Newer restarts of these fleets are followed, too. */
        bool wait;
        bool drained; /* ended means: the old workers have exited, too */
        bool workers; /* replies include the workers and are sent every second */
};

/* Returns the members of the error NotInMemory, a new reference; NULL when memory is short. */
json_t *watch_render_not_in_memory(const struct fleet *fleet, const char *reason);

/* Replies with the progress of the restarts or returns of these fleets. Copies what it needs from *request.
 */
void watch_reply(struct watch_list *list, struct call *call, const struct watch_request *request, usec_t now);

/* Sends progress, warnings and errors to the waiting clients. */
void watch_tick(struct watch_list *list, usec_t now);
