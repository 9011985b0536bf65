/* SPDX-License-Identifier: MIT */
/* Checks in a child process whether a worker could be started, or whether the code of a
 * release has arrived in the fleet's directory. */
#pragma once

#include "daemon/runtime/runtime.h"

struct release_check;

/* Called once from the loop, unless the check is canceled; the check is already freed. error: NULL if the
 * start would succeed or the release is there; valid during the call. */
typedef void (*release_fn)(const struct error_report *error, void *userdata);

/* release: see struct launch_request; NULL: rehearse a start. Returns 0 with *ret, or -errno: fn is not
 * called then. */
int release_check_begin(struct runtime *runtime, const struct fleet *fleet, const char *release,
                        release_fn fn, void *userdata, struct release_check **ret);
/* Frees the check; fn is not called, and the child runs to its end. Takes NULL. Returns NULL. */
struct release_check *release_check_cancel(struct release_check *check);
