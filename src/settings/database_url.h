/* SPDX-License-Identifier: MIT */
/* The URL of a database: `postgresql://user:password@host:port/name` (or `postgres://`), as libpq reads it, or
 * `sqlite3:/path/of/the/file`, as Rails writes it. Pure. */
#pragma once

#include "base/macro.h"

enum database_engine { DATABASE_POSTGRESQL, DATABASE_SQLITE, _DATABASE_ENGINE_MAX };

struct database_url {
        enum database_engine engine;
        char *text; /* owned; for people: without user, password and parameters */
        char *path; /* owned; absolute; SQLite: the file; PostgreSQL: the folder of the Unix socket; NULL: none */
};

/* Returns "PostgreSQL" or "SQLite". */
const char *database_engine_title(enum database_engine value);

/* Parses a URL. why: set if the result is -EINVAL; never quotes a password; NULL: not wanted. Returns 0 with
 * *ret, to be cleared by database_url_clear(); -EINVAL; or -ENOMEM. */
int database_url_parse(const char *url, struct database_url *ret, const char **why);
void database_url_clear(struct database_url *url);

DEFINE_CLEANUP(struct database_url, database_url_clear)
#define _cleanup_database_url_ _cleanup_(database_url_clear)
