/* SPDX-License-Identifier: MIT */
/* Starts of short processes that are no workers: the command after_exit of a worker that has exited, the
 * check whether the code of a release has arrived in the fleet's directory, and the rehearsal of a start. */
#pragma once

#include "daemon/runtime/runtime.h"

struct exit_status;
struct side_start;
struct worker;

/* Starts after_exit for an exited worker if its fleet has such a command. The result is only logged: nothing
 * depends on it, so the model has no rule for it. */
void after_exit_begin(struct runtime *runtime, const struct worker *worker, const struct exit_status *exit);
/* True while a command runs: sqmgr must not end yet. */
bool after_exits_run(const struct runtime *runtime);
/* Stops watching the commands; they keep running. */
void after_exits_forget(struct runtime *runtime);

/* Called once from the loop, unless the check is canceled; the check is already freed. error: NULL if the
 * start would succeed or the release is there; valid during the call. */
typedef void (*release_fn)(const struct error_report *error, void *userdata);

/* release: see struct launch_request; NULL: rehearse a start. Returns 0 with *ret, or -errno: fn is not
 * called then. */
int release_check_begin(struct runtime *runtime, const struct fleet *fleet, const char *release,
                        release_fn fn, void *userdata, struct side_start **ret);
/* Frees the check; fn is not called, and the child runs to its end. Takes NULL. Returns NULL. */
struct side_start *release_check_cancel(struct side_start *check);
