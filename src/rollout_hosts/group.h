/* SPDX-License-Identifier: MIT */
/* The part of this host in the restarts of all hosts of a group: asks the script in Redis when that is due,
 * and does what rollout_hosts/group_rules.h decides. Of fleets without rollout_group nothing is asked. */
#pragma once

#include "daemon/takeover/persist.h"
#include "rollout_hosts/call.h"
#include "rollout_hosts/group_rules.h"
#include "rollout_hosts/release.h"

struct fleet;

#define GROUP_ERROR_MAX 512

/* What all hosts do, as last shown. */
struct group_view {
        struct rollout_reply epoch;
        struct rollout_host *hosts; /* owned */
        size_t n_hosts;
        usec_t at; /* 0: nothing was shown yet */
};

/* One fleet with its group: fleet->group. */
struct host_group {
        struct groups *groups;
        struct fleet *fleet; /* NULL: it has left the group */
        char *name;          /* owned */
        struct rollout_group rule;
        struct rollout_reply last;              /* to the last word that was said */
        char error[GROUP_ERROR_MAX];            /* why Redis does not answer it; "": it does */
        char trouble_reported[GROUP_ERROR_MAX]; /* by an event */
        uint64_t connection;                    /* redis_connection_count() when it was last asked */
        size_t n_calls;                         /* that are under way */
        bool asked, again;                      /* a word is under way; another is to follow at once */
        bool shows;                             /* all hosts are asked for */
        struct group_view view;
        sd_event_source *renewal;
        struct release_check *check; /* NULL: none is under way */
        struct host_group *next;
};

struct groups {
        struct persist *persist; /* not owned */
        char instance[17];       /* of this boot of the machine, the container and the sqmgr in it */
        struct host_group *first;
        struct rollout_call *calls; /* of GetRollouts, that wait; see rollouts.c */
};

/* As struct subsystem has them; self is a struct groups. */
int groups_begin(struct persist *persist, void **ret);
void groups_join(void *self);
void groups_poll(void *self, usec_t now);
void groups_tick(void *self, usec_t now);
void groups_end(void *self);
void groups_pack(const void *self, const struct fleet *fleet, struct codec_writer *writer);
void groups_unpack(void *self, struct fleet *fleet, struct codec_reader *reader);

/* Why this host takes no part, or cannot tell; "": neither. Returns text. */
const char *group_trouble(const struct host_group *group, char text[static GROUP_ERROR_MAX]);

/* What group_orders.c and rollouts.c stand on: */

/* The connection, where it is up; NULL: it is not. */
struct redis *group_redis(struct host_group *group, usec_t now);
/* Calls the script with these words, as rollout_call() does; epoch: the one that the call is of, NULL: the
 * newest that this host knows. fn must begin with group_answered(). Returns 0, or -errno: fn is not called
 * then, and -ENOTCONN says that the connection is not up. */
int group_call(struct host_group *group, const struct rollout_reply *epoch, const char *const words[],
               rollout_call_fn fn, void *userdata);
/* A call has ended. Returns false where the fleet has left meanwhile: group is gone then. */
bool group_answered(struct host_group *group);
/* The script has answered to the order to begin that was given here. */
void group_observe_ordered(struct host_group *group, const struct rollout_reply *reply, usec_t now);
/* An order has changed what is shown: whoever asks from now on is told of what there is then. */
void group_forget_view(struct host_group *group);
/* Says the next word. */
void group_ask(struct host_group *group, usec_t now);
