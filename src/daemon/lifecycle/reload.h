/* SPDX-License-Identifier: MIT */
/* Reads the config file again and applies the settings that a reload may change. */
#pragma once

#include "daemon/api/config_check.h"
#include "daemon/api/status.h"

struct settings_errors;

struct reloader {
        struct settings *settings; /* current settings, used by the world; not owned */
        struct runtime *runtime;   /* not owned */
        struct status_settings age;
        struct config_check config; /* names the file */
        void (*reloaded)(void *userdata);
        void *userdata;
};

/* Reloads the settings. by is who ordered the reload, or NULL if not known. Returns 0 with the changes in
 * *ret_lines, or 1 if refused, with the reasons in *ret_lines and nothing changed. Each line ends with a
 * newline; free *ret_lines. Returns -errno on failure, with *ret_lines untouched. */
int reload_settings(struct reloader *reloader, const struct orderer *by, char **ret_lines);
/* Like reload_settings() without an orderer, and logs the result. */
void reload_by_signal(struct reloader *reloader);
/* Logs the warnings from reading the config file at path. */
void reload_log_warnings(const struct settings_errors *warnings, const char *path);
