/* SPDX-License-Identifier: MIT */
/* Reads the URL of a PostgreSQL database; see the header. */
#include "database/postgresql_url.h"
#include "base/parse.h"
#include <pwd.h>
#include <stdio.h>
#include <string.h>

/* Names no file: below a device there is none. libpq reads the default file of a parameter that is empty. */
#define NO_FILE "/dev/null/none"

/* Files of the system with the authorities that issue certificates: Debian and Alpine; Fedora; SUSE. */
static const char *const roots[] = {
        "/etc/ssl/certs/ca-certificates.crt",
        "/etc/pki/tls/certs/ca-bundle.crt",
        "/etc/ssl/ca-bundle.pem",
};

static bool is_known(const PQconninfoOption *options, const char *name, size_t len)
{
        while (options->keyword &&
               (strncmp(options->keyword, name, len) != 0 || options->keyword[len] != '\0'))
                options++;
        return options->keyword;
}

/* Copies the URL without parameters that libpq would refuse. */
static char *drop_unknown(const char *text, const PQconninfoOption *options)
{
        size_t used = strcspn(text, "?");
        char *url = malloc(strlen(text) + 1);
        char separator = '?';

        if (!url)
                return NULL;
        memcpy(url, text, used);
        for (const char *at = text + used; *at != '\0';) {
                size_t len = strcspn(++at, "&");
                size_t name_len = strcspn(at, "=&");

                if (is_known(options, at, name_len) || (len == 8 && strncmp(at, "ssl=true", len) == 0)) {
                        url[used++] = separator;
                        memcpy(url + used, at, len);
                        used += len;
                        separator = '&';
                }
                at += len;
        }
        url[used] = '\0';
        return url;
}

static const char *value_of(const PQconninfoOption *options, const char *name)
{
        while (options->keyword && strcmp(options->keyword, name) != 0)
                options++;
        return options->val && options->val[0] != '\0' ? options->val : NULL;
}

static size_t count(const char *list)
{
        size_t n = 1;

        for (; *list != '\0'; list++)
                n += *list == ',';
        return n;
}

/* Sets *ret to entry i of a list; a list of one entry is for all. NULL: the entry or the list is empty. */
static int take_entry(const char *list, size_t i, bool one_for_all, char **ret)
{
        if (!list)
                return 0;
        for (size_t n = one_for_all && count(list) == 1 ? 0 : i; n > 0; n--) {
                list += strcspn(list, ",");
                list += *list == ',';
        }
        size_t len = strcspn(list, ",");
        if (len > 0)
                *ret = strndup(list, len);
        return len > 0 && !*ret ? -ENOMEM : 0;
}

static int take_servers(const PQconninfoOption *options, struct postgresql_url *url, const char **why)
{
        const char *hosts = value_of(options, "host"), *addresses = value_of(options, "hostaddr");
        const char *ports = value_of(options, "port");
        size_t n = count(addresses ?: hosts ?: "");
        int r = 0;

        if (n > POSTGRESQL_SERVERS_MAX)
                return parse_refuse(why, "the URL names too many servers");
        if ((hosts && count(hosts) != n) || (ports && count(ports) != 1 && count(ports) != n))
                return parse_refuse(why,
                                    "the URL has lists of hosts, addresses and ports that differ in length");
        for (url->n_servers = 0; r == 0 && url->n_servers < n; url->n_servers++) {
                struct postgresql_server *server = &url->servers[url->n_servers];

                r = take_entry(hosts, url->n_servers, false, &server->name);
                if (r == 0)
                        r = take_entry(addresses, url->n_servers, false, &server->address);
                if (r == 0)
                        r = take_entry(ports, url->n_servers, true, &server->port);
                if (r == 0 && n > 1 && !server->name && !server->address)
                        r = parse_refuse(why, "the URL has a list of hosts with an empty one");
        }
        return r;
}

/* libpq before 16 does not know `sslrootcert=system`, and has no default below /etc for the modes that
 * verify. The other modes verify too if a file is given, so they get none. */
static void take_root(const PQconninfoOption *options, struct postgresql_url *url)
{
        const char *mode = value_of(options, "sslmode"), *root = value_of(options, "sslrootcert");
        bool is_system = root && strcmp(root, "system") == 0;

        if (root && !is_system)
                return;
        url->root = NO_FILE;
        url->verifies_name = is_system && !mode;
        if (is_system || (mode && strncmp(mode, "verify-", 7) == 0))
                for (size_t i = ELEMENTSOF(roots); i-- > 0;)
                        if (access(roots[i], R_OK) == 0)
                                url->root = roots[i];
}

static int take_user(const PQconninfoOption *options, struct postgresql_url *url)
{
        const struct passwd *user = value_of(options, "user") ? NULL : getpwuid(geteuid());

        if (user)
                url->user = strdup(user->pw_name);
        return user && !url->user ? -ENOMEM : 0;
}

static int take(const PQconninfoOption *options, struct postgresql_url *url, const char **why)
{
        if (value_of(options, "service"))
                return parse_refuse(why, "the URL names a service of a file, which is not read");
        int r = take_servers(options, url, why);
        if (r == 0)
                r = take_user(options, url);
        take_root(options, url);
        return r;
}

int postgresql_url_read(const char *text, struct postgresql_url *ret, const char **why)
{
        PQconninfoOption *all = PQconninfoParse("postgresql://", NULL), *options = NULL;
        struct postgresql_url url = {.text = all ? drop_unknown(text, all) : NULL};
        char *message = NULL;
        int r = -ENOMEM;

        /* Not quoted: the message may contain the password. */
        if (url.text && !(options = PQconninfoParse(url.text, &message)) && message)
                r = parse_refuse(why, "libpq cannot read the URL. Check the parameters behind '?'");
        if (options)
                r = take(options, &url, why);
        PQfreemem(message);
        PQconninfoFree(options);
        PQconninfoFree(all);
        if (r < 0)
                postgresql_url_clear(&url);
        else
                *ret = url;
        return r;
}

void postgresql_url_clear(struct postgresql_url *url)
{
        if (url->text)
                explicit_bzero(url->text, strlen(url->text));
        free(url->text);
        free(url->user);
        FOREACH_ELEMENT(server, url->servers) {
                free(server->name);
                free(server->address);
                free(server->port);
        }
        *url = (struct postgresql_url){0};
}

bool postgresql_server_is_local(const struct postgresql_server *server)
{
        return !server->address && (!server->name || server->name[0] == '/' || server->name[0] == '@');
}

PGconn *postgresql_connect(const struct postgresql_url *url, const struct postgresql_server *server,
                           const char *address)
{
        /* The last value of a parameter counts, and an empty one is skipped: defaults stand before the URL,
         * and what is not up to the URL behind it. */
        const struct {
                const char *name, *value;
        } parameters[] = {
                {"user", url->user},
                {"passfile", NO_FILE},
                {"require_auth", PQlibVersion() >= 160000 ? "!gss,!sspi" : NULL},
                {"sslcert", NO_FILE},
                {"sslkey", NO_FILE},
                {"sslcrl", NO_FILE},
                {"fallback_application_name", "sqmgr"},
                /* A server that is gone is noticed within a minute, even between batches. */
                {"keepalives_idle", "30"},
                {"keepalives_interval", "10"},
                {"keepalives_count", "3"},
                {"dbname", url->text},
                {"host", server->name},
                {"hostaddr", address},
                {"port", server->port},
                {"sslrootcert", url->root},
                {"sslmode", url->verifies_name ? "verify-full" : NULL},
                {"client_encoding", "UTF8"},
                /* Kerberos reads files and asks servers while the loop waits. */
                {"gssencmode", "disable"},
        };
        const char *names[ELEMENTSOF(parameters) + 1] = {NULL}, *values[ELEMENTSOF(parameters) + 1] = {NULL};

        for (size_t i = 0; i < ELEMENTSOF(parameters); i++) {
                names[i] = parameters[i].name;
                values[i] = parameters[i].value ?: "";
        }
        return PQconnectStartParams(names, values, 1);
}
