/* SPDX-License-Identifier: MIT */
/* Reads the config file again, and puts what a reload may change in the place of the old. */
#pragma once

#include "daemon/api/status.h"
#include "daemon/runtime/runtime.h"

struct settings_errors;

struct reloader {
        const char *config_path;   /* not owned; nor is crew */
        struct settings *settings; /* those in force, of crew's world; the reloader's owner frees them */
        struct runtime *runtime;
        struct status_settings age;
};

/* by: who ordered it; NULL: not known. Returns 0: *ret_lines says what changed; 1: refused, *ret_lines says
 * why, and nothing changed; each line ends with a newline, to be freed. -errno: *ret_lines is untouched. */
int reload_settings(struct reloader *reloader, const struct orderer *by, char **ret_lines);
/* The same, told by the log. */
void reload_by_signal(struct reloader *reloader);
/* Logs the warnings of reading the config file at path. */
void reload_log_warnings(const struct settings_errors *warnings, const char *path);
