/* SPDX-License-Identifier: MIT */
/* Reads replies to GetRollouts, and formats them as the phrases that both the terminal and the page show. */
#pragma once

#include "wire/reply.h"

/* In display order: the states that need attention come first. */
enum reply_host_state {
        REPLY_HOST_FAILED,
        REPLY_HOST_LOST,
        REPLY_HOST_ROLLING,
        REPLY_HOST_WAITING, /* also any unknown state */
        REPLY_HOST_DONE,
        _REPLY_HOST_MAX,
};

/* Returns the state of a host; REPLY_HOST_WAITING if the reply has an unknown one or none. */
enum reply_host_state reply_host_state(const json_t *host);
const char *reply_host_state_name(enum reply_host_state value);

/* Returns true if the last report of the host is overdue. */
bool reply_host_is_silent(const json_t *host);
/* Reads the progress of a rolling host. Returns false if it reports no numbers. */
bool reply_host_progress(const json_t *host, unsigned *ret_n, unsigned *ret_of);
/* Formats what a host does, waits for, or why the host failed; "" if the state says all. rollout is the
 * GroupRollout that contains host. Returns text. */
#define REPLY_HOST_WHY_MAX 512
const char *reply_host_why(const json_t *rollout, const json_t *host, char text[static REPLY_HOST_WHY_MAX]);

struct reply_hosts {
        size_t all;
        size_t n[_REPLY_HOST_MAX];
        size_t draining; /* done hosts whose old workers still finish their jobs */
        double share;    /* fraction done, 0 to 1 */
};

/* Counts the hosts of a rollout by state. */
struct reply_hosts reply_hosts_count(const json_t *rollout);
/* Returns the hosts in display order, in an array that the caller frees; the hosts are borrowed from rollout.
 * *ret_n is their number. Returns NULL if memory is short. */
const json_t **reply_hosts_sort(const json_t *rollout, size_t *ret_n);

/* Format the title of a rollout, "rollout 7 of group 'web' running", and its details, "release 'v7', 2 hosts
 * at a time, begun 12min ago on web-1". Details may be "". Return text. */
#define REPLY_HOSTS_MAX 1536
const char *reply_hosts_title(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
const char *reply_hosts_details(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
/* Formats the progress: "24 of 50 hosts done, 1 failed, about 13min left". Returns text. */
const char *reply_hosts_progress(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
/* Formats the hosts that the rollout no longer waits for, as one sentence; "" if there are none. Returns
 * text. */
const char *reply_hosts_left(const json_t *rollout, char text[static REPLY_HOSTS_MAX]);
/* Returns the first lost host; else, in a running rollout, the first waiting host that is silent; or NULL.
 * Borrowed. */
const json_t *reply_hosts_missing(const json_t *rollout);

/* Returns true if a rollout of the group was ever begun. */
bool reply_hosts_is_begun(const json_t *rollout);
