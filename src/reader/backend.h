/* SPDX-License-Identifier: MIT */
/* The part of a reader that speaks to its server: reader/redis_backend.c, or reader/database_backend.c. A
 * reader program links one, and hands it to reader_server_new(). */
#pragma once

#include "base/usec.h"
#include "settings/settings.h"

struct ask;                  /* reader/ask.h */
struct reader_configuration; /* queries/configuration.h */
struct reader_server;        /* reader/server.h */

struct reader_backend {
        /* Makes the connection that configuration describes, which stays valid. Reports each state by
         * reader_server_report(). Called once, before any ask. Returns 0 with *ret; or -errno, with the file
         * for TLS that cannot be used in *refusal. With configuration->check it only judges, and *ret is
         * NULL. */
        int (*begin)(struct reader_server *server, const struct reader_configuration *configuration,
                     struct settings_tls_refusal *refusal, void **ret);
        /* Ends all asks that it holds, and frees the backend. */
        void (*end)(void *backend);
        /* Answers a query other than QUERY_PING and QUERY_CONFIGURE: ask_done() or an ask_fail function is
         * called exactly once, within this call or later. */
        void (*ask)(void *backend, struct ask *ask);
        /* How long the last command took; 0: unknown. */
        usec_t (*rtt_usec)(const void *backend);
};

extern const struct reader_backend redis_backend, database_backend;
