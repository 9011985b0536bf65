/* SPDX-License-Identifier: MIT */
/* Parses the URL of a database; see the header for its forms. */
#include "settings/database_url.h"
#include "base/environment.h"
#include "base/parse.h"
#include "base/text.h"
#include <ctype.h>
#include <limits.h>
#include <string.h>

/* libpq of Debian looks there for the socket of a URL that names no host. */
#define POSTGRESQL_FOLDER "/var/run/postgresql"
#define SCHEME_LETTERS    "abcdefghijklmnopqrstuvwxyz0123456789"

static const char *const titles[] = {[DATABASE_POSTGRESQL] = "PostgreSQL", [DATABASE_SQLITE] = "SQLite"};
DEFINE_ENUM_NAMES(database_engine_title, enum database_engine, _DATABASE_ENGINE_MAX, titles)

static const char *const programs[] = {
        [DATABASE_POSTGRESQL] = "sqmgr-postgresql", [DATABASE_SQLITE] = "sqmgr-sqlite"};
DEFINE_ENUM_NAMES(database_engine_program, enum database_engine, _DATABASE_ENGINE_MAX, programs)

void database_url_clear(struct database_url *url)
{
        free(url->text);
        free(url->path);
        *url = (struct database_url){0};
}

/* Sets the path to the first host of a list that is the folder of a socket. */
static int take_folder(const char *hosts, size_t len, struct database_url *url, const char **why)
{
        for (const char *end = hosts + len; hosts < end;) {
                const char *comma = memchr(hosts, ',', (size_t)(end - hosts));
                _cleanup_free_ char *host = NULL;

                int r = percent_decode(hosts, (size_t)((comma ?: end) - hosts), &host, why);
                if (r < 0)
                        return r;
                if (host[0] == '/') {
                        url->path = host;
                        host = NULL;
                        return 0;
                }
                hosts = comma ? comma + 1 : end;
        }
        return 0;
}

/* Returns the value of a parameter, up to the next '&', with its length; NULL: not given. The last one
 * counts. */
static const char *find_parameter(const char *parameters, const char *name, size_t *ret_len)
{
        const char *found = NULL;
        size_t length = strlen(name);

        while (*parameters != '\0') {
                size_t len = strcspn(parameters, "&");

                if (strncmp(parameters, name, length) == 0 && parameters[length] == '=') {
                        found = parameters + length + 1;
                        *ret_len = len - length - 1;
                }
                parameters += len + (parameters[len] == '&');
        }
        return found;
}

static int parse_postgresql(const char *rest, struct database_url *url, const char **why)
{
        static const char in_password[] =
                "in a user name or password, write '@' as %40, '/' as %2F, ':' as %3A";
        /* As libpq does: user and password end at the first '@', which no '/' precedes. */
        size_t skipped = strcspn(rest, "@/");
        const char *hosts = rest[skipped] == '@' ? rest + skipped + 1 : rest;
        size_t hosts_len = strcspn(hosts, "/?"), shown = strcspn(hosts, "?"), len = 0;

        if (memchr(hosts, '@', shown))
                return parse_refuse(why, in_password);
        const char *parameters = hosts + shown + (hosts[shown] == '?');
        const char *host = find_parameter(parameters, "host", &len);
        int r = host ? take_folder(host, len, url, why) : take_folder(hosts, hosts_len, url, why);
        if (r < 0)
                return r;
        if (hosts_len == 0 && !host && !find_parameter(parameters, "hostaddr", &len) &&
            !(url->path = strdup(POSTGRESQL_FOLDER)))
                return -ENOMEM;
        url->text = text_format("postgresql://%.*s", (int)shown, hosts);
        return url->text ? 0 : -ENOMEM;
}

static int parse_sqlite(const char *rest, struct database_url *url, const char **why)
{
        const char *path = strncmp(rest, "//", 2) == 0 ? rest + 2 : rest;
        size_t len = strcspn(path, "?#");

        if (path[0] != '/')
                return parse_refuse(why, "the path of the file must be absolute; write sqlite3:/PATH");
        int r = percent_decode(path, len, &url->path, why);
        if (r < 0)
                return r;
        if (strlen(url->path) >= PATH_MAX || url->path[strlen(url->path) - 1] == '/')
                return parse_refuse(why, "not the path of a file; write sqlite3:/PATH");
        url->text = text_format("sqlite3:%.*s", (int)len, path);
        return url->text ? 0 : -ENOMEM;
}

int database_url_parse(const char *url, struct database_url *ret, const char **why)
{
        static const struct {
                const char *scheme;
                enum database_engine engine;
                const char *refusal;
        } forms[] = {
                {"postgresql://", DATABASE_POSTGRESQL, NULL},
                {"postgres://", DATABASE_POSTGRESQL, NULL},
                {"sqlite3:", DATABASE_SQLITE, NULL},
                {"mysql", _DATABASE_ENGINE_MAX, "MySQL is not supported, only PostgreSQL and SQLite"},
                {"trilogy", _DATABASE_ENGINE_MAX, "MySQL is not supported, only PostgreSQL and SQLite"},
        };
        _cleanup_database_url_ struct database_url parsed = {0};
        size_t i = 0;

        for (const char *at = url; *at != '\0'; at++)
                if ((unsigned char)*at <= ' ' || *at == 0x7f)
                        return parse_refuse(why, "blanks and control characters must be written as %XX");
        while (i < ELEMENTSOF(forms) && strncmp(url, forms[i].scheme, strlen(forms[i].scheme)) != 0)
                i++;
        if (i == ELEMENTSOF(forms))
                return parse_refuse(why, "must begin with postgresql://, postgres:// or sqlite3:/");
        if (forms[i].refusal)
                return parse_refuse(why, forms[i].refusal);
        parsed.engine = forms[i].engine;
        const char *rest = url + strlen(forms[i].scheme);
        int r = parsed.engine == DATABASE_SQLITE ? parse_sqlite(rest, &parsed, why)
                                                 : parse_postgresql(rest, &parsed, why);
        if (r < 0)
                return r;
        *ret = parsed;
        parsed = (struct database_url){0};
        return 0;
}

char *database_url_mask(const char *url)
{
        _cleanup_database_url_ struct database_url parsed = {0};
        const char *masked = strchr(url, '@') || strchr(url, '?') ? "***@" : "";

        if (database_url_parse(url, &parsed, NULL) < 0)
                return strdup("***");
        if (parsed.engine == DATABASE_SQLITE)
                return TAKE_PTR(parsed.text);
        return text_format("postgresql://%s%s", masked, parsed.text + strlen("postgresql://"));
}

int database_url_of_file(const char *text, size_t length, char **ret, const char **why)
{
        _cleanup_environment_ struct environment environment = {0};
        unsigned line;

        size_t skipped = strspn(text, " \t\r\n"), scheme = strspn(text + skipped, SCHEME_LETTERS);
        if (text[skipped + scheme] == ':') {
                size_t len = strcspn(text + skipped, " \t\r\n");
                const char *rest = text + skipped + len;

                if (rest + strspn(rest, " \t\r\n") != text + length)
                        return parse_refuse(why, "more than one line follows; put only the URL there");
                *ret = strndup(text + skipped, len);
                return *ret ? 0 : -ENOMEM;
        }
        int r = environment_put_lines(&environment, text, length, &line, why ?: &(const char *){NULL});
        if (r < 0)
                return r;
        const char *value = environment_get(&environment, "QUEUE_DATABASE_URL")
                                    ?: environment_get(&environment, "DATABASE_URL");
        if (!value)
                return parse_refuse(why, "neither a URL nor a line DATABASE_URL=...");
        *ret = strdup(value);
        return *ret ? 0 : -ENOMEM;
}
