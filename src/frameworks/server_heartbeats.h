/* SPDX-License-Identifier: MIT */
/* Reads heartbeats from one server, with all queries of a poll in one batch. The cost hardly depends on
 * the activity of other hosts. */
#pragma once

#include "frameworks/framework.h"
#include "frameworks/heartbeats.h"
#include "servers/server.h"

/* reader, framework and ops must outlive the object, except that reader may be freed right after it. Returns
 * 0 with *ret, which the caller frees with heartbeats_free(), or -ENOMEM. */
int server_heartbeats_new(struct reader *reader, const struct framework *framework,
                          const struct heartbeats_ops *ops, void *userdata, struct heartbeats **ret);
