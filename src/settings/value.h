/* SPDX-License-Identifier: MIT */
/* Operations on the value of one key, for all types. */
#pragma once

#include "settings/keys.h"

struct traits;

/* Inputs of values and defaults besides the file. All pointers must outlive the settings. */
struct redis_settings;

struct settings_tls_refusal;

/* Judges the contents of the files for TLS. Called only if all of them can be read. Returns 0; -EINVAL with
 * the file at fault in *ret; or another -errno: they cannot be judged now. */
typedef int (*settings_tls_fn)(const struct redis_settings *settings, struct settings_tls_refusal *ret);

struct settings_surroundings {
        const struct traits *const *frameworks; /* all frameworks; NULL-terminated, at least one */
        uint64_t memory_total_bytes;            /* 0: unknown */
        const char *user;                       /* the name of sqmgr's own; NULL: not known */
        const char *redis_url;                  /* REDIS_URL in the environment; NULL: not set */
        const char *database_url;               /* DATABASE_URL in the environment; NULL: not set */
        const char *service_dir;                /* RUNTIME_DIRECTORY, set by systemd; NULL: not set */
        const char *runtime_dir;                /* XDG_RUNTIME_DIR in the environment; NULL: not set */
        const char *state_dir;                  /* STATE_DIRECTORY, set by systemd; NULL: not set */
        const char *state_home;                 /* XDG_STATE_HOME; NULL: not set */
        const char *home;                       /* HOME; NULL: not set */
        settings_tls_fn judge_tls;              /* NULL: these files are not judged */
};

/* In all functions, base is the struct fleet_settings for a key of scope SETTINGS_FLEET, otherwise the struct
 * settings. */

#define SETTINGS_WHY_MAX 256

/* Parses text into the field, which must be unset. Returns 0; -EINVAL with the valid values described in why;
 * or -ENOMEM. */
int settings_value_parse(const struct settings_key *key, const char *text,
                         const struct settings_surroundings *surroundings, void *base,
                         char why[static SETTINGS_WHY_MAX]);

/* Frees all values of a fleet, or of settings without their fleets, and marks the fields as unset. */
void settings_values_clear(bool of_fleet, void *base);

/* Replaces the value in to with a copy of the value in from. Returns 0 or -ENOMEM; on failure nothing
 * changes. */
int settings_value_copy(const struct settings_key *key, const void *from, void *to);

bool settings_value_equal(const struct settings_key *key, const void *a, const void *b);

/* Formats the value as in the file, secrets as `***`. Returns 0 with *ret owned by the caller, NULL if unset;
 * or -ENOMEM. */
int settings_value_text(const struct settings_key *key, const void *base, char **ret);
