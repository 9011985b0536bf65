/* SPDX-License-Identifier: MIT */
/* What is ordered of a group on this host: to restart all hosts, to abort that, to forget one, to show all.
 */
#pragma once

#include "rollout_hosts/group.h"

/* error: a sentence; NULL: it is done. ended: of an abort, there was something to end. Called once for each
 * order, never from within it. */
struct group_outcome {
        const char *error;
        uint64_t number; /* the epoch */
        bool ended;
};
typedef void (*group_order_fn)(const struct group_outcome *outcome, void *userdata);

/* by: who orders it, told by an event. Each returns 0, -ENOTCONN, or -ENOMEM: fn is not called then. */
int group_begin(struct host_group *group, const char *release, const char *by, group_order_fn fn,
                void *userdata);
int group_abort(struct host_group *group, const char *by, group_order_fn fn, void *userdata);
int group_forget(struct host_group *group, const char *host, const char *by, group_order_fn fn,
                 void *userdata);

/* Brings the view of all hosts up to date, unless it is younger than a second: the turn is armed once it is.
 */
void group_show(struct host_group *group, usec_t now);
