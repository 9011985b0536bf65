/* SPDX-License-Identifier: MIT */
/* The path of the file that keeps what operators ordered over a reboot. */
#pragma once

#include <stdbool.h>

struct settings;
struct settings_surroundings;

/* Sets settings->orders_file. own_paths: the settings name a socket or a state file, which are not the
 * defaults then. Both paths are set in any case. Returns 0 or -ENOMEM. */
int orders_file_find(struct settings *settings, const struct settings_surroundings *around, bool own_paths);
