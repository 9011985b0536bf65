/* SPDX-License-Identifier: MIT */
/* Reads the config file, and checks it against the machine that it is for. */
#pragma once

#include <sys/types.h>

struct settings;
struct settings_errors;
struct settings_surroundings;
struct traits;

/* Reads the file at path, those that it includes, and the password file that they may name; makes every check
 * that a start makes. May block: on files and on the user data base. Returns 0 with *ret, to be freed by
 * settings_free(); or -EINVAL or -ENOMEM with at least one of errors. frameworks: see struct
 * settings_surroundings. Either list may be added to in both cases. */
int ini_load(const char *path, const struct traits *const *frameworks, struct settings **ret,
             struct settings_errors *errors, struct settings_errors *warnings);

/* The same with given surroundings. surroundings->is_root: files must be root's, and users are checked as
 * root would; else as for the user `uid`. */
int ini_load_for(const char *path, const struct settings_surroundings *surroundings, uid_t uid,
                 struct settings **ret, struct settings_errors *errors, struct settings_errors *warnings);
