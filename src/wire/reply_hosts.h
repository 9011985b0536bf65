/* SPDX-License-Identifier: MIT */
/* Takes apart what GetRollouts tells of a rollout over many hosts, and puts it into the phrases that terminal
 * and page show alike. */
#pragma once

#include "wire/reply.h"

/* In the order in which they are seen: what needs someone first. */
enum reply_host_state {
        REPLY_HOST_FAILED,
        REPLY_HOST_LOST,
        REPLY_HOST_ROLLING,
        REPLY_HOST_WAITING, /* also one of a state that is not known */
        REPLY_HOST_DONE,
        _REPLY_HOST_MAX,
};

enum reply_host_state reply_host_state(const json_t *host);
const char *reply_host_state_name(enum reply_host_state value);

/* Has it said nothing for longer than one that is there does? */
bool reply_host_is_silent(const json_t *host);
/* How far one that rolls is, where its words begin with `3 of 8`: true then. */
bool reply_host_progress(const json_t *host, unsigned *ret_n, unsigned *ret_of);
/* What it does, waits for, or why it failed: "" where its state says all. rollout: the GroupRollout that it
 * is of. Returns text. */
#define REPLY_HOST_WHY_MAX 512
const char *reply_host_why(const json_t *rollout, const json_t *host, char text[static REPLY_HOST_WHY_MAX]);

struct reply_hosts {
        size_t all;
        size_t n[_REPLY_HOST_MAX];
        size_t draining; /* of those that are done: their old workers still finish their jobs */
        double share;    /* of the whole that is done, 0 to 1 */
};

struct reply_hosts reply_hosts_count(const json_t *rollout);
/* The hosts in the order in which they are seen, borrowed: to be freed, or NULL where memory is short. *ret_n
 * is how many. */
const json_t **reply_hosts_sort(const json_t *rollout, size_t *ret_n);

/* What goes on: "rollout 7 of group 'web' running"; and more about it: "release 'v7', 2 hosts at a time,
 * begun 12min ago on web-1", "" where there is nothing to say. They return text. */
#define REPLY_HOSTS_MAX 1536
const char *reply_hosts_title(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
const char *reply_hosts_details(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
/* How far it is: "24 of 50 hosts done, 1 failed, about 13min left". Returns text. */
const char *reply_hosts_progress(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
/* The hosts that are waited for no longer, as one sentence; "" where there are none. Returns text. */
const char *reply_hosts_left(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
/* The first that is lost, or has fallen silent while it is waited for; NULL where there is none. */
const json_t *reply_hosts_missing(const json_t *rollout);

/* Is there one at all? */
bool reply_hosts_is_begun(const json_t *rollout);
