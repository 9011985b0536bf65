/* SPDX-License-Identifier: MIT */
/* Reads the URL of a Redis: where it is, who we are there, and which database; and hides its password. */
#pragma once

#include "base/macro.h"

struct redis_url {
        char *host; /* name or address, IPv6 without its brackets; NULL with a unix socket */
        char *path; /* of the unix socket; NULL with a host */
        char *username;
        char *password; /* user and password: decoded, NULL where the URL names none */
        unsigned port;
        unsigned db;
        bool tls; /* rediss:// */
};

/* Reads `redis://[[user]:password@]host[:port][/db]`, `rediss://...` or
 * `unix://[[user]:password@]/path[?db=N]`. Returns 0 with *ret, to be freed by redis_url_clear(); -EINVAL
 * with *ret_error, a constant sentence that never quotes the URL; or -ENOMEM. ret_error may be NULL. */
int redis_url_parse(const char *url, struct redis_url *ret, const char **ret_error);
void redis_url_clear(struct redis_url *url);

/* Reads the addresses of Sentinels, `host[:port], host[:port]`, the port 26379 where none is given. Returns 0
 * with *ret, of which host and port are set, to be freed by redis_sentinels_free(); -EINVAL with *ret_error
 * as above; or -ENOMEM. */
int redis_sentinels_parse(const char *text, struct redis_url **ret, size_t *ret_n, const char **ret_error);
void redis_sentinels_free(struct redis_url *list, size_t n);

/* The URL as written, without user and password, for people. It need not be valid. NULL: out of memory. */
char *redis_url_redact(const char *url);

#define _cleanup_redis_url_ _cleanup_(redis_url_clear)
