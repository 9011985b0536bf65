/* SPDX-License-Identifier: MIT */
/* Operations on the value of one key, for all types. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct redis_settings;
struct settings_tls_refusal;
struct traits;

enum settings_scope { SETTINGS_SQMGR, SETTINGS_REDIS, SETTINGS_FLEET, _SETTINGS_SCOPE_MAX };

enum settings_type {
        SETTINGS_TEXT,        /* char * */
        SETTINGS_PATH,        /* char *: absolute path */
        SETTINGS_COMMAND,     /* char *: words */
        SETTINGS_ENVIRONMENT, /* char *: words of the form K=V */
        SETTINGS_LOG,         /* char *: inherit, journal, or an absolute path */
        SETTINGS_COUNTS,      /* char *: see settings/limits.h */
        SETTINGS_DURATIONS,   /* char *: see settings/limits.h */
        SETTINGS_SENTINELS,   /* char *: host:port, host:port */
        SETTINGS_DATABASE,    /* char *: URL of a database */
        SETTINGS_URL,         /* char *: URL of a Redis */
        SETTINGS_CHOICE,      /* int: one of the choices */
        SETTINGS_FRAMEWORK,   /* const struct traits *: chosen by name */
        SETTINGS_COUNT,       /* unsigned */
        SETTINGS_SHARE,       /* struct share */
        SETTINGS_SIGNAL,      /* int: by name */
        SETTINGS_DURATION,    /* usec_t */
        SETTINGS_SIZE,        /* uint64_t: bytes */
        _SETTINGS_TYPE_MAX,
};

struct settings_choice {
        const char *name; /* NULL ends the list */
        int value;
};

/* How a reload treats a changed key. */
enum settings_reload {
        SETTINGS_KEPT,     /* keeps the old value: requires a restart of sqmgr */
        SETTINGS_APPLIED,  /* applied at once */
        SETTINGS_OUTDATES, /* applied to workers started afterwards; running workers become outdated */
};

struct settings_key {
        enum settings_scope scope;
        enum settings_type type;
        const char *name;
        size_t offset;           /* of the field in struct fleet_settings or struct settings, by scope */
        const char *fallback;    /* the default as written in the file; "none" makes `none` a valid value */
        const char *unset;       /* with fallback NULL: description of the unset state */
        const void *unset_value; /* field value if unset, or for `none`; NULL: all bytes 0 */
        const struct settings_choice *choices;
        int64_t min, max; /* bounds for SETTINGS_COUNT, _MODE, _SHARE (the number), _DURATION (microseconds)
                           * and _SIZE */
        enum settings_reload reload;
        bool secret; /* never printed */
        bool merged; /* the files named are merged into the settings; the key is printed as a comment */
};

#define SETTINGS_KEYS_MAX 96

/* All keys, ordered by scope. */
extern const struct settings_key settings_keys[];
extern const size_t settings_keys_n;

static inline bool settings_key_is_of_fleet(const struct settings_key *key)
{
        return key->scope == SETTINGS_FLEET;
}

/* Returns "sqmgr", "redis" or "fleet". */
const char *settings_scope_name(enum settings_scope value);

/* Returns the key of that name in that scope, case-insensitive, or NULL. */
const struct settings_key *settings_key_find(enum settings_scope scope, const char *name);

/* Returns the key that was probably meant, or NULL. */
const struct settings_key *settings_key_near(enum settings_scope scope, const char *name);

/* Inputs of values and defaults besides the file. All pointers must outlive the settings. */

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
