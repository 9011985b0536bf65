/* SPDX-License-Identifier: MIT */
/* Parses the URL of a Redis; see the header for its forms. */
#include "settings/redis_url.h"
#include "base/parse.h"
#include "base/text.h"
#include <limits.h>
#include <string.h>
#include <strings.h>
#include <sys/un.h>

#define REDIS_PORT    6379
#define SENTINEL_PORT 26379
#define HOST_MAX      253
#define URL_LETTERS   "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
#define URL_DIGITS    "0123456789"
#define BLANKS        " \t"
#define PASSWORD_HINT "in a password, write '/' as %2F, '?' as %3F, '#' as %23, '@' as %40"

static const char SENTINELS_ERROR[] = "must be a list 'host:port, host:port' of names or addresses; write "
                                      "IPv6 addresses in [], ports from 1 to 65535";

void redis_url_clear(struct redis_url *url)
{
        free(url->host);
        free(url->path);
        free(url->username);
        if (url->password)
                explicit_bzero(url->password, strlen(url->password));
        free(url->password);
        *url = (struct redis_url){0};
}

/* Parses a decimal number of at most max, without other characters. */
static bool parse_number(const char *text, size_t len, unsigned max, unsigned *ret)
{
        char digits[11] = "";
        uint64_t value = 0;

        if (len < sizeof(digits))
                memcpy(digits, text, len);
        if (parse_unsigned(digits, 0, max, &value) < 0)
                return false;
        *ret = (unsigned)value;
        return true;
}

static int parse_userinfo(const char *text, size_t len, struct redis_url *url, const char **ret_error)
{
        const char *colon = memchr(text, ':', len);
        size_t user_len = colon ? (size_t)(colon - text) : len;
        int r;

        if (user_len > 0) {
                r = percent_decode(text, user_len, &url->username, ret_error);
                if (r < 0)
                        return r;
        }
        if (!colon || user_len + 1 == len)
                return 0;
        return percent_decode(colon + 1, len - user_len - 1, &url->password, ret_error);
}

/* `host`, `host:port` or `[v6]:port`. */
static int parse_host(const char *text, size_t len, struct redis_url *url, const char **ret_error)
{
        const char *host = text, *rest;
        const char *allowed = URL_LETTERS URL_DIGITS ".-_";
        size_t host_len;

        if (len > 0 && text[0] == '[') {
                const char *end = memchr(text, ']', len);
                if (!end)
                        return parse_refuse(ret_error, "the IPv6 address has no closing ']'");
                host = text + 1;
                host_len = (size_t)(end - host);
                rest = end + 1;
                allowed = URL_LETTERS URL_DIGITS ":.%-_";
        } else {
                const char *colon = memchr(text, ':', len);
                host_len = colon ? (size_t)(colon - text) : len;
                rest = text + host_len;
        }

        if (host_len == 0 || host_len > HOST_MAX || strspn(host, allowed) < host_len)
                return parse_refuse(
                        ret_error,
                        "the host must be a name, an IPv4 address or an IPv6 address in []; " PASSWORD_HINT);
        size_t rest_len = len - (size_t)(rest - text);
        if (rest_len > 0 &&
            (rest[0] != ':' || !parse_number(rest + 1, rest_len - 1, 65535, &url->port) || url->port == 0))
                return parse_refuse(ret_error, "the port must be a number from 1 to 65535");
        url->host = strndup(host, host_len);
        return url->host ? 0 : -ENOMEM;
}

/* Parses `/path?db=N`, after the authority of a unix URL. */
static int parse_unix_path(const char *text, struct redis_url *url, const char **ret_error)
{
        size_t len = strcspn(text, "?#");
        const char *query = text + len;

        if (len < 2)
                return parse_refuse(ret_error, "the path of the socket is missing; write, for example, "
                                               "unix:///run/redis/redis.sock");
        if (*query && (strncmp(query, "?db=", 4) != 0 ||
                       !parse_number(query + 4, strlen(query + 4), INT_MAX, &url->db)))
                return parse_refuse(ret_error, "only ?db=NUMBER may follow the path of the socket");
        int r = percent_decode(text, len, &url->path, ret_error);
        if (r < 0)
                return r;
        if (strlen(url->path) >= sizeof(((struct sockaddr_un *)0)->sun_path))
                return parse_refuse(ret_error,
                                    "the path of the socket has more than 107 bytes; shorten the path");
        return 0;
}

/* Parses `/db`, after the authority of a TCP URL. */
static int parse_database(const char *text, struct redis_url *url, const char **ret_error)
{
        if (*text == '\0' || strcmp(text, "/") == 0)
                return 0;
        if (text[0] != '/' || !parse_number(text + 1, strlen(text + 1), INT_MAX, &url->db))
                return parse_refuse(ret_error, "only /NUMBER, the database, may follow the host");
        return 0;
}

/* Splits off the scheme. Returns the text after "://", or NULL. */
static const char *parse_scheme(const char *url, bool *ret_unix, bool *ret_tls)
{
        static const struct {
                const char *text;
                bool is_unix, tls;
        } schemes[] = {
                {"redis://", false, false},
                {"rediss://", false, true},
                {"unix://", true, false},
        };

        for (size_t i = 0; i < ELEMENTSOF(schemes); i++) {
                size_t len = strlen(schemes[i].text);
                if (strncmp(url, schemes[i].text, len) == 0) {
                        *ret_unix = schemes[i].is_unix;
                        *ret_tls = schemes[i].tls;
                        return url + len;
                }
        }
        return NULL;
}

int redis_url_parse(const char *url, struct redis_url *ret, const char **ret_error)
{
        _cleanup_redis_url_ struct redis_url parsed = {.port = REDIS_PORT};
        bool is_unix = false;
        int r;

        const char *authority = parse_scheme(url, &is_unix, &parsed.tls);
        if (!authority)
                return parse_refuse(ret_error, "must begin with redis://, rediss:// or unix://");
        size_t len = strcspn(authority, "/?#");
        const char *rest = authority + len;
        const char *at = memrchr(authority, '@', len);
        if (at) {
                r = parse_userinfo(authority, (size_t)(at - authority), &parsed, ret_error);
                if (r < 0)
                        return r;
                len -= (size_t)(at + 1 - authority);
                authority = at + 1;
        }

        if (is_unix && len > 0)
                return parse_refuse(ret_error, "the path of the socket must be absolute; write unix:///PATH");
        if (!is_unix) {
                r = parse_host(authority, len, &parsed, ret_error);
                if (r < 0)
                        return r;
        }
        r = is_unix ? parse_unix_path(rest, &parsed, ret_error) : parse_database(rest, &parsed, ret_error);
        if (r < 0)
                return r;

        *ret = parsed;
        parsed = (struct redis_url){0};
        return 0;
}

int redis_sentinels_parse(const char *text, struct redis_url **ret, size_t *ret_n, const char **ret_error)
{
        struct redis_url *list = NULL;
        size_t n = 0;
        int r;

        for (;;) {
                text += strspn(text, BLANKS);
                size_t whole = strcspn(text, ","), len = whole;
                while (len > 0 && strchr(BLANKS, text[len - 1]))
                        len--;

                r = ARRAY_RESIZE(list, n + 1) ? 0 : -ENOMEM;
                if (r < 0)
                        break;
                list[n] = (struct redis_url){.port = SENTINEL_PORT};
                r = parse_host(text, len, &list[n], NULL);
                if (r == -EINVAL)
                        r = parse_refuse(ret_error, SENTINELS_ERROR);
                if (r < 0)
                        break;
                n++;
                if (text[whole] == '\0') {
                        *ret = list;
                        *ret_n = n;
                        return 0;
                }
                text += whole + 1;
        }
        redis_sentinels_free(list, n);
        return r;
}

void redis_sentinels_free(struct redis_url *list, size_t n)
{
        for (size_t i = 0; i < n; i++)
                redis_url_clear(&list[i]);
        free(list);
}

size_t url_server_length(const char *url)
{
        const char *host = strstr(url, "://");

        /* Without a host, the path is the server. */
        return host && host[3] != '/' ? (size_t)(host - url) + 3 + strcspn(host + 3, "/?")
                                      : strcspn(url, "?");
}

char *redis_url_redact(const char *url)
{
        _cleanup_redis_url_ struct redis_url parsed = {0};
        const char *authority = strstr(url, "://");

        if (!authority) {
                /* Without a scheme, the place of a password is unknown. */
                return strdup(strchr(url, '@') ? "(not a URL)" : url);
        }
        authority += strlen("://");

        /* In a URL that does not parse, an unescaped '/' may be part of the password. */
        bool valid = redis_url_parse(url, &parsed, NULL) == 0;
        const char *at = memrchr(authority, '@', valid ? strcspn(authority, "/?#") : strlen(authority));
        const char *rest = at ? at + 1 : authority;
        return text_format("%.*s%s", (int)(authority - url), url, rest);
}

/* Returns true if the URL names this machine. */
static bool is_local(const struct redis_url *url)
{
        return !url->host || strcasecmp(url->host, "localhost") == 0 || strncmp(url->host, "127.", 4) == 0 ||
               strcmp(url->host, "::1") == 0;
}

/* A socket and a port of this machine may belong to one server. */
static bool is_same_server(const struct redis_url *a, const struct redis_url *b)
{
        if (!a->host && !b->host)
                return strcmp(a->path, b->path) == 0;
        if (!a->host || !b->host)
                return is_local(a) && is_local(b);
        return a->port == b->port && ((is_local(a) && is_local(b)) || strcasecmp(a->host, b->host) == 0);
}

struct redis_comparison redis_url_compare(const char *url, const char *other)
{
        _cleanup_redis_url_ struct redis_url a = {0}, b = {0};

        if (redis_url_parse(url, &a, NULL) < 0 || redis_url_parse(other, &b, NULL) < 0)
                return (struct redis_comparison){0};
        return (struct redis_comparison){.difference = !is_same_server(&a, &b) ? REDIS_OTHER_SERVER
                                                       : a.db != b.db          ? REDIS_OTHER_DATABASE
                                                                               : REDIS_SAME,
                                         .db = a.db,
                                         .other_db = b.db};
}

const char *redis_difference_text(const struct redis_comparison *comparison,
                                  char text[static REDIS_DIFFERENCE_MAX])
{
        if (comparison->difference == REDIS_OTHER_DATABASE)
                snprintf(text, REDIS_DIFFERENCE_MAX,
                         "REDIS_URL in the environment selects database %u, redis_url selects database %u",
                         comparison->db, comparison->other_db);
        else
                snprintf(text, REDIS_DIFFERENCE_MAX,
                         "REDIS_URL in the environment and redis_url point to different servers");
        return text;
}
