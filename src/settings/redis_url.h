/* SPDX-License-Identifier: MIT */
/* Parses the URL of a Redis: address, credentials and database; and redacts the password. */
#pragma once

#include "base/macro.h"

struct redis_url {
        char *host; /* name or address, IPv6 without brackets; NULL for a unix socket */
        char *path; /* of the unix socket; NULL for a host */
        char *username;
        char *password; /* username and password are decoded, NULL if the URL has none */
        unsigned port;
        unsigned db;
        bool tls; /* rediss:// */
};

/* Parses `redis://[[user]:password@]host[:port][/db]`, `rediss://...` or
 * `unix://[[user]:password@]/path[?db=N]`. Returns 0 with *ret, freed by redis_url_clear(); -EINVAL with
 * *ret_error, a constant sentence that never quotes the URL; or -ENOMEM. ret_error may be NULL. */
int redis_url_parse(const char *url, struct redis_url *ret, const char **ret_error);
void redis_url_clear(struct redis_url *url);

/* Parses the addresses of Sentinels, `host[:port], host[:port]`, with 26379 as the default port. Returns 0
 * with *ret, an array with host and port set, freed by redis_sentinels_free(). Returns -EINVAL with
 * *ret_error, a constant sentence; or -ENOMEM. */
int redis_sentinels_parse(const char *text, struct redis_url **ret, size_t *ret_n, const char **ret_error);
void redis_sentinels_free(struct redis_url *list, size_t n);

/* Returns the URL without user and password, for display. An invalid URL is accepted. The caller frees the
 * result; NULL if memory is short. */
char *redis_url_redact(const char *url);

/* Returns the length of the part of a URL without credentials that names the server, not the database. The
 * URL may be that of a PostgreSQL or SQLite, too. */
size_t url_server_length(const char *url);

enum redis_difference { REDIS_SAME, REDIS_OTHER_DATABASE, REDIS_OTHER_SERVER, _REDIS_DIFFERENCE_MAX };
struct redis_comparison {
        enum redis_difference difference;
        unsigned db, other_db;
};
/* Compares the server and the database that two URLs name. All names of this machine are one server.
 * REDIS_SAME if one of the URLs cannot be parsed. */
struct redis_comparison redis_url_compare(const char *url, const char *other);
/* Describes how the Redis in a worker's environment differs from redis_url. Returns text. comparison must not
 * be REDIS_SAME. */
#define REDIS_DIFFERENCE_MAX 128
const char *redis_difference_text(const struct redis_comparison *comparison,
                                  char text[static REDIS_DIFFERENCE_MAX]);
#define _cleanup_redis_url_ _cleanup_(redis_url_clear)
