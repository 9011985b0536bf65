/* SPDX-License-Identifier: MIT */
/* Reads the config file and checks it against this machine. */
#pragma once

#include "settings/value.h"

struct settings;
struct settings_errors;
struct settings_surroundings;
struct traits;

/* Reads the config file at path, the included files, the password file, and makes every check that a
 * start makes. May block on files and on the user database.
 *
 * Returns 0 with *ret to be freed by settings_free(); -EINVAL or -ENOMEM with at least one entry added to
 * errors. Entries may be added to warnings in any case. For frameworks and judge_tls see struct
 * settings_surroundings. */
int ini_load(const char *path, const struct traits *const *frameworks, settings_tls_fn judge_tls,
             struct settings **ret, struct settings_errors *errors, struct settings_errors *warnings);

/* As ini_load(), with given surroundings. */
int ini_load_for(const char *path, const struct settings_surroundings *surroundings, struct settings **ret,
                 struct settings_errors *errors, struct settings_errors *warnings);

/* Makes the checks of the text of a config file that need no other file and no user database. Returns 0;
 * -EINVAL with errors added; or -ENOMEM. */
int ini_check_text(const char *text, const struct settings_surroundings *surroundings,
                   struct settings_errors *errors);
