/* SPDX-License-Identifier: MIT */
/* The table of frameworks. */
#pragma once

#include "frameworks/framework.h"

/* The traits of all frameworks, NULL-terminated, for settings_surroundings. */
extern const struct traits *const framework_traits[];

/* Returns the traits with this id, or NULL. */
const struct traits *framework_traits_find(unsigned id);

/* Returns the framework of these traits, which must be in the table. */
const struct framework *framework_of(const struct traits *traits);
