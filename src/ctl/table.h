/* SPDX-License-Identifier: MIT */
/* The table of commands. */
#pragma once

#include "ctl/usage.h"

extern const struct command table_commands[];
extern const size_t table_n_commands;

/* The command of that name, or NULL. */
const struct command *table_find(const char *name);
