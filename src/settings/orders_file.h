/* SPDX-License-Identifier: MIT */
/* The path of the file that keeps what operators ordered over a reboot. */
#pragma once

#include <stdbool.h>

struct settings;
struct settings_surroundings;

/* Sets settings->orders_file. own_socket and own_state_file: the file sets that path, which is not the
 * default then. Both paths are set in any case. Returns 0 or -ENOMEM. */
int orders_file_find(struct settings *settings, const struct settings_surroundings *around, bool own_socket,
                     bool own_state_file);
