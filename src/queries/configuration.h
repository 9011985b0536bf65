/* SPDX-License-Identifier: MIT */
/* The configuration of a reader, as a query. Pure. */
#pragma once

#include "queries/query.h"
#include "settings/settings.h"

/* All texts are owned; NULL: none. */
struct reader_configuration {
        unsigned framework; /* traits.id */
        bool check;         /* only judge the configuration, and do not connect */
        char *url;          /* NULL: the Sentinels name the server */
        char *default_url;  /* of the settings: database, user and scheme with Sentinels */
        char *username;
        char *password;
        char *sentinels;
        char *master_name;
        char *sentinel_password;
        char *namespace;
        char *tls_files[_SETTINGS_TLS_MAX];
        bool tls_unverified;
        usec_t timeout; /* see SERVER_TIMEOUT_USEC */
        /* Not sent: */
        char *url_text; /* for people */
        /* enum database_engine: which reader program is to be started; _DATABASE_ENGINE_MAX: that for Redis
         */
        unsigned engine;
};

/* Copies the settings that a reader of the server at url needs. url NULL: the server that the Sentinels name,
 * or else settings->url. Returns 0 with *ret, to be
 * cleared by reader_configuration_clear(); -EINVAL for an invalid URL; or -ENOMEM. */
int reader_configuration_make(const struct redis_settings *settings, const char *url, unsigned framework,
                              struct reader_configuration *ret);
/* Does the same for a reader of the database at url, which gets no other setting of Redis than the timeout.
 * An invalid URL is accepted: the reader refuses it. Returns 0 or -ENOMEM. */
int reader_configuration_make_database(const struct redis_settings *settings, const char *url,
                                       unsigned framework, struct reader_configuration *ret);
void reader_configuration_clear(struct reader_configuration *configuration);

/* Writes the message of QUERY_CONFIGURE. */
void reader_configuration_write(struct codec_writer *writer,
                                const struct reader_configuration *configuration);
/* Takes the texts of a query. Returns 0 with *ret, which the caller clears; -EPROTO for another version;
 * -EBADMSG; or -ENOMEM. */
int reader_configuration_read(const struct query *query, struct reader_configuration *ret);
