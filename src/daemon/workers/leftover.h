/* SPDX-License-Identifier: MIT */
/* Watches a remote worker that may outlive the process that sqmgr started, quiets and stops it through the
 * server (observe/leftover.h). */
#pragma once

#include "daemon/runtime/runtime.h"

struct leftover_watch;
struct state_dead; /* continuity/state.h */

/* Begins to watch the worker, which is borrowed. done: called once from the loop when it has ended, or when
 * its fleet is gone; it may free the watch. Returns 0 with *ret, or -errno. */
int leftover_watch_new(struct runtime *runtime, const struct state_dead *dead, void (*done)(void *userdata),
                       void *userdata, struct leftover_watch **ret);
/* Accepts NULL; returns NULL. */
struct leftover_watch *leftover_watch_free(struct leftover_watch *watch);
