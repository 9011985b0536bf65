/* SPDX-License-Identifier: MIT */
/* Heartbeats of workers without Redis: derived from facts on this machine, or from heartbeats in files. */
#pragma once

#include "daemon/runtime/runtime.h"

struct job_list;

/* Creates the source for runtime->local. Returns 0 with *ret, to be freed with heartbeats_free(), or
 * -ENOMEM. */
int local_heartbeats_new(struct heartbeats **ret);

/* Returns the running jobs that the last heartbeat file of the worker named, valid until the next poll; NULL:
 * the slot has no such file. */
const struct job_list *local_heartbeats_jobs(const struct heartbeat_slot *slot);
