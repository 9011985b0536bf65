/* SPDX-License-Identifier: MIT */
/* sqmgr-reader-postgresql: speaks to one PostgreSQL database for sqmgr, which starts it. Its sandbox
 * (reader/sandbox.h) has Unix sockets only if the URL names one, and other sockets only if it names a host.
 */
#include "base/macro.h"
#include "database/postgresql_url.h"
#include "queries/configuration.h"
#include "reader/backend.h"
#include "reader/run.h"

static int prepare(const struct reader_configuration *configuration, struct sandbox_needs *ret)
{
        _cleanup_postgresql_url_ struct postgresql_url url = {0};
        const char *why;
        int r = configuration->url ? postgresql_url_read(configuration->url, &url, &why) : -EINVAL;

        for (size_t i = 0; i < url.n_servers; i++)
                *(postgresql_server_is_local(&url.servers[i]) ? &ret->unix_sockets : &ret->network) = true;
        /* The driver reports what is wrong with a URL. */
        return r == -EINVAL ? 0 : r;
}

int main(void)
{
        static const struct reader_program program = {
                .name = "sqmgr-postgres", .backend = &database_backend, .prepare = prepare};

        return reader_run(&program);
}
