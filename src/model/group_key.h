/* SPDX-License-Identifier: MIT */
/* The names of the keys in Redis that the hosts of a rollout_group share. */
#pragma once

#define ROLLOUT_PREFIX    "sqmgr:rollout:"
#define ROLLOUT_HOSTS_MAX 1024
#define ROLLOUT_TEXT_MAX  256 /* bytes of each name and sentence there */

/* The key of a group with that suffix, and of one host of it where that has one; else host is "". namespace:
 * NULL or "" for none. Returns it, to be freed; NULL: memory is short. */
char *rollout_key(const char *namespace, const char *group, const char *suffix, const char *host);
