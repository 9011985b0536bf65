/* SPDX-License-Identifier: MIT */
/* Reads the config file again, and puts what a reload may change in the place of the old. */
#pragma once

#include "daemon/api/status.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/subsystem.h"

struct reloader {
        const char *config_path;   /* not owned */
        struct settings *settings; /* those in force, of links' world; the reloader's owner frees them */
        struct links *links;       /* not owned; nor are the subsystems */
        const struct subsystems *subsystems;
        struct status_settings age;
};

/* by: who ordered it; NULL: not known. Returns 0: *ret_lines says what changed; 1: refused, *ret_lines says
 * why, and nothing changed; a line each, NULL-terminated, list and lines to be freed by the caller. -errno:
 * *ret_lines is untouched. */
int reload_settings(struct reloader *reloader, const struct orderer *by, char ***ret_lines);
/* The same, told by the log. */
void reload_by_signal(struct reloader *reloader);
