/* SPDX-License-Identifier: MIT */
/* Reads the processes of a worker in namespaces of its own. */
#pragma once

#include "daemon/runtime/links.h"
#include "frameworks/inside.h"

/* See struct heartbeats_ops. userdata: the struct link. */
int inside_read(const struct worker *worker, struct inside *ret, void *userdata);

/* Writes the host name that a worker of this fleet gets; "": it gets none. Returns text. */
const char *inside_unique_host(struct links *links, const struct fleet_settings *fleet, unsigned index,
                               usec_t started_at, char text[static UNIQUE_HOST_MAX]);
