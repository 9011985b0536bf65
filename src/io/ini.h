/* SPDX-License-Identifier: MIT */
/* Reads the config file and checks it against this machine. */
#pragma once

#include <sys/types.h>

struct redis_settings;
struct settings;
struct settings_errors;
struct settings_surroundings;
struct traits;

#define INI_TLS_WHY_MAX 512

/* Judges the files for TLS, which can be read. Returns 0; -EINVAL with an error in why, which begins with the
 * settings key; or another -errno: they cannot be judged now. */
typedef int (*ini_tls_fn)(const struct redis_settings *settings, char why[static INI_TLS_WHY_MAX]);

/* Reads the config file at path, the included files, the password file and the rollout key files, and makes
 * every check that a start makes. May block on files and on the user database.
 *
 * Returns 0 with *ret to be freed by settings_free(); -EINVAL or -ENOMEM with at least one entry added to
 * errors. Entries may be added to warnings in any case. frameworks: see struct settings_surroundings. judge_tls:
 * NULL: these files are not judged. */
int ini_load(const char *path, const struct traits *const *frameworks, ini_tls_fn judge_tls,
             struct settings **ret, struct settings_errors *errors, struct settings_errors *warnings);

/* As ini_load(), with given surroundings. If surroundings->is_root, files must belong to root, and users are
 * checked as root would. Otherwise checks are made for the user `uid`. */
int ini_load_for(const char *path, const struct settings_surroundings *surroundings, uid_t uid,
                 ini_tls_fn judge_tls, struct settings **ret, struct settings_errors *errors, struct settings_errors *warnings);
