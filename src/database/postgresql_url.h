/* SPDX-License-Identifier: MIT */
/* The URL of a PostgreSQL database as libpq reads it: the servers that it names, and the parameters of a
 * connection to one of them.
 *
 * Parameters of the query that libpq does not know are dropped, as by Rails, whose URLs have `pool=5` and the
 * like. Nothing is read but what the URL names: no password file, no service file, no certificate in the
 * home folder. */
#pragma once

#include "base/macro.h"
#include <libpq-fe.h>

#define POSTGRESQL_SERVERS_MAX 16

/* A server. All texts are owned. */
struct postgresql_server {
        char *name;    /* a host name, an address, or the folder of the Unix socket; NULL: as libpq has it */
        char *address; /* hostaddr of the URL: replaces the lookup of the name; NULL: none */
        char *port;    /* NULL: as libpq has it */
};

struct postgresql_url {
        char *text;       /* owned: with known parameters only */
        char *user;       /* owned: of this process, for a URL without user; NULL: unknown */
        const char *root; /* file of the authorities that issue certificates; NULL: sslrootcert of the URL */
        bool verifies_name; /* sslmode is verify-full, though the URL does not say so */
        struct postgresql_server servers[POSTGRESQL_SERVERS_MAX];
        size_t n_servers;
};

/* Returns 0 with *ret, to be cleared by postgresql_url_clear(); -EINVAL with a constant sentence in *why; or
 * -ENOMEM. */
int postgresql_url_read(const char *text, struct postgresql_url *ret, const char **why);
void postgresql_url_clear(struct postgresql_url *url);

/* Returns true if a connection to this server is a Unix socket. */
bool postgresql_server_is_local(const struct postgresql_server *server);

/* Begins a connection to a server; address: numeric; NULL: the server is a Unix socket, or has a numeric
 * name. Returns NULL if memory is short. The result may be in the state CONNECTION_BAD. */
PGconn *postgresql_connect(const struct postgresql_url *url, const struct postgresql_server *server,
                           const char *address);

#define _cleanup_postgresql_url_ _cleanup_(postgresql_url_clear)
