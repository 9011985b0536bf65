/* SPDX-License-Identifier: MIT */
/* Names of the Redis keys that the hosts of a rollout_group share. */
#pragma once

#define ROLLOUT_PREFIX    "sqmgr:rollout:"
#define ROLLOUT_HOSTS_MAX 1024
#define ROLLOUT_TEXT_MAX  256 /* maximum bytes of each name and sentence in these keys */

/* Returns the key of a group with that suffix; the caller frees it. host: "" for keys of the whole group.
 * namespace: NULL or "" for none. NULL: out of memory. */
char *rollout_key(const char *namespace, const char *group, const char *suffix, const char *host);
