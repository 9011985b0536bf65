/* SPDX-License-Identifier: MIT */
/* The table of frameworks. */
#pragma once

#include "frameworks/framework.h"

struct heartbeat_record; /* model/heartbeat_info.h */

/* The traits of all frameworks, NULL-terminated, for settings_surroundings. */
extern const struct traits *const framework_traits[];

/* Returns the traits with this id, or NULL. */
const struct traits *framework_traits_find(unsigned id);

/* Returns the framework of these traits, which must be in the table. */
const struct framework *framework_of(const struct traits *traits);

/* Decodes the text of a heartbeat file, whose format is that of sqmgr-heartbeat(7) with each framework.
 * Returns 0 with *ret, to be freed by heartbeat_record_clear(); -EINVAL if the text is not a heartbeat; or
 * -ENOMEM. */
int framework_take_record(const char *text, size_t len, struct heartbeat_record *ret);
