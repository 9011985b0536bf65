/* SPDX-License-Identifier: MIT */
/* Follows restarts for those who wait for them: tells what moved, and when they have ended. */
#pragma once

#include "daemon/api/events.h"
#include "daemon/api/server.h"
#include <systemd/sd-event.h>

struct fleet;
struct world;

/* All restarts that are waited for. */
struct watch_list {
        struct watch *first; /* NULL in the beginning */
        const struct world *world;
        const struct events *events;
        sd_event *event;
};

struct watch_order {
        bool refused;        /* the fleet is stopped, so that there is nothing to wait for */
        uint64_t superseded; /* the generation of a restart that was running; 0: none was */
};

struct watch_request {
        struct fleet *const *fleets;
        const struct watch_order *orders; /* what became of the order just given for each; NULL: none was */
        size_t n_fleets;
        bool wait; /* the call is kept until the restarts have ended; newer ones of these fleets are followed
                    */
        bool drained; /* ended: the old workers are gone, too */
        bool workers; /* the replies tell the workers, too, and one comes each second */
};

/* Answers how the restarts of these fleets stand. */
void watch_reply(struct watch_list *list, struct call *call, const struct watch_request *request, usec_t now);

/* Sends what has moved since, and what went wrong. */
void watch_tick(struct watch_list *list, usec_t now);
