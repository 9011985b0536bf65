/* SPDX-License-Identifier: MIT */
/* Does the URL of a Redis say what it should, and is its password hidden? */
/* promises: P10 */
#include "golden.h"
#include "settings/redis_url.h"
#include "unit.h"
#include <string.h>

static const struct {
        const char *url, *host, *path, *username, *password;
        unsigned port, db;
        bool tls;
} good[] = {
        {"redis://127.0.0.1:6379/0", "127.0.0.1", NULL, NULL, NULL, 6379, 0, false},
        {"redis://localhost", "localhost", NULL, NULL, NULL, 6379, 0, false},
        {"redis://cache-1.example.org:7000/15", "cache-1.example.org", NULL, NULL, NULL, 7000, 15, false},
        {"redis://host/", "host", NULL, NULL, NULL, 6379, 0, false},
        {"redis://[::1]:6380/1", "::1", NULL, NULL, NULL, 6380, 1, false},
        {"redis://[fe80::1%eth0]", "fe80::1%eth0", NULL, NULL, NULL, 6379, 0, false},
        {"redis://:secret@host", "host", NULL, NULL, "secret", 6379, 0, false},
        {"redis://me:secret@host/2", "host", NULL, "me", "secret", 6379, 2, false},
        {"redis://me:p%40s%2f%3A@host", "host", NULL, "me", "p@s/:", 6379, 0, false},
        /* the last '@' divides */
        {"redis://me:a@b@host", "host", NULL, "me", "a@b", 6379, 0, false},
        {"redis://me@host", "host", NULL, "me", NULL, 6379, 0, false},
        {"redis://me:@host", "host", NULL, "me", NULL, 6379, 0, false},
        {"rediss://host:6380", "host", NULL, NULL, NULL, 6380, 0, true},
        {"unix:///run/redis/redis.sock", NULL, "/run/redis/redis.sock", NULL, NULL, 6379, 0, false},
        {"unix:///run/r.sock?db=3", NULL, "/run/r.sock", NULL, NULL, 6379, 3, false},
        {"unix://me:pw@/run/a@b?db=1", NULL, "/run/a@b", "me", "pw", 6379, 1, false},
        {"unix:///run/with%20blank", NULL, "/run/with blank", NULL, NULL, 6379, 0, false},
};

TEST_LOOP(reads_every_form, ELEMENTSOF(good))
{
        _cleanup_redis_url_ struct redis_url url = {0};
        const char *error = NULL;

        ck_assert_int_eq(redis_url_parse(good[_i].url, &url, &error), 0);
        ck_assert_pstr_eq(url.host, good[_i].host);
        ck_assert_pstr_eq(url.path, good[_i].path);
        ck_assert_pstr_eq(url.username, good[_i].username);
        ck_assert_pstr_eq(url.password, good[_i].password);
        ck_assert_uint_eq(url.port, good[_i].port);
        ck_assert_uint_eq(url.db, good[_i].db);
        ck_assert_int_eq(url.tls, good[_i].tls);
}

static const char *const bad[] = {
        "",
        "localhost:6379",
        "http://host",
        "REDIS://host",
        "redis:/host",
        "redis://",
        "redis://:6379",
        "redis://:secret@",
        "redis://ho st",
        "redis://::1",
        "redis://[]",
        "redis://[::1",
        "redis://[::1]x",
        "redis://host:",
        "redis://host:0",
        "redis://host:65536",
        "redis://host:6379x",
        "redis://host:-1",
        "redis://host:99999999999",
        "redis://:pa/ss@host", /* ':' and no port: the '/' ended the authority */
        "redis://host/x",
        "redis://host/1/2",
        "redis://host/2147483648",
        "redis://host?db=1",
        "redis://host/1#x",
        "redis://a%zz:b@host",
        "redis://a:b%4@host",
        "redis://a:b%@host",
        "redis://a:b%00c@host",
        "unix://",
        "unix:///",
        "unix://run/redis.sock",
        "unix:///run/r.sock?db=",
        "unix:///run/r.sock?password=x",
        "unix:///run/r.sock?db=1&password=x",
        "unix:///run/%zz",
        "unix:///"
        "012345678901234567890123456789012345678901234567890123456789012345678901234567890123456789012345678"
        "9"
        "01234567",
};

TEST(refuses_the_rest_and_says_why)
{
        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                struct redis_url url = {.port = 1};
                const char *error = NULL;

                ck_assert_int_eq(redis_url_parse(bad[i], &url, &error), -EINVAL);
                ck_assert_ptr_nonnull(error);
                golden_add(bad[i], error);
                ck_assert_uint_eq(url.port, 1);
                ck_assert_int_eq(redis_url_parse(bad[i], &url, NULL), -EINVAL);
        }
        golden_end("settings-errors", "url of Redis");
}

TEST(refuses_a_host_beyond_any_name)
{
        char text[300] = "redis://";
        struct redis_url url;

        memset(text + 8, 'a', 254);
        text[8 + 254] = '\0';
        ck_assert_int_eq(redis_url_parse(text, &url, NULL), -EINVAL);
        text[8 + 253] = '\0';
        ck_assert_int_eq(redis_url_parse(text, &url, NULL), 0);
        redis_url_clear(&url);
}

static const struct {
        const char *url, *text;
} redacted[] = {
        {"redis://127.0.0.1:6379/0", "redis://127.0.0.1:6379/0"},
        {"redis://me:hunter2@host/1", "redis://host/1"},
        {"redis://:hunter2@host", "redis://host"},
        {"redis://hunter2@host", "redis://host"},
        {"redis://me:hun@ter2@host", "redis://host"},
        {"redis://me:hun/ter2@host", "redis://host"},
        {"redis://me:hun#ter2@host:x", "redis://host:x"},
        {"unix://:hunter2@/run/a@b?db=1", "unix:///run/a@b?db=1"},
        {"unix:///run/a@b", "unix:///run/a@b"},
        {"me:hunter2@host", "(not a URL)"},
        {"host", "host"},
};

TEST_LOOP(hides_the_password, ELEMENTSOF(redacted))
{
        _cleanup_free_ char *text = redis_url_redact(redacted[_i].url);

        ck_assert_ptr_nonnull(text);
        ck_assert_str_eq(text, redacted[_i].text);
}

TEST(reads_the_addresses_of_sentinels)
{
        static const struct {
                const char *host;
                unsigned port;
        } expect[] = {{"10.0.0.1", 26379}, {"sentinel-2", 7000}, {"::1", 26380}};
        struct redis_url *list;
        size_t n;

        ck_assert_int_eq(redis_sentinels_parse(" 10.0.0.1,sentinel-2:7000 , [::1]:26380 ", &list, &n, NULL),
                         0);
        ck_assert_uint_eq(n, ELEMENTSOF(expect));
        for (size_t i = 0; i < n; i++) {
                ck_assert_str_eq(list[i].host, expect[i].host);
                ck_assert_uint_eq(list[i].port, expect[i].port);
        }
        redis_sentinels_free(list, n);
}

TEST(refuses_what_are_no_addresses_of_sentinels)
{
        static const char *const wrong[] = {"",        ",",     "h:1,", "h:1 h:2", "h:0",
                                            "h:65536", "u@h:1", "::1",  "[::1",    "h:1;h:2"};
        struct redis_url *list;
        const char *error = NULL;
        size_t n;

        for (size_t i = 0; i < ELEMENTSOF(wrong); i++)
                ck_assert_msg(redis_sentinels_parse(wrong[i], &list, &n, &error) == -EINVAL && error, "%s",
                              wrong[i]);
}

static const struct {
        const char *url, *other;
        enum redis_difference difference;
} compared[] = {
        {"redis://cache/1", "redis://CACHE:6379/1", REDIS_SAME},
        {"redis://cache/1", "redis://cache/2", REDIS_OTHER_DATABASE},
        {"redis://cache/1", "redis://cache:7000/1", REDIS_OTHER_SERVER},
        {"redis://cache/1", "redis://other/2", REDIS_OTHER_SERVER},
        {"redis://localhost", "redis://127.0.0.2", REDIS_SAME},
        {"redis://[::1]", "redis://127.0.0.1/3", REDIS_OTHER_DATABASE},
        {"redis://localhost", "redis://127.0.0.1:7000", REDIS_OTHER_SERVER},
        {"redis://localhost", "redis://cache", REDIS_OTHER_SERVER},
        {"unix:///run/redis.sock", "unix:///run/redis.sock", REDIS_SAME},
        {"unix:///run/redis.sock", "unix:///run/redis.sock?db=1", REDIS_OTHER_DATABASE},
        {"unix:///run/redis.sock", "unix:///run/other.sock", REDIS_OTHER_SERVER},
        {"unix:///run/redis.sock", "redis://localhost:7000", REDIS_SAME},
        {"unix:///run/redis.sock", "redis://cache", REDIS_OTHER_SERVER},
        {"unix:///run/redis.sock", "no URL", REDIS_SAME},
};

TEST_LOOP(compares_server_and_database, ELEMENTSOF(compared))
{
        const char *url = compared[_i].url, *other = compared[_i].other;

        ck_assert_int_eq(redis_url_compare(url, other).difference, compared[_i].difference);
        ck_assert_int_eq(redis_url_compare(other, url).difference, compared[_i].difference);
}

TEST(a_difference_is_described)
{
        struct redis_comparison database = redis_url_compare("redis://cache/1", "redis://cache/2"),
                                server = redis_url_compare("redis://cache/1", "redis://other/1");
        char text[REDIS_DIFFERENCE_MAX];

        ck_assert_uint_eq(database.db, 1);
        ck_assert_uint_eq(database.other_db, 2);
        golden_begin();
        golden_add("database", redis_difference_text(&database, text));
        golden_add("server", redis_difference_text(&server, text));
        golden_end("describe", "redis");
}

TEST_MAIN("redis_url")
