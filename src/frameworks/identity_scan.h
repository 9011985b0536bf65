/* SPDX-License-Identifier: MIT */
/* One step of a scan of the set of identities: its command, and what its reply holds. The readers of
 * heartbeats and of foreign consumers both scan by it. */
#pragma once

#include "frameworks/heartbeat_format.h"

/* The texts must stay as long as the command. pattern: NULL: of all hosts, in smaller pages, since more is
 * asked for each that is found. cursor: "0" at first. */
void identity_scan_ask(const struct heartbeat_format *format, const char *set_key, const char *pattern,
                       const char *cursor, struct heartbeats_command *ret);

/* Calls found for each identity. Returns 0, with the cursor of the next step, of the reply's own, or NULL
 * where this was the last; or -errno, that of found or -EBADMSG where the reply is none. */
int identity_scan_take(const struct heartbeat_format *format, const struct redisReply *reply,
                       identity_fn found, void *userdata, const char **ret_cursor);
