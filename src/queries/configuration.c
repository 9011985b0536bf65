/* SPDX-License-Identifier: MIT */
/* The configuration of a reader, as a query. */
#include "queries/configuration.h"
#include "base/text.h"
#include "settings/database_url.h"
#include "settings/redis_url.h"
#include <stdio.h>
#include <string.h>

enum { NUMBER_VERSION, NUMBER_FRAMEWORK, NUMBER_TIMEOUT };

#define TEXT(member) offsetof(struct reader_configuration, member)

/* The members that are sent as texts, in this order. The text before them says which of them are set. */
static const size_t members[] = {
        TEXT(url),
        TEXT(default_url),
        TEXT(username),
        TEXT(password),
        TEXT(sentinels),
        TEXT(master_name),
        TEXT(sentinel_password),
        TEXT(namespace),
        TEXT(tls_files[SETTINGS_TLS_CA]),
        TEXT(tls_files[SETTINGS_TLS_CERT]),
        TEXT(tls_files[SETTINGS_TLS_KEY]),
};

#define N_MEMBERS ELEMENTSOF(members)
/* The text that says which members are set, and the members. */
#define N_TEXTS (1 + N_MEMBERS)

static char **member(const struct reader_configuration *configuration, size_t i)
{
        return (char **)(void *)((char *)configuration + members[i]);
}

static int copy_settings(const struct redis_settings *settings, const char *url,
                         struct reader_configuration *ret)
{
        const char *const texts[] = {
                url
                        ?: settings->sentinels ? url
                                               : settings->url,
                settings->url,
                settings->username,
                settings->password,
                settings->sentinels,
                settings->master_name,
                settings->sentinel_password,
                settings->namespace,
                settings->tls_ca_file,
                settings->tls_cert_file,
                settings->tls_key_file,
        };
        int r = 0;

        static_assert(ELEMENTSOF(texts) == N_MEMBERS, "a text for each member");
        for (size_t i = 0; i < N_MEMBERS && r >= 0; i++)
                r = text_copy(texts[i], member(ret, i));
        return r;
}

/* Sets what sqmgr itself needs of the URL. */
static int take_url(struct reader_configuration *configuration)
{
        _cleanup_redis_url_ struct redis_url url = {0};
        const char *text = configuration->url ?: configuration->default_url;
        int r = redis_url_parse(text, &url, NULL);

        if (r < 0)
                return r;
        if (configuration->url)
                configuration->url_text = redis_url_redact(text);
        else if (asprintf(&configuration->url_text, "redis%s://%s/%u", url.tls ? "s" : "",
                          configuration->master_name, url.db) < 0)
                configuration->url_text = NULL;
        return configuration->url_text ? 0 : -ENOMEM;
}

int reader_configuration_make(const struct redis_settings *settings, const char *url, unsigned framework,
                              struct reader_configuration *ret)
{
        *ret = (struct reader_configuration){
                .framework = framework,
                .tls_unverified = settings->tls_unverified,
                .timeout = settings->timeout ?: SERVER_TIMEOUT_USEC,
                .engine = _DATABASE_ENGINE_MAX,
        };
        int r = copy_settings(settings, url, ret);
        if (r >= 0)
                r = take_url(ret);
        if (r < 0)
                reader_configuration_clear(ret);
        return r;
}

int reader_configuration_make_database(const struct redis_settings *settings, const char *url,
                                       unsigned framework, struct reader_configuration *ret)
{
        struct database_url parsed = {.engine = DATABASE_POSTGRESQL};

        *ret = (struct reader_configuration){
                .framework = framework,
                .timeout = settings->timeout ?: SERVER_TIMEOUT_USEC,
                .url = strdup(url),
        };
        int r = database_url_parse(url, &parsed, NULL);
        ret->engine = parsed.engine;
        ret->url_text = r < 0 ? strdup("(no URL)") : TAKE_PTR(parsed.text);
        database_url_clear(&parsed);
        r = r == -ENOMEM || !ret->url || !ret->url_text ? -ENOMEM : 0;
        if (r < 0)
                reader_configuration_clear(ret);
        return r;
}

void reader_configuration_clear(struct reader_configuration *configuration)
{
        for (size_t i = 0; i < N_MEMBERS; i++)
                free(*member(configuration, i));
        free(configuration->url_text);
        *configuration = (struct reader_configuration){0};
}

void reader_configuration_write(struct codec_writer *writer, const struct reader_configuration *configuration)
{
        struct field texts[N_TEXTS];
        char set[N_MEMBERS + 3];
        struct query query = {
                .kind = QUERY_CONFIGURE,
                .numbers = {[NUMBER_VERSION] = QUERY_VERSION,
                            [NUMBER_FRAMEWORK] = configuration->framework,
                            [NUMBER_TIMEOUT] = configuration->timeout},
                .texts = texts,
                .n_texts = N_TEXTS,
        };

        for (size_t i = 0; i < N_MEMBERS; i++) {
                const char *text = *member(configuration, i);

                set[i] = text ? '1' : '0';
                texts[1 + i] = (struct field){.text = text ?: "", .len = text ? strlen(text) : 0};
        }
        set[N_MEMBERS] = configuration->check ? '1' : '0';
        set[N_MEMBERS + 1] = configuration->tls_unverified ? '1' : '0';
        set[N_MEMBERS + 2] = '\0';
        texts[0] = (struct field)QUERY_TEXT(set);
        query_write(writer, 0, &query);
}

int reader_configuration_read(const struct query *query, struct reader_configuration *ret)
{
        const char *set = query_text(query, 0);
        int r = 0;

        *ret = (struct reader_configuration){
                .framework = (unsigned)query->numbers[NUMBER_FRAMEWORK],
                .timeout = query->numbers[NUMBER_TIMEOUT],
        };
        if (query->numbers[NUMBER_VERSION] != QUERY_VERSION)
                return -EPROTO;
        if (query->n_texts != N_TEXTS || strlen(set) != N_MEMBERS + 2)
                return -EBADMSG;
        ret->check = set[N_MEMBERS] == '1';
        ret->tls_unverified = set[N_MEMBERS + 1] == '1';
        for (size_t i = 0; i < N_MEMBERS && r == 0; i++)
                r = text_copy(set[i] == '1' ? query_text(query, 1 + i) : NULL, member(ret, i));
        if (r < 0)
                reader_configuration_clear(ret);
        return r;
}
