/* SPDX-License-Identifier: MIT */
/* Builds the environment of a process: a list of NAME=VALUE entries with unique names. */
#pragma once

#include "base/macro.h"

struct environment {
        char **list; /* owned, NULL-terminated; NULL while empty */
        size_t n;
};

/* Sets name to value, replacing an earlier value. Copies both. Returns 0 or -ENOMEM. */
int environment_set(struct environment *environment, const char *name, const char *value);

/* Sets the entry NAME=VALUE, as environment_set() does. Ignores an entry without '=' or with an empty name.
 * Returns 0 or -ENOMEM. */
int environment_put(struct environment *environment, const char *entry);

/* Adds the entries of another process's environment, except private ones. Private are the variables that
 * systemd set for that process alone, and sqmgr's own environment markers, if that process runs under another
 * sqmgr. list is NULL-terminated, or NULL. Returns 0 or -ENOMEM. */
int environment_put_inherited(struct environment *environment, char *const *list);

/* Adds value to that of name, which consists of parts: as the first or the last one. Returns 0 or -ENOMEM. */
int environment_extend(struct environment *environment, const char *name, const char *value, char separator,
                       bool first);

/* Removes name, if set. */
void environment_remove(struct environment *environment, const char *name);

/* Returns the value of name, or NULL. The value is borrowed until name is set again or removed. */
const char *environment_get(const struct environment *environment, const char *name);

/* Finds a variable in an environment in the format of /proc/PID/environ: NAME=VALUE entries, each followed by
 * a NUL. Returns the value, borrowed from text, or NULL. */
const char *environment_find(const char *text, size_t length, const char *name);

/* Adds the NAME=VALUE lines of an environment file. Skips blank lines and lines that begin with '#'. The word
 * 'export' may precede a name. A value may be in single quotes (literal) or in double quotes (a backslash
 * before " \ $ or ` is dropped). An unquoted value runs to the end of the line, with its outer blanks
 * trimmed.
 *
 * Returns 0, -ENOMEM, or -EINVAL with the line number, counted from 1, and a description of the error. */
int environment_put_lines(struct environment *environment, const char *text, size_t length,
                          unsigned *ret_line, const char **ret_error);

/* Frees the entries and leaves an empty environment. */
void environment_done(struct environment *environment);
#define _cleanup_environment_ _cleanup_(environment_done)
