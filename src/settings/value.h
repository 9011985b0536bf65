/* SPDX-License-Identifier: MIT */
/* What can be done with the value of one key, whatever its type. */
#pragma once

#include "settings/keys.h"

struct traits;

/* What values and defaults depend on outside the file. What it points to must outlive the settings. */
struct settings_surroundings {
        const struct traits *const *frameworks; /* that there are; NULL-terminated, at least one */
        uint64_t memory_total_bytes;            /* 0: not known */
        bool is_root;
        const char *redis_url;   /* REDIS_URL in the environment; NULL: not set */
        const char *service_dir; /* RUNTIME_DIRECTORY in the environment, systemd's; NULL: not set */
        const char *runtime_dir; /* XDG_RUNTIME_DIR in the environment; NULL: not set */
};

/* Where base points to the struct fleet_settings or, of a key of another scope, the struct settings: */

#define SETTINGS_WHY_MAX 256

/* Reads text into the field, which must hold no value yet. Returns 0; -EINVAL with what would be right in
 * why; or -ENOMEM. */
int settings_value_parse(const struct settings_key *key, const char *text,
                         const struct settings_surroundings *surroundings, void *base,
                         char why[static SETTINGS_WHY_MAX]);

/* Frees all values of a fleet, or else of settings, and makes the fields say that they are unset. */
void settings_values_clear(bool of_fleet, void *base);

/* Puts a copy of one struct's value in the place of another's. Returns 0 or -ENOMEM: then nothing is changed.
 */
int settings_value_copy(const struct settings_key *key, const void *from, void *to);

bool settings_value_equal(const struct settings_key *key, const void *a, const void *b);

/* The value as the file would have it, secrets as `***`. Returns 0 with *ret, to be freed, NULL where it is
 * unset; or -ENOMEM. */
int settings_value_text(const struct settings_key *key, const void *base, char **ret);
