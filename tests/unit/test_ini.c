/* SPDX-License-Identifier: MIT */
/* Tests of io/ini.h with real files. */
/* promises: P10 */
#include "frameworks/table.h"
#include "golden.h"
#include "io/ini.h"
#include "settings/errors.h"
#include "settings/operations.h"
#include "settings/settings.h"
#include "unit.h"
#include <fcntl.h>

#define FLEET "[fleet:a]\ncommand = run\n"

static char *dir, *ini;

/* The user of the tests: may not be root, then what needs root's files is left out. */
static const struct settings_surroundings as_user = {
        .frameworks = framework_traits, .memory_total_bytes = 1 << 30, .runtime_dir = "/run/user/1"};

static void set_up(void)
{
        char template[] = "/tmp/sqmgr-test-config-XXXXXX";

        ck_assert_ptr_nonnull(mkdtemp(template));
        dir = strdup(template);
        ck_assert_int_ge(asprintf(&ini, "%s/sqmgr.ini", dir), 0);
}

static void tear_down(void)
{
        unit_remove_tree(dir);
        free(dir);
        free(ini);
}

static void write_bytes(const char *text, size_t length)
{
        FILE *file = fopen(ini, "we");

        ck_assert_ptr_nonnull(file);
        ck_assert_uint_eq(fwrite(text, 1, length, file), length);
        ck_assert_int_eq(fclose(file), 0);
}

/* Loads the file for that user. Returns the settings, or NULL. *ret_text: errors, then warnings, "!" before
 * each. */
static struct settings *load(const struct settings_surroundings *surroundings, char **ret_text)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        struct settings *settings = NULL;

        int r = ini_load_for(ini, surroundings, &settings, &errors, &warnings);
        ck_assert_int_eq(r, settings_errors_any(&errors) ? -EINVAL : 0);
        _cleanup_free_ char *wrong = settings_errors_text(&errors, "f"),
                            *odd = settings_errors_text(&warnings, "!f");
        ck_assert_int_ge(asprintf(ret_text, "%s%s", wrong, odd), 0);
        return settings;
}

static void assert_accepts(const struct settings_surroundings *surroundings)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_settings_ struct settings *settings = load(surroundings, &text);

        ck_assert_str_eq(text, "");
        ck_assert_ptr_nonnull(settings);
}

/* Adds what is reported of the file to the golden text, with the directory of this test as "D". */
static void add_report(const char *what, const struct settings_surroundings *surroundings)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_settings_ struct settings *settings = load(surroundings, &text);

        ck_assert_str_ne(text, "");
        ck_assert_int_eq(!settings, text[0] != '!');
        golden_add_with(what, text, dir, "D");
}

#define X50 "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const char *const accepted[] = {
        FLEET,
        "[fleet:a]\r\ncommand = run\r\n",
        "\xEF\xBB\xBF[fleet:a]\ncommand = run",
        "# one\n;two\n   # three\n\t\n\n[fleet:a]   \ncommand=run\t\n",
        FLEET "environment = A=x;y B='# z' C=a#b\n",
        FLEET "environment = A='x ; y' B=\"\\\" ;\"\n",
};

TEST_LOOP(accepts_what_only_looks_like_a_trap, ELEMENTSOF(accepted))
{
        write_bytes(accepted[_i], strlen(accepted[_i]));
        assert_accepts(&as_user);
}

static const char *const refused[] = {
        FLEET "directory = /srv/app ; mine\n",
        FLEET "environment = A='x ; y' ; z\n",
        FLEET "environment = A=it\\'s ; z\n",
        FLEET "directory = /srv/bob's ; mine\n",
        FLEET "directory = /srv/bob's # mine\n",
        FLEET "environment =;\n",
        FLEET "environment = ; A=1\n",
        FLEET "environment = A=1\t;\n",
        FLEET "active_process_count = 4 # four\n",
        FLEET "  environment = A=1\n",
        "[fleet:a]\ncommand = run\n\targument\n",
        FLEET " [redis]\nnonsense = 1\n",
        FLEET "nonsense\n",
        FLEET "= 5\n",
        FLEET "two words = 5\n",
        FLEET "max_age: 5\n",
        FLEET "max_age:5=6\n",
        FLEET "[redis\nurl = 5\n",
        FLEET "[redis] # mine\nurl = 5\n",
        FLEET "[redis]x]\nurl = 5\n",
        FLEET "[]\nurl = 5\n",
        FLEET "environment = " X50 X50 X50 "=" X50 "\n",
        FLEET "[" X50 X50 X50 X50 "]\nurl = 5\n",
        "[fleet:a]\ncommand =\n",
        "[sqmgr]\nsocket_group = no-such-group\n" FLEET,
        "x = 1\n" FLEET,
        /* inih would cut off the section's name here; our parser reads the whole name. */
        "[fleet:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\ncommand = run\n" FLEET,
        "",
        /* A key like one that inih has seen with a value over several lines. */
        FLEET "max_age = 1d\nmax_age = 2d\n",
        "bad\n[sqmgr]\nlog_level = 7\n  indented\n" FLEET "max_age = x\n",
};

TEST(refuses_each_trap_of_the_format_by_its_line)
{
        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                write_bytes(refused[i], strlen(refused[i]));
                add_report(golden_label(refused[i]), &as_user);
        }
        golden_end("ini-errors", "traps of the format");
}

TEST(reads_values_as_they_stand)
{
        static const char text[] =
                "[redis]\npassword=a=b:c;d'e\n[fleet:a]\ncommand  =  /bin/sh -c 'a ;  \"b\" ;# c'  \n"
                "environment = A=x;y B='# z'\n";
        _cleanup_free_ char *errors = NULL;

        write_bytes(text, strlen(text));
        _cleanup_settings_ struct settings *settings = load(&as_user, &errors);
        ck_assert_msg(settings, "%s", errors);
        ck_assert_str_eq(settings->redis.password, "a=b:c;d'e");
        ck_assert_str_eq(settings->fleets[0]->command, "/bin/sh -c 'a ;  \"b\" ;# c'");
        ck_assert_str_eq(settings->fleets[0]->argv[2], "a ;  \"b\" ;# c");
        ck_assert_str_eq(settings->fleets[0]->environment_list[1], "B=# z");
}

TEST(reads_the_longest_line_and_comments_of_any_length)
{
        char text[1200] = "# " X50 X50 X50 X50 "\n;" X50 X50 X50 X50 "\n  # " X50 X50 X50 X50
                          " \n[fleet:a]\ncommand = ";
        size_t length = strlen(text), end = length - strlen("command = ") + 198;
        _cleanup_free_ char *errors = NULL;

        memset(text + length, 'x', end - length);
        snprintf(text + end, sizeof(text) - end, "\nmax_age = 7d\n");
        write_bytes(text, strlen(text));
        _cleanup_settings_ struct settings *settings = load(&as_user, &errors);
        ck_assert_msg(settings, "%s", errors);
        ck_assert_uint_eq(strlen(settings->fleets[0]->command), end - length);
        ck_assert_uint_eq(settings->fleets[0]->max_age, 7 * USEC_PER_DAY);
}

TEST(refuses_nul_bytes)
{
        static const char text[] = "[fleet:a]\ncommand = run\0 away\n";

        write_bytes(text, sizeof(text) - 1);
        golden_begin();
        add_report("a NUL byte in line 2", &as_user);
        golden_end("ini-errors", "NUL");
}

TEST(says_what_it_cannot_open)
{
        golden_begin();
        add_report("missing", &as_user);
        ck_assert_int_eq(mkfifo(ini, 0600), 0);
        add_report("a FIFO", &as_user);
        ck_assert_int_eq(unlink(ini), 0);
        ck_assert_int_eq(mkdir(ini, 0700), 0);
        add_report("a directory", &as_user);
        ck_assert_int_eq(rmdir(ini), 0);
        write_bytes(FLEET, strlen(FLEET));
        ck_assert_int_eq(truncate(ini, 2 * 1024 * 1024), 0);
        add_report("too large", &as_user);
        golden_end("ini-errors", "files that are not read");

        if (geteuid() == 0)
                return;
        golden_begin();
        ck_assert_int_eq(chmod(ini, 0), 0);
        add_report("mode 0", &as_user);
        golden_end("ini-errors", "a file that may not be read");
}

static void write_with_password_file(const char *password)
{
        char text[512];

        unit_write_file(dir, "password", password);
        snprintf(text, sizeof(text), "[redis]\n\npassword_file = %s/password\n" FLEET, dir);
        write_bytes(text, strlen(text));
}

static const struct {
        const char *content, *password;
} password_cases[] = {
        {"secret\n", "secret"},
        {"secret", "secret"},
        {"se cret ; # \r\nmore\n", "se cret ; # "},
};

TEST_LOOP(reads_the_password_file, ELEMENTSOF(password_cases))
{
        _cleanup_free_ char *text = NULL;

        write_with_password_file(password_cases[_i].content);
        _cleanup_settings_ struct settings *settings = load(&as_user, &text);
        ck_assert_str_eq(text, "");
        ck_assert_str_eq(settings->redis.password, password_cases[_i].password);
}

static void write_with_database_file(const char *content)
{
        char lines[512];

        unit_write_file(dir, "database", content);
        snprintf(lines, sizeof(lines), FLEET "framework = good_job\ndatabase_url_file = %s/database\n", dir);
        write_bytes(lines, strlen(lines));
}

static const struct {
        const char *content, *url;
} database_cases[] = {
        {"postgres://u:secret@h/d\n", "postgres://u:secret@h/d"},
        {"SECRET_KEY_BASE=x\nDATABASE_URL=postgres://u:secret@h/d\n", "postgres://u:secret@h/d"},
};

TEST_LOOP(reads_the_url_of_a_database, ELEMENTSOF(database_cases))
{
        _cleanup_free_ char *text = NULL;

        write_with_database_file(database_cases[_i].content);
        _cleanup_settings_ struct settings *settings = load(&as_user, &text);
        ck_assert_str_eq(text, "");
        ck_assert_str_eq(settings_fleet_url(settings, settings->fleets[0]), database_cases[_i].url);
        _cleanup_free_ char *printed = settings_print(settings);
        ck_assert_ptr_null(strstr(printed, "secret"));
}

TEST(refuses_a_bad_file_with_the_url_of_a_database)
{
        char path[256];

        golden_begin();
        write_with_database_file("");
        add_report("empty", &as_user);
        write_with_database_file("mysql2://u:secret@h/d\n");
        add_report("MySQL", &as_user);
        write_with_database_file("sqlite3:/srv/q.db\n");
        add_report("SQLite", &as_user);
        snprintf(path, sizeof(path), "%s/database", dir);
        ck_assert_int_eq(unlink(path), 0);
        add_report("missing", &as_user);
        golden_end("ini-errors", "database_url_file");
}

TEST(refuses_a_bad_password_file)
{
        char path[256];

        golden_begin();
        write_with_password_file("");
        add_report("empty", &as_user);
        write_with_password_file("\nsecret\n");
        add_report("an empty line first", &as_user);
        snprintf(path, sizeof(path), "%s/password", dir);
        ck_assert_int_eq(unlink(path), 0);
        add_report("missing", &as_user);

        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, "a\0b", 3), 3);
        ck_assert_int_eq(close(fd), 0);
        add_report("a NUL byte", &as_user);
        golden_end("ini-errors", "password_file");
}

TEST(loads_with_its_own_surroundings)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_ struct settings *settings = NULL;
        static const char text[] = "[sqmgr]\nsocket = /s\n[fleet:a]\ncommand = run\nmemory_threshold = 50%\n";

        write_bytes(text, strlen(text));
        ck_assert_int_eq(chmod(ini, 0600), 0);
        ck_assert_int_eq(setenv("REDIS_URL", "redis://from-the-environment", 1), 0);
        ck_assert_int_eq(ini_load(ini, framework_traits, NULL, &settings, &errors, &warnings), 0);
        ck_assert_int_eq(unsetenv("REDIS_URL"), 0);
        ck_assert_str_eq(settings->redis.url, "redis://from-the-environment");
        ck_assert_uint_gt(settings->fleets[0]->memory_threshold, 1 << 20);
        ck_assert_uint_eq(warnings.n, 0);
}

/* The config file includes NAME below the folder of this test, and has text besides. */
static void include(const char *name, const char *text)
{
        char all[1024];

        snprintf(all, sizeof(all), "[sqmgr]\ninclude = %s/%s\n%s", dir, name, text);
        write_bytes(all, strlen(all));
}

TEST(reads_what_is_included_in_the_order_of_names)
{
        _cleanup_free_ char *text = NULL, *printed = NULL;

        include("conf.d/*.ini", "[fleet]\nmax_age = 3d\n[fleet:z]\ncommand = run\n");
        unit_write_file(dir, "conf.d/20.ini", "\xEF\xBB\xBF[fleet:b]\ncommand = run\n");
        unit_write_file(dir, "conf.d/10.ini",
                        "[fleet:c]\ncommand = run\n[redis]\nurl = redis://h\n[fleet:z]\n"
                        "active_process_count = 7\n");
        unit_write_file(dir, "conf.d/30.ini~", "nonsense\n");
        unit_write_file(dir, "conf.d/.hidden.ini", "nonsense\n");
        _cleanup_settings_ struct settings *settings = load(&as_user, &text);
        ck_assert_str_eq(text, "");
        ck_assert_uint_eq(settings->n_fleets, 3);
        ck_assert_str_eq(settings->fleets[0]->name, "z");
        ck_assert_str_eq(settings->fleets[1]->name, "c");
        ck_assert_str_eq(settings->fleets[2]->name, "b");
        ck_assert_uint_eq(settings->fleets[2]->max_age, 3 * USEC_PER_DAY);
        ck_assert_uint_eq(settings->fleets[0]->active_process_count, 7);
        ck_assert_str_eq(settings->redis.url, "redis://h");

        /* What is printed has all of it, and means the same when it is read. */
        printed = settings_print(settings);
        ck_assert_ptr_nonnull(strstr(printed, "\n# include: /"));
        write_bytes(printed, strlen(printed));
        assert_accepts(&as_user);
}

TEST(reports_what_is_wrong_in_an_included_file_by_its_name)
{
        include("conf.d/*.ini", "nonsense\n[fleet:z]\ncommand = run\n[sqmgr]\nlog_level = info\n");
        unit_write_file(dir, "conf.d/1.ini", "max_age = 5d\n[fleet:a]\ncommand = run\n");
        unit_write_file(dir, "conf.d/2.ini",
                        "[fleet:a]\ncommand = run\n[sqmgr]\nlog_level = info\n"
                        "include = /x\n[fleet:b]\n");
        unit_write_file(dir, "conf.d/3.ini", "[fleet:c]\ncommand = run\nmemory_treshold = 1G\n");
        golden_begin();
        add_report("errors", &as_user);
        golden_end("ini-errors", "included files");
}

TEST(says_what_it_cannot_include)
{
        static const char fleet[] = "[fleet:z]\ncommand = run\n";

        golden_begin();
        include("conf.d/*.ini", fleet);
        add_report("no such file by a pattern", &as_user);
        include("more.ini", fleet);
        add_report("no such file by name", &as_user);
        unit_write_file(dir, "conf.d/a.ini/x", "");
        include("conf.d/*.ini", fleet);
        add_report("a directory", &as_user);
        write_bytes("[sqmgr]\ninclude = conf.d/*.ini\n" FLEET,
                    strlen("[sqmgr]\ninclude = conf.d/*.ini\n" FLEET));
        add_report("a relative path", &as_user);
        golden_end("ini-errors", "includes");
}

TEST(trusts_no_file_that_others_may_write)
{
        char path[256];

        golden_begin();
        write_bytes(FLEET, strlen(FLEET));
        ck_assert_int_eq(chmod(ini, 0666), 0);
        add_report("mode 0666", &as_user);
        ck_assert_int_eq(chmod(ini, 0600), 0);
        include("conf.d/*.ini", FLEET);
        unit_write_file(dir, "conf.d/a.ini", "[fleet:b]\ncommand = run\n");
        snprintf(path, sizeof(path), "%s/conf.d", dir);
        ck_assert_int_eq(chmod(path, 0777), 0);
        add_report("an included one in a directory of mode 0777", &as_user);
        write_with_password_file("secret\n");
        snprintf(path, sizeof(path), "%s/password", dir);
        ck_assert_int_eq(chmod(path, 0602), 0);
        add_report("a password_file of mode 0602", &as_user);
        golden_end("ini-errors", "files that others may write");
}

/* Writes the sample: as it is, or with the example of each key enabled. */
static void write_sample(bool with_examples)
{
        const char *source = getenv("srcdir");
        char path[512], line[256], text[4096] = "";
        size_t used = 0;

        snprintf(path, sizeof(path), "%s/etc/sqmgr.ini", source ? source : ".");
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "cannot open %s", path);
        while (fgets(line, sizeof(line), file)) {
                size_t key = strspn(line + MIN(strlen(line), (size_t)2), "abcdefghijklmnopqrstuvwxyz_");
                bool example =
                        strncmp(line, "# ", 2) == 0 && key > 0 && strncmp(line + 2 + key, " = ", 3) == 0;
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s",
                                         example && with_examples ? line + 2 : line);
        }
        ck_assert_int_eq(fclose(file), 0);
        write_bytes(text, strlen(text));
}

TEST(accepts_the_sample)
{
        write_sample(false);
        assert_accepts(&as_user);
}

TEST(accepts_each_example_of_the_sample)
{
        static const char *const expected[] = {"password_file /"};
        _cleanup_free_ char *text = NULL;

        write_sample(true);
        _cleanup_settings_ struct settings *settings = load(&as_user, &text);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                bool known = false;
                for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                        known |= !!strstr(line, expected[i]);
                ck_assert_msg(known, "%s", line);
        }
}

TEST_MAIN("ini", .each = {set_up, tear_down})
