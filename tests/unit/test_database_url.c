/* SPDX-License-Identifier: MIT */
/* Does the URL of a database say what it should, and is its password hidden? */
/* promises: P10 */
#include "golden.h"
#include "settings/database_url.h"
#include "unit.h"
#include <string.h>

static const struct {
        const char *url, *text, *path, *mask;
} good[] = {
        {"postgresql://db", "postgresql://db", NULL, "postgresql://db"},
        {"postgres://app:secret@db:5433/queue", "postgresql://db:5433/queue", NULL,
         "postgresql://***@db:5433/queue"},
        {"postgres://app:s%40c@a:1,b:2/queue?sslmode=verify-full&password=secret",
         "postgresql://a:1,b:2/queue", NULL, "postgresql://***@a:1,b:2/queue"},
        {"postgres://u:p?w@db/q", "postgresql://db/q", NULL, "postgresql://***@db/q"},
        {"postgresql://[::1]:5432/q", "postgresql://[::1]:5432/q", NULL, "postgresql://[::1]:5432/q"},
        {"postgresql:///queue", "postgresql:///queue", "/var/run/postgresql", "postgresql:///queue"},
        {"postgresql:///queue?hostaddr=10.0.0.1", "postgresql:///queue", NULL, "postgresql://***@/queue"},
        {"postgresql:///q?host=/run/pg&port=5433", "postgresql:///q", "/run/pg", "postgresql://***@/q"},
        {"postgresql://db/q?host=/run/pg%20x", "postgresql://db/q", "/run/pg x", "postgresql://***@db/q"},
        {"postgresql://db/q?xhost=/run/pg", "postgresql://db/q", NULL, "postgresql://***@db/q"},
        {"postgresql://%2Frun%2Fpg/q", "postgresql://%2Frun%2Fpg/q", "/run/pg", "postgresql://%2Frun%2Fpg/q"},
        {"postgresql://db,%2Frun%2Fpg/q", "postgresql://db,%2Frun%2Fpg/q", "/run/pg",
         "postgresql://db,%2Frun%2Fpg/q"},
        {"sqlite3:/srv/app/queue.sqlite3", "sqlite3:/srv/app/queue.sqlite3", "/srv/app/queue.sqlite3",
         "sqlite3:/srv/app/queue.sqlite3"},
        {"sqlite3:///srv/q.db?timeout=5000", "sqlite3:/srv/q.db", "/srv/q.db", "sqlite3:/srv/q.db"},
        {"sqlite3:/srv/a%20b?pool=5", "sqlite3:/srv/a%20b", "/srv/a b", "sqlite3:/srv/a%20b"},
};

TEST_LOOP(reads_every_form_and_shows_no_secret, ELEMENTSOF(good))
{
        _cleanup_database_url_ struct database_url url = {0};
        _cleanup_free_ char *mask = database_url_mask(good[_i].url);

        ck_assert_int_eq(database_url_parse(good[_i].url, &url, NULL), 0);
        ck_assert_int_eq(url.engine,
                         strncmp(good[_i].url, "sqlite", 6) == 0 ? DATABASE_SQLITE : DATABASE_POSTGRESQL);
        ck_assert_str_eq(url.text, good[_i].text);
        ck_assert_pstr_eq(url.path, good[_i].path);
        ck_assert_str_eq(mask, good[_i].mask);
        /* The text is a URL of the same place. */
        _cleanup_database_url_ struct database_url again = {0};
        ck_assert_int_eq(database_url_parse(url.text, &again, NULL), 0);
        ck_assert_str_eq(again.text, url.text);
}

static const char *const bad[] = {
        "",
        "redis://h",
        "postgresql:/x",
        "mysql2://h/d",
        "trilogy://h/d",
        "mysql://h/d",
        "sqlite3:queue.sqlite3",
        "sqlite3://queue.sqlite3",
        "sqlite3:",
        "sqlite3::memory:",
        "sqlite3:/srv/",
        "sqlite3:/a%00b",
        "sqlite3:/a%zz",
        "postgresql://u:s/e@h/q",
        "postgresql://u:s@e@h/q",
        "postgresql://h/q\n",
        "postgresql://h q",
        "postgresql://%2/q",
        "postgresql:///q?host=%",
};

TEST(refuses_what_is_no_url_and_does_not_quote_it)
{
        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
                struct database_url url = {.path = (char *)"kept"};
                const char *why = NULL;
                _cleanup_free_ char *mask = database_url_mask(bad[i]);

                ck_assert_int_eq(database_url_parse(bad[i], &url, &why), -EINVAL);
                ck_assert_str_eq(url.path, "kept");
                ck_assert_int_eq(database_url_parse(bad[i], &url, NULL), -EINVAL);
                ck_assert_str_eq(mask, "***");
                golden_add(golden_label(bad[i]), why);
        }
        golden_end("settings-errors", "database URL");
}

static const struct {
        const char *text;
        const char *url; /* NULL: refused */
} files[] = {
        {"postgres://u:p@h/q?sslmode=require\n", "postgres://u:p@h/q?sslmode=require"},
        {"\n  sqlite3:/srv/q.db", "sqlite3:/srv/q.db"},
        {"# the app\nRAILS_ENV=production\nDATABASE_URL=postgres://h/app\n", "postgres://h/app"},
        {"export DATABASE_URL='postgres://h/app'\nQUEUE_DATABASE_URL=\"postgres://h/queue\"\n",
         "postgres://h/queue"},
        {"postgres://h/q\nDATABASE_URL=postgres://h/app\n", NULL},
        {"RAILS_ENV=production\n", NULL},
        {"", NULL},
        {"DATABASE_URL='a\n", NULL},
        {"no line\n", NULL},
};

TEST_LOOP(finds_the_url_in_a_file, ELEMENTSOF(files))
{
        _cleanup_free_ char *url = NULL;
        const char *why = NULL;
        int r = database_url_of_file(files[_i].text, strlen(files[_i].text), &url, &why);

        ck_assert_int_eq(r, files[_i].url ? 0 : -EINVAL);
        ck_assert_pstr_eq(url, files[_i].url);
        ck_assert(files[_i].url ? !why : !!why);
}

TEST(a_file_with_a_nul_is_refused)
{
        static const char text[] = "DATABASE_URL=postgres://h\0x\n", alone[] = "postgres://h\0x";
        char *url = NULL;
        const char *why;

        ck_assert_int_eq(database_url_of_file(text, sizeof(text) - 1, &url, &why), -EINVAL);
        ck_assert_int_eq(database_url_of_file(alone, sizeof(alone) - 1, &url, &why), -EINVAL);
}

TEST_MAIN("database_url")
