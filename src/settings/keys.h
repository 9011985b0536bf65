/* SPDX-License-Identifier: MIT */
/* The table of all keys of the config file. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum settings_scope { SETTINGS_SQMGR, SETTINGS_REDIS, SETTINGS_FLEET, _SETTINGS_SCOPE_MAX };

enum settings_type {
        SETTINGS_TEXT,        /* char * */
        SETTINGS_PATH,        /* char *: absolute */
        SETTINGS_COMMAND,     /* char *: words */
        SETTINGS_ENVIRONMENT, /* char *: words, each K=V */
        SETTINGS_LOG,         /* char *: inherit, journal, or an absolute path */
        SETTINGS_SOCKET,      /* char *: none, or an absolute path */
        SETTINGS_COUNTS,      /* char *: see settings/limits.h */
        SETTINGS_DURATIONS,   /* char *: the same */
        SETTINGS_TARGETS,     /* char *: the same */
        SETTINGS_LIMIT,       /* char *: see settings/resources.h */
        SETTINGS_LIMIT_SIZE,  /* char *: the same, in bytes */
        SETTINGS_CPUS,        /* char *: the same */
        SETTINGS_SENTINELS,   /* char *: host:port, host:port */
        SETTINGS_URL,         /* char *: of a Redis */
        SETTINGS_CHOICE,      /* int: one of the key's choices */
        SETTINGS_FRAMEWORK,   /* const struct traits *: of one by that name */
        SETTINGS_INT,         /* int */
        SETTINGS_COUNT,       /* unsigned */
        SETTINGS_MODE,        /* mode_t: octal */
        SETTINGS_SHARE,       /* struct share */
        SETTINGS_PERCENT,     /* unsigned */
        SETTINGS_SIGNAL,      /* int: by name */
        SETTINGS_DURATION,    /* usec_t */
        SETTINGS_SIZE,        /* uint64_t: bytes */
        _SETTINGS_TYPE_MAX,
};

struct settings_choice {
        const char *name; /* NULL ends the list */
        int value;
};

/* What a reload does with a key. */
enum settings_reload {
        SETTINGS_KEPT,     /* nothing: sqmgr itself must be restarted */
        SETTINGS_APPLIED,  /* it is in force at once */
        SETTINGS_OUTDATES, /* it holds for workers that are started: those that live are outdated */
};

struct settings_key {
        enum settings_scope scope;
        enum settings_type type;
        const char *name;
        size_t offset;           /* of its field in struct fleet_settings, or else in struct settings */
        const char *fallback;    /* the default as the file would have it; "none": it may be written, too */
        const char *unset;       /* where there is no fallback: what holds then, in words */
        const void *unset_value; /* what its field holds then; NULL: all of it is 0 */
        const char *refusal;     /* why this version does not take it; NULL: it does */
        const struct settings_choice *choices;
        int64_t min, max; /* of SETTINGS_INT to _MODE, _SHARE (its number), _PERCENT, _DURATION (usec) and
                           * _SIZE; min alone of _LIMIT */
        enum settings_reload reload;
        bool secret; /* never shown */
        bool merged; /* what it names is among the settings: it is no longer in force beside them */
};

#define SETTINGS_KEYS_MAX 96

/* All keys, ordered by scope. */
extern const struct settings_key settings_keys[];
extern const size_t settings_keys_n;

static inline bool settings_key_is_of_fleet(const struct settings_key *key)
{
        return key->scope == SETTINGS_FLEET;
}

/* "sqmgr", "redis", "fleet". */
const char *settings_scope_name(enum settings_scope value);

/* The key of that name in that scope, whatever its case, or NULL. */
const struct settings_key *settings_key_find(enum settings_scope scope, const char *name);

/* The one that was probably meant, or NULL. */
const struct settings_key *settings_key_near(enum settings_scope scope, const char *name);
