/* SPDX-License-Identifier: MIT */
/* One step of the walk through the set of identities: its command, and what its reply holds. */
#pragma once

#include "frameworks/redis_beats.h"

/* The texts must stay as long as the command. cursor: "0" at first. */
void walk_ask(const struct beats_format *format, const char *set_key, const char *pattern, const char *cursor,
              struct beats_command *ret);

/* Calls found for each identity. Returns 0, with the cursor of the next step, of the reply's own, or NULL
 * where this was the last; or -errno, that of found or -EBADMSG where the reply is none. */
int walk_take(const struct beats_format *format, const struct redisReply *reply,
              int (*found)(const struct match_found *found, void *userdata), void *userdata,
              const char **ret_cursor);
