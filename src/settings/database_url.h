/* SPDX-License-Identifier: MIT */
/* The URL of a database: `postgresql://user:password@host:port/name` (or `postgres://`), as libpq reads it,
 * or `sqlite3:/path/of/the/file`, as Rails writes it. Pure. */
#pragma once

#include "base/macro.h"

enum database_engine { DATABASE_POSTGRESQL, DATABASE_SQLITE, _DATABASE_ENGINE_MAX };

struct database_url {
        enum database_engine engine;
        char *text; /* owned; for people: without user, password and parameters */
        char *path; /* owned; absolute; SQLite: the file; PostgreSQL: the folder of the Unix socket; NULL:
                       none */
};

/* Returns "PostgreSQL" or "SQLite". */
const char *database_engine_title(enum database_engine value);
/* Returns the name of the helper program, which is that of its package too. */
const char *database_engine_program(enum database_engine value);

/* Parses a URL. why: set if the result is -EINVAL; never quotes a password; NULL: not wanted. Returns 0 with
 * *ret, to be cleared by database_url_clear(); -EINVAL; or -ENOMEM. */
int database_url_parse(const char *url, struct database_url *ret, const char **why);
void database_url_clear(struct database_url *url);

/* Returns the URL for display, without user, password and parameters; `***@` stands for them. An invalid URL
 * is accepted. The caller frees the result; NULL if memory is short. */
char *database_url_mask(const char *url);

/* Finds the URL in the text of a file, which length bytes and a NUL end: the URL alone, or the lines
 * NAME=VALUE of an environment file, of which QUEUE_DATABASE_URL goes before DATABASE_URL. Does not parse the
 * URL. Returns 0 with *ret, which the caller frees; -EINVAL with *why, a constant sentence; or -ENOMEM. */
int database_url_of_file(const char *text, size_t length, char **ret, const char **why);

#define _cleanup_database_url_ _cleanup_(database_url_clear)
