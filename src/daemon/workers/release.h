/* SPDX-License-Identifier: MIT */
/* Checks whether the code of a release has arrived in a fleet's directory, in a child process with the
 * fleet's user. */
#pragma once

#include "daemon/runtime/runtime.h"

struct release_check;

/* error: NULL: the release is there. Called once, unless the check is canceled. The check is
 * already freed. */
typedef void (*release_fn)(const struct error_report *error, void *userdata);

/* Returns 0 with *ret, or -errno: fn is not called then. */
int release_check_begin(struct runtime *runtime, const struct fleet *fleet, const char *release,
                        release_fn fn, void *userdata, struct release_check **ret);
/* Frees the check; fn is not called. Takes NULL. Returns NULL. */
struct release_check *release_check_cancel(struct release_check *check);
