/* SPDX-License-Identifier: MIT */
/* Carries out the calls of the control interface: checks what they ask for, records it in the model, replies.
 */
#pragma once

#include "daemon/api/metrics.h"
#include "daemon/api/server.h"
#include "daemon/api/status.h"
#include "daemon/run/group_orders.h"

struct fleet;
struct orderer;
struct tick_totals;

/* What the daemon lends. Everything must outlive the control. */
struct control_host {
        struct world *world;
        sd_event *event;
        const char *version;
        usec_t started_at; /* monotonic */
        const struct tick_totals *ticks;
        const struct status_settings *settings;
        struct groups *groups;

        /* Reads the configuration again. 0: *ret_lines says what changed; 1: refused, *ret_lines says why; a
         * line each, NULL-terminated, list and lines to be freed by the caller. -errno: *ret_lines is
         * untouched. */
        int (*reload)(void *userdata, const struct orderer *by, char ***ret_lines);
        /* Has the installed program take the place of this one, which answers the call. */
        void (*reexec)(void *userdata, struct call *call);
        /* Answers the call once the queues have been read. */
        void (*queues)(void *userdata, struct call *call);
        /* Has the call answered with control_metrics(), once the queues have been read. */
        void (*metrics)(void *userdata, struct call *call);
        /* Answers the call with the jobs that run in these fleets, or keeps it until Redis has told. */
        void (*jobs)(void *userdata, struct call *call, struct fleet *const *fleets, size_t n_fleets);
        /* Answers the call once the surroundings have been checked. */
        void (*doctor)(void *userdata, struct call *call);
        /* Fills entries, max at most, with what stays valid until the loop's next turn; returns their number.
         */
        size_t (*redis)(void *userdata, struct status_redis *entries, size_t max);
        /* A number that changes whenever the model has: status replies are rendered once for each. */
        uint64_t (*serial)(void *userdata);
        /* A command has changed the model: plan soon. */
        void (*changed)(void *userdata);
        usec_t (*now)(void *userdata); /* monotonic */
        void *userdata;
};

struct control;

/* Returns 0 with *ret to be freed by control_free(), or -ENOMEM. The host is copied. */
int control_new(const struct control_host *host, struct control **ret);
/* After server_free(), which cancels the calls that are kept here. Returns NULL. */
struct control *control_free(struct control *control);

/* The server's handler; userdata is the control. */
void control_handle(struct call *call, const struct control_method *method, json_t *parameters,
                    void *userdata);

/* What answers GetMetrics now. To be released; NULL: memory is short. */
json_t *control_metrics(const struct control *control);

/* What answers a Reexec that the image before was called for. To be released; NULL: memory is short. */
json_t *control_reexec_reply(const struct control *control);

/* What has happened, for those who ask later or follow; realtime by the wall clock. */
void control_event(struct control *control, const struct event *event, usec_t realtime);

/* Tells those who wait for restarts what has moved. After each plan, before fleet_reap() or after it. */
void control_tick(struct control *control, usec_t now);
