/* SPDX-License-Identifier: MIT */
/* A single step of a scan of the set of identities: its command and the decoding of its reply. Used by the
 * readers of heartbeats and of foreign consumers. */
#pragma once

#include "frameworks/heartbeat_format.h"

/* All texts must outlive the command. pattern: NULL scans all hosts, in smaller pages because the caller
 * sends a command for each identity found. cursor: "0" for the first step. */
void identity_scan_ask(const struct heartbeat_format *format, const char *set_key, const char *pattern,
                       const char *cursor, struct redis_command *ret);

/* Calls found for each identity. Returns 0, or -errno: the error of found, or -EBADMSG for an unexpected
 * reply. *ret_cursor: the cursor of the next step, which points into the reply; NULL: this step was the
 * last. */
int identity_scan_take(const struct heartbeat_format *format, const struct redisReply *reply,
                       identity_fn found, void *userdata, const char **ret_cursor);
