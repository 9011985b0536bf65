/* SPDX-License-Identifier: MIT */
/* The part of this host in rollouts of a group: calls the script in Redis when due, and executes the
 * decisions of rollout_hosts/group_rules.h. Fleets without rollout_group cause no calls. */
#pragma once

#include "daemon/takeover/persist.h"
#include "daemon/workers/release.h"
#include "rollout_hosts/call.h"
#include "rollout_hosts/group_rules.h"
#include "rollout_hosts/signature_rules.h"

struct fleet;

#define GROUP_ERROR_MAX sizeof(((struct error_report *)NULL)->text)

/* The state of all hosts, as last shown. */
struct group_view {
        struct rollout_reply rollout;
        struct rollout_host *hosts; /* owned */
        size_t n_hosts;
        usec_t at; /* 0: nothing was shown yet */
};

/* A fleet and its group: fleet->group. */
struct host_group {
        struct groups *groups;
        struct fleet *fleet; /* NULL: the fleet has left the group */
        char *name;          /* owned */
        struct rollout_group rule;
        struct rollout_reply last;              /* the last reply */
        struct error_report error;              /* why Redis does not run the script */
        char trouble_reported[GROUP_ERROR_MAX]; /* the trouble last reported by an event */
        uint64_t connection;                    /* reader_connection_count() at the last call */
        size_t n_calls;                         /* calls in progress */
        bool asked, again; /* asked: a tick is in progress; again: another must follow at once */
        bool shows;        /* a `show` call is in progress */
        struct group_view view;
        sd_event_source *renewal;
        struct release_check *check; /* NULL: none is in progress */
        struct host_group *next;
};

struct groups {
        struct persist *persist; /* not owned */
        char instance[17];       /* identifies this boot of the machine, the container, and the sqmgr in it */
        struct host_group *first;
        struct rollout_call *calls; /* pending calls of GetRollouts; see rollouts.c */
};

/* Functions of struct subsystem; self is a struct groups. */
int groups_begin(struct persist *persist, void **ret);
void groups_join(void *self);
void groups_poll(void *self, usec_t now);
void groups_tick(void *self, usec_t now);
void groups_end(void *self);
void groups_pack(const void *self, const struct fleet *fleet, struct codec_writer *writer);
void groups_unpack(void *self, struct fleet *fleet, struct codec_reader *reader);

/* Writes why this host takes no part or cannot know; the text is "" without trouble. Returns ret. */
const struct error_report *group_trouble(const struct host_group *group, struct error_report *ret);

/* For group_orders.c and rollouts.c: */

/* Returns the connection if it is up, else NULL. */
struct reader *group_reader(struct host_group *group, usec_t now);
/* Calls the script with these words, like rollout_call(). rollout: the rollout that the call is for; NULL:
 * the newest that this host knows. fn must first call group_answered(). Returns 0, or -errno: fn is not
 * called then. -ENOTCONN: the connection is not up. */
int group_call(struct host_group *group, const struct rollout_reply *rollout, const char *const words[],
               rollout_call_fn fn, void *userdata);
/* Ends a call. Returns false if the fleet has left the group meanwhile: group may be freed then and must
 * not be used. */
bool group_answered(struct host_group *group);
/* Returns the place that orders of this group are signed for; valid until settings change. */
struct rollout_place group_place(const struct host_group *group);
/* Checks the rollout that Redis shows. */
enum rollout_signature group_signature(const struct host_group *group, const struct rollout_reply *reply);
/* Handles the script's answer to a `begin` that was ordered on this host. */
void group_observe_ordered(struct host_group *group, const struct rollout_reply *reply, usec_t now);
/* Drops the view after an order has changed the rollout: later requests get a new view. */
void group_forget_view(struct host_group *group);
/* Sends the next tick; while one is in progress, after its answer. Does nothing while the connection is down.
 */
void group_ask(struct host_group *group, usec_t now);
