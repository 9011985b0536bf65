/* SPDX-License-Identifier: MIT */
/* Builds the environment of a process: a list of NAME=VALUE in which each name stands once. */
#pragma once

#include "base/macro.h"

struct environment {
        char **list; /* owned, NULL-terminated; NULL while empty */
        size_t n;
        struct environment_text *texts; /* owned; what stands in the list points into them */
};

/* Sets name to value; an earlier value is replaced. Returns 0 or -ENOMEM. */
int environment_set(struct environment *environment, const char *name, const char *value);

/* The same for an entry NAME=VALUE. One without a '=', or without a name, is left out. */
int environment_put(struct environment *environment, const char *entry);

/* Puts the entries of another process's environment, but not what is for that process alone: what systemd
 * gave it for itself, and the mark of the sqmgr that it may run under. list: NULL-terminated, or NULL. */
int environment_put_inherited(struct environment *environment, char *const *list);

/* Takes name out, where it is there. */
void environment_remove(struct environment *environment, const char *name);

/* The value of name, or NULL. */
const char *environment_get(const struct environment *environment, const char *name);

/* The value of a variable in an environment as /proc has it: NAME=VALUE entries, a NUL behind each; or NULL.
 */
const char *environment_find(const char *text, size_t length, const char *name);

/* Adds the lines of an environment file: NAME=VALUE, with blank lines and those that begin with '#' left out.
 * The word 'export' may stand before a name. A value may stand in single quotes (literal) or in double quotes
 * (a backslash before " \ $ or ` is dropped); without quotes it runs to the end of the line, its outer blanks
 * trimmed. Returns 0, -ENOMEM, or -EINVAL with the line from 1 and what is wrong with it. */
int environment_put_lines(struct environment *environment, const char *text, size_t length,
                          unsigned *ret_line, const char **ret_error);

void environment_done(struct environment *environment);
#define _cleanup_environment_ _cleanup_(environment_done)
