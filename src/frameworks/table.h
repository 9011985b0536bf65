/* SPDX-License-Identifier: MIT */
/* The table of frameworks, a row for each. */
#pragma once

#include "frameworks/framework.h"

/* The traits of all, NULL-terminated: for settings_surroundings. */
extern const struct traits *const framework_traits[];

/* The traits of that id, or NULL. */
const struct traits *framework_traits_find(unsigned id);

/* The row of these traits, which must be of the table. */
const struct framework *framework_of(const struct traits *traits);
