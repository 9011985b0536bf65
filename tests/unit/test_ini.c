/* SPDX-License-Identifier: MIT */
/* Tests of io/ini.h with real files. */
/* promises: P10 */
#include "frameworks/table.h"
#include "io/ini.h"
#include "settings/errors.h"
#include "settings/operations.h"
#include "settings/settings.h"
#include "settings/value.h"
#include "unit.h"
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>

#define FLEET "[fleet:a]\ncommand = run\n"
/* Some user that is neither root nor any of ours. */
#define STRANGER 54321

static char *dir, *ini;

/* The user of the tests: may not be root, then what needs root's files is left out. */
static const struct settings_surroundings as_user = {
        .frameworks = framework_traits, .memory_total_bytes = 1 << 30, .runtime_dir = "/run/user/1"};
static const struct settings_surroundings as_root = {
        .frameworks = framework_traits, .memory_total_bytes = 1 << 30, .is_root = true};

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

        int r = ini_load_for(ini, surroundings, geteuid(), &settings, &errors, &warnings);
        ck_assert_int_eq(r, settings_errors_any(&errors) ? -EINVAL : 0);
        _cleanup_free_ char *wrong = settings_errors_text(&errors, "f"),
                            *odd = settings_errors_text(&warnings, "!f");
        ck_assert_int_ge(asprintf(ret_text, "%s%s", wrong, odd), 0);
        return settings;
}

static void assert_reports(const struct settings_surroundings *surroundings, const char *expected)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_settings_ struct settings *settings = load(surroundings, &text);

        ck_assert_str_eq(text, expected);
}

#define COMMENT_ERROR                                                                                        \
        "a ';' behind a blank begins a comment, and none may stand behind a value: put the comment on a "    \
        "line of its own, or the ';' in quotes\n"
#define HASH_ERROR                                                                                           \
        "a '#' behind a blank begins no comment here, but would belong to the value: put the comment on a "  \
        "line of its "                                                                                       \
        "own, or the '#' in quotes\n"
#define INDENT_ERROR                                                                                         \
        "the line is indented, and would continue the one above it: remove the blanks; a value must stand "  \
        "on one line\n"
#define NOTHING_ERROR "this is no section, no comment, and no 'key = value'; a comment begins with '#'\n"
#define X50           "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"

static const struct {
        const char *text, *expected;
} line_cases[] = {
        {FLEET, ""},
        {"[fleet:a]\r\ncommand = run\r\n", ""},
        {"\xEF\xBB\xBF[fleet:a]\ncommand = run", ""},
        {"# one\n;two\n   # three\n\t\n\n[fleet:a]   \ncommand=run\t\n", ""},
        {FLEET "environment = A=x;y B='# z' C=a#b\n", ""},
        {FLEET "directory = /srv/app ; mine\n", "f:3: " COMMENT_ERROR},
        {FLEET "environment = A='x ; y' B=\"\\\" ;\"\n", ""},
        {FLEET "environment = A='x ; y' ; z\n", "f:3: " COMMENT_ERROR},
        {FLEET "environment = A=it\\'s ; z\n", "f:3: " COMMENT_ERROR},
        {FLEET "directory = /srv/bob's ; mine\n", "f:3: " COMMENT_ERROR},
        {FLEET "directory = /srv/\001\n", "f:3: the line holds a NUL byte or Ctrl-A: this is no text file\n"},
        {FLEET "environment =;\n", "f:3: " COMMENT_ERROR},
        {FLEET "environment = ; A=1\n", "f:3: " COMMENT_ERROR},
        {FLEET "environment = A=1\t;\n", "f:3: " COMMENT_ERROR},
        {FLEET "active_process_count = 4 # four\n", "f:3: " HASH_ERROR},
        {FLEET "  environment = A=1\n", "f:3: " INDENT_ERROR},
        {"[fleet:a]\ncommand = run\n\targument\n", "f:3: " INDENT_ERROR},
        {FLEET " [redis]\nnonsense = 1\n", "f:3: " INDENT_ERROR},
        {FLEET "nonsense\n", "f:3: " NOTHING_ERROR},
        {FLEET "= 5\n", "f:3: " NOTHING_ERROR},
        {FLEET "two words = 5\n", "f:3: " NOTHING_ERROR},
        {FLEET "nice: 5\n", "f:3: 'nice' is followed by a ':', write 'nice = ...'\n"},
        {FLEET "nice:5=6\n", "f:3: 'nice' is followed by a ':', write 'nice = ...'\n"},
        {FLEET "[redis\nurl = 5\n", "f:3: the section's name is not closed: add the ']'\n"},
        {FLEET "[redis] # mine\nurl = 5\n",
         "f:3: something stands behind the section's ']': put it on a line of its own\n"},
        {FLEET "[redis]x]\nurl = 5\n",
         "f:3: something stands behind the section's ']': put it on a line of its own\n"},
        {FLEET "[]\nurl = 5\n",
         "f:3: unknown section []: there are [sqmgr], [redis], [fleet] and [fleet:NAME]\n"},
        {FLEET "environment = " X50 X50 X50 "=" X50 "\n",
         "f:3: the line has 215 bytes, and more than 198 are not possible: shorten it; a long command may go "
         "into a "
         "script, a long environment into environment_file\n"},
        {FLEET "[" X50 X50 X50 X50 "]\nurl = 5\n", "f:3: the line has 202 bytes, and more than 198 are not "
                                                   "possible: shorten it; a long command may go into a "
                                                   "script, a long environment into environment_file\n"},
        {"[fleet:a]\ncommand =\n", "f:2: 'command' is empty: give it a value, or leave the line out\n"},
        {"x = 1\n" FLEET,
         "f:1: 'x' stands before any section: put [sqmgr], [redis] or [fleet:NAME] above it\n"},
        /* Where inih would cut the section's name, ours goes on. */
        {"[fleet:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]\ncommand = run\n" FLEET,
         "f:1: [fleet:aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa]: the name of a fleet must be at most 40 "
         "letters "
         "long\n"},
        {"", "f: there is no fleet: add a section [fleet:NAME] with its command\n"},
        /* A key like one that inih has seen with a value over several lines. */
        {FLEET "nice = 1\nnice = 2\n", "f:4: 'nice' is given twice in this section: first on line 3\n"},
        {"bad\n[sqmgr]\nlog_level = 7\n  indented\n" FLEET "nice = x\n",
         "f:1: " NOTHING_ERROR "f:3: log_level = 7: must be one of debug, info, notice, warning, error\n"
         "f:4: " INDENT_ERROR "f:7: nice = x: must be a number from -20 to 19\n"},
};

TEST_LOOP(refuses_each_trap_of_the_format_by_its_line, ELEMENTSOF(line_cases))
{
        write_bytes(line_cases[_i].text, strlen(line_cases[_i].text));
        assert_reports(&as_user, line_cases[_i].expected);
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

TEST(reads_the_longest_line)
{
        char text[400] = "[fleet:a]\ncommand = ";
        size_t length = strlen(text), end = strlen("[fleet:a]\n") + 198;
        _cleanup_free_ char *errors = NULL;

        memset(text + length, 'x', end - length);
        snprintf(text + end, sizeof(text) - end, "\nnice = 7\n");
        write_bytes(text, strlen(text));
        _cleanup_settings_ struct settings *settings = load(&as_user, &errors);
        ck_assert_msg(settings, "%s", errors);
        ck_assert_uint_eq(strlen(settings->fleets[0]->command), end - length);
        ck_assert_int_eq(settings->fleets[0]->nice, 7);
}

TEST(takes_comments_of_any_length)
{
        static const char text[] = "# " X50 X50 X50 X50 "\n;" X50 X50 X50 X50 "\n  # " X50 X50 X50 X50
                                   " \n[fleet:a]\ncommand = x\n";
        _cleanup_free_ char *errors = NULL;

        write_bytes(text, strlen(text));
        _cleanup_settings_ struct settings *settings = load(&as_user, &errors);
        ck_assert_msg(settings, "%s", errors);
        ck_assert_str_eq(settings->fleets[0]->command, "x");
}

TEST(refuses_nul_bytes)
{
        static const char text[] = "[fleet:a]\ncommand = run\0 away\n";

        write_bytes(text, sizeof(text) - 1);
        assert_reports(&as_user,
                       "f:1: fleet 'a' has no command: add 'command = ...', what starts one worker, "
                       "in the foreground; split "
                       "into words without a shell\n"
                       "f:2: the line holds a NUL byte or Ctrl-A: this is no text file\n");
}

TEST(says_what_it_cannot_open)
{
        static const char remedy[] = "copy the sample sqmgr.ini there, or name another file with -c\n";
        char expected[256];

        snprintf(expected, sizeof(expected), "f: cannot open: No such file or directory, %s", remedy);
        assert_reports(&as_user, expected);

        snprintf(expected, sizeof(expected), "f: it is not a regular file, %s", remedy);
        ck_assert_int_eq(mkfifo(ini, 0600), 0);
        assert_reports(&as_user, expected);
        ck_assert_int_eq(unlink(ini), 0);
        ck_assert_int_eq(mkdir(ini, 0700), 0);
        assert_reports(&as_user, expected);
        ck_assert_int_eq(rmdir(ini), 0);

        write_bytes(FLEET, strlen(FLEET));
        ck_assert_int_eq(truncate(ini, 2 * 1024 * 1024), 0);
        snprintf(expected, sizeof(expected), "f: cannot read: File too large, %s", remedy);
        assert_reports(&as_user, expected);

        if (geteuid() == 0)
                return;
        ck_assert_int_eq(chmod(ini, 0), 0);
        assert_reports(
                &as_user,
                "f: cannot open: Permission denied, make it readable by the user that sqmgr runs as\n");
}

TEST(trusts_only_files_of_root)
{
        write_bytes(FLEET, strlen(FLEET));
        ck_assert_int_eq(chmod(ini, 0666), 0);
        assert_reports(&as_user, "");
        if (geteuid() != 0)
                return;
        assert_reports(&as_root, "f: its mode 0666 lets others than root write it: chmod it to 0644\n");
        ck_assert_int_eq(chmod(ini, 0620), 0);
        assert_reports(&as_root, "f: its mode 0620 lets others than root write it: chmod it to 0600\n");
        ck_assert_int_eq(chown(ini, STRANGER, 0), 0);
        ck_assert_int_eq(chmod(ini, 0600), 0);
        assert_reports(
                &as_root,
                "f: it belongs to uid 54321 (of no user), and as root sqmgr trusts only files of root's: "
                "chown it to root\n");
        ck_assert_int_eq(chown(ini, 0, STRANGER), 0);
        ck_assert_int_eq(chmod(ini, 0444), 0);
        assert_reports(&as_root,
                       "!f:1: fleet 'a' has no 'user': its workers run as root, set the application's\n");
}

/* root is asked for a user in each fleet. */
static void write_with_password_file(const char *password)
{
        char text[512];

        unit_write_file(dir, "password", password);
        snprintf(text, sizeof(text), "[redis]\n\npassword_file = %s/password\n" FLEET "%s", dir,
                 geteuid() == 0 ? "user = root\n" : "");
        write_bytes(text, strlen(text));
}

static const struct {
        const char *content, *password, *error; /* one of these two */
} password_cases[] = {
        {"secret\n", "secret", NULL},
        {"secret", "secret", NULL},
        {"se cret ; # \r\nmore\n", "se cret ; # ", NULL},
        {"", NULL, "its first line is empty: put the password there"},
        {"\nsecret\n", NULL, "its first line is empty: put the password there"},
};

TEST_LOOP(reads_the_password_file, ELEMENTSOF(password_cases))
{
        char expected[512] = "";
        _cleanup_free_ char *text = NULL;

        write_with_password_file(password_cases[_i].content);
        const struct settings_surroundings *surroundings = geteuid() == 0 ? &as_root : &as_user;
        _cleanup_settings_ struct settings *settings = load(surroundings, &text);
        if (password_cases[_i].error)
                snprintf(expected, sizeof(expected), "f:3: password_file %s/password: %s\n", dir,
                         password_cases[_i].error);
        ck_assert_str_eq(text, expected);
        if (password_cases[_i].password)
                ck_assert_str_eq(settings->redis.password, password_cases[_i].password);
}

static void assert_key(const char *content, const char *key, const char *error)
{
        const struct settings_surroundings *surroundings = geteuid() == 0 ? &as_root : &as_user;
        _cleanup_free_ char *text = NULL;
        char lines[512], expected[512] = "";

        unit_write_file(dir, "key", content);
        snprintf(lines, sizeof(lines), FLEET "%srollout_group = g\nrollout_key_file = %s/key\n",
                 geteuid() == 0 ? "user = root\n" : "", dir);
        write_bytes(lines, strlen(lines));
        _cleanup_settings_ struct settings *settings = load(surroundings, &text);
        if (error)
                snprintf(expected, sizeof(expected), "rollout_key_file %s/key: %s\n", dir, error);
        ck_assert_msg(!error == (text[0] == '\0') && strstr(text, expected), "%s", text);
        if (key)
                ck_assert_str_eq(settings->fleets[0]->rollout_key, key);
}

TEST(reads_the_key_of_a_group)
{
        assert_key("0123456789abcdef0123456789abcdef\nmore\n", "0123456789abcdef0123456789abcdef", NULL);
        assert_key("0123456789abcdef0123456789abcde\n", NULL,
                   "its first line has fewer than 32 bytes: make a key, as with 'openssl rand -hex 32'");
        assert_key("\n", NULL, "its first line is empty: put the key there");
        if (geteuid() != 0)
                return;
        char path[256];
        snprintf(path, sizeof(path), "%s/key", dir);
        ck_assert_int_eq(chmod(path, 0602), 0);
        assert_key("0123456789abcdef0123456789abcdef\n", NULL,
                   "its mode 0602 lets others than root write it: chmod it to 0600");
}

TEST(refuses_a_bad_password_file)
{
        char path[256], expected[512];

        write_with_password_file("secret\n");
        if (geteuid() != 0)
                return;
        snprintf(path, sizeof(path), "%s/password", dir);
        ck_assert_int_eq(chmod(path, 0602), 0);
        snprintf(expected, sizeof(expected),
                 "f:3: password_file %s: its mode 0602 lets others than root write it: chmod it to 0600\n",
                 path);
        assert_reports(&as_root, expected);
        ck_assert_int_eq(unlink(path), 0);
        snprintf(expected, sizeof(expected),
                 "f:3: password_file %s: cannot open: No such file or directory, put the password on the "
                 "first line of "
                 "that file\n",
                 path);
        assert_reports(&as_root, expected);

        int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(write(fd, "a\0b", 3), 3);
        ck_assert_int_eq(close(fd), 0);
        snprintf(expected, sizeof(expected),
                 "f:3: password_file %s: its first line is no text: put the password there\n", path);
        assert_reports(&as_root, expected);
}

/* root's file, but which of them is read somebody else says. */
TEST(refuses_a_password_file_by_a_link_of_others)
{
        char open_dir[256], link[300], path[256], text[700], expected[1000];

        if (geteuid() != 0)
                return;
        unit_write_file(dir, "password", "secret\n");
        snprintf(path, sizeof(path), "%s/password", dir);
        snprintf(open_dir, sizeof(open_dir), "%s/open", dir);
        snprintf(link, sizeof(link), "%s/link", open_dir);
        ck_assert_int_eq(chmod(path, 0600), 0);
        ck_assert_int_eq(mkdir(open_dir, 0700), 0);
        ck_assert_int_eq(chmod(open_dir, 0777), 0);
        ck_assert_int_eq(symlink(path, link), 0);
        snprintf(text, sizeof(text), "[redis]\n\npassword_file = %s\n" FLEET "user = root\n", link);
        write_bytes(text, strlen(text));
        snprintf(
                expected, sizeof(expected),
                "f:3: password_file %s: '%s': others may write to the directory '%s', and put something else "
                "there\n",
                link, link, open_dir);
        assert_reports(&as_root, expected);
        ck_assert_int_eq(chmod(open_dir, 0755), 0);
        assert_reports(&as_root, "");
        ck_assert_int_eq(unlink(link), 0);
        ck_assert_int_eq(rmdir(open_dir), 0);
}

/* A start says the same of them: it reads the file by the same function. */
TEST(refuses_a_place_that_others_may_write_to)
{
        char open_dir[256], text[900], expected[2000];

        snprintf(open_dir, sizeof(open_dir), "%s/open", dir);
        ck_assert_int_eq(mkdir(open_dir, 0700), 0);
        ck_assert_int_eq(chmod(open_dir, 0777), 0);
        snprintf(text, sizeof(text), "[sqmgr]\nsocket = %s/1\nstate_file = %s/2\nread_socket = %s/3\n" FLEET,
                 open_dir, open_dir, open_dir);
        write_bytes(text, strlen(text));
        snprintf(expected, sizeof(expected),
                 "f:2: socket: '%s/1': others may write to the directory '%s', and put something else there\n"
                 "f:3: state_file: '%s/2': others may write to the directory '%s', and put something else "
                 "there\n"
                 "f:4: read_socket: '%s/3': others may write to the directory '%s', and put something else "
                 "there\n",
                 open_dir, open_dir, open_dir, open_dir, open_dir, open_dir);
        assert_reports(&as_user, expected);
        ck_assert_int_eq(chmod(open_dir, 0755), 0);
        assert_reports(&as_user, "");

        /* That of the socket is made by a start. */
        ck_assert_int_eq(rmdir(open_dir), 0);
        assert_reports(&as_user, "");
        snprintf(text, sizeof(text), "[sqmgr]\nsocket = %s/1\nstate_file = %s/2\n" FLEET, dir, open_dir);
        write_bytes(text, strlen(text));
        snprintf(expected, sizeof(expected),
                 "!f:3: state_file: '%s/2': cannot look at its directory: No such file or directory\n",
                 open_dir);
        assert_reports(&as_user, expected);
}

TEST(checks_users_and_groups)
{
        static const char text[] =
                "[sqmgr]\nsocket_group = no-such-group\n[fleet]\nuser = no-such-user\n"
                "[fleet:a]\ncommand = run\n[fleet:b]\ncommand = run\nuser = root\n"
                "group = no-such-group\n[fleet:c]\ncommand = run\nuser = daemon\ngroup = daemon\n";

        write_bytes(text, strlen(text));
        if (geteuid() != 0)
                return;
        assert_reports(
                &as_root,
                "f:2: socket_group = no-such-group: there is no such group, create it or name another\n"
                "f:4: fleet 'a': user = no-such-user: there is no such user, create it or name another\n"
                "f:10: group = no-such-group: there is no such group, create it or name another\n");
        assert_reports(
                &as_user,
                "f:2: socket_group = no-such-group: there is no such group, create it or name another\n"
                "f:4: fleet 'a': user = no-such-user: there is no such user, create it or name another\n"
                "f:10: group = no-such-group: there is no such group, create it or name another\n"
                "f:13: fleet 'c': user = daemon: only root can start workers as another user, leave 'user' "
                "out or run sqmgr as root\n"
                "f:14: fleet 'c': group = daemon: only root can start workers as another group, leave "
                "'group' out or run sqmgr as root\n");
}

TEST(checks_the_user_of_alerts)
{
        static const char text[] = "[sqmgr]\nalert_command = mail\nalert_user = no-such-user\n"
                                   "[fleet:a]\ncommand = run\n";
        static const char daemon[] = "[sqmgr]\nalert_user = daemon\nalert_command = mail\n"
                                     "[fleet:a]\ncommand = run\n";

        write_bytes(text, strlen(text));
        assert_reports(&as_user,
                       "f:3: alert_user = no-such-user: there is no such user, create it or name another\n");
        write_bytes(daemon, strlen(daemon));
        assert_reports(&as_user, "f:2: alert_user = daemon: only root can run alert_command as another user, "
                                 "leave alert_user out or run sqmgr as root\n");
}

TEST(loads_with_its_own_surroundings)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_ struct settings *settings = NULL;
        static const char text[] = "[sqmgr]\nsocket = /s\n[fleet:a]\ncommand = run\nmemory_threshold = 50%\n";

        write_bytes(text, strlen(text));
        ck_assert_int_eq(chmod(ini, 0600), 0);
        ck_assert_int_eq(setenv("REDIS_URL", "redis://from-the-environment", 1), 0);
        ck_assert_int_eq(ini_load(ini, framework_traits, &settings, &errors, &warnings), 0);
        ck_assert_int_eq(unsetenv("REDIS_URL"), 0);
        ck_assert_str_eq(settings->redis.url, "redis://from-the-environment");
        ck_assert_uint_gt(settings->fleets[0]->memory_threshold, 1 << 20);
        ck_assert_uint_eq(warnings.n, geteuid() == 0);
}

/* The config file includes NAME below the folder of this test, and has text besides. */
static void include(const char *name, const char *text)
{
        char all[1024];

        snprintf(all, sizeof(all), "[sqmgr]\ninclude = %s/%s\n%s", dir, name, text);
        write_bytes(all, strlen(all));
}

/* The folder's own name stands as "D" in what is expected. */
static void assert_include_reports(const struct settings_surroundings *surroundings, const char *expected)
{
        _cleanup_free_ char *text = NULL;
        _cleanup_settings_ struct settings *settings = load(surroundings, &text);

        for (char *at; (at = strstr(text, dir));) {
                at[0] = 'D';
                memmove(at + 1, at + strlen(dir), strlen(at + strlen(dir)) + 1);
        }
        ck_assert_str_eq(text, expected);
        ck_assert_int_eq(!settings, expected[0] != '\0' && expected[0] != '!');
}

TEST(reads_what_is_included_in_the_order_of_names)
{
        _cleanup_free_ char *text = NULL, *printed = NULL;

        include("conf.d/*.ini", "[fleet]\nnice = 3\n[fleet:z]\ncommand = run\n");
        unit_write_file(dir, "conf.d/20.ini", "\xEF\xBB\xBF[fleet:b]\ncommand = run\n");
        unit_write_file(dir, "conf.d/10.ini",
                        "[fleet:c]\ncommand = run\n[redis]\nurl = redis://h\n[fleet:z]\n"
                        "umask = 0077\n");
        unit_write_file(dir, "conf.d/30.ini~", "nonsense\n");
        unit_write_file(dir, "conf.d/.hidden.ini", "nonsense\n");
        _cleanup_settings_ struct settings *settings = load(&as_user, &text);
        ck_assert_str_eq(text, "");
        ck_assert_uint_eq(settings->n_fleets, 3);
        ck_assert_str_eq(settings->fleets[0]->name, "z");
        ck_assert_str_eq(settings->fleets[1]->name, "c");
        ck_assert_str_eq(settings->fleets[2]->name, "b");
        ck_assert_int_eq(settings->fleets[2]->nice, 3);
        ck_assert_uint_eq(settings->fleets[0]->umask, 0077);
        ck_assert_str_eq(settings->redis.url, "redis://h");

        /* What is printed has all of it, and means the same when it is read. */
        printed = settings_print(settings);
        ck_assert_ptr_nonnull(strstr(printed, "\n# include: /"));
        write_bytes(printed, strlen(printed));
        assert_reports(&as_user, "");
}

TEST(reports_what_is_wrong_in_an_included_file_by_its_name)
{
        include("conf.d/*.ini", "nonsense\n[fleet:z]\ncommand = run\n[sqmgr]\nlog_level = info\n");
        unit_write_file(dir, "conf.d/1.ini", "nice = 5\n[fleet:a]\ncommand = run\n");
        unit_write_file(dir, "conf.d/2.ini",
                        "[fleet:a]\ncommand = run\n[sqmgr]\nlog_level = info\n"
                        "include = /x\n[fleet:b]\n");
        unit_write_file(dir, "conf.d/3.ini", "[fleet:c]\ncommand = run\nmemory_treshold = 1G\n");
        assert_include_reports(
                &as_user,
                "f:3: " NOTHING_ERROR "D/conf.d/1.ini:1: 'nice' stands before any section: put [sqmgr], "
                "[redis] or [fleet:NAME] above "
                "it\n"
                "D/conf.d/2.ini:2: 'command' is given twice in this section: first D/conf.d/1.ini:3\n"
                "D/conf.d/2.ini:4: 'log_level' is given twice in this section: first on line 7 of the file "
                "that "
                "includes this one\n"
                "D/conf.d/2.ini:5: 'include' is given twice in this section: first on line 2 of the file "
                "that "
                "includes this one\n"
                "D/conf.d/2.ini:6: fleet 'b' has no command: add 'command = ...', what starts one worker, in "
                "the "
                "foreground; split into words without a shell\n"
                "D/conf.d/3.ini:3: unknown key 'memory_treshold', did you mean 'memory_threshold'?\n");
}

TEST(says_what_it_cannot_include)
{
        static const char fleet[] = "[fleet:z]\ncommand = run\n";

        include("conf.d/*.ini", fleet);
        assert_include_reports(&as_user, "!f:2: include = D/conf.d/*.ini: there is no such file\n");
        include("more.ini", fleet);
        assert_include_reports(&as_user,
                               "D/more.ini: cannot open: No such file or directory, take it out of what "
                               "'include' names\n");
        unit_write_file(dir, "conf.d/a.ini/x", "");
        include("conf.d/*.ini", fleet);
        assert_include_reports(&as_user,
                               "D/conf.d/a.ini: it is not a regular file, take it out of what 'include' "
                               "names\n");
        write_bytes("[sqmgr]\ninclude = conf.d/*.ini\n" FLEET,
                    strlen("[sqmgr]\ninclude = conf.d/*.ini\n" FLEET));
        assert_include_reports(&as_user, "f:2: include = conf.d/*.ini: must be an absolute path, without "
                                         "quotes: it begins with '/'\n");
}

TEST(includes_only_what_is_roots_and_nobody_else_can_replace)
{
        char own[256], link[256], folder[256];

        if (geteuid() != 0)
                return;
        include("conf.d/*.ini", "[fleet:z]\ncommand = run\nuser = root\n");
        unit_write_file(dir, "conf.d/a.ini", "[fleet:a]\ncommand = run\nuser = root\n");
        unit_write_file(dir, "own", "[fleet:b]\ncommand = run\nuser = root\n");
        snprintf(own, sizeof(own), "%s/conf.d/a.ini", dir);
        snprintf(folder, sizeof(folder), "%s/conf.d", dir);
        assert_include_reports(&as_root, "");
        ck_assert_int_eq(chmod(own, 0664), 0);
        assert_include_reports(&as_root,
                               "D/conf.d/a.ini: its mode 0664 lets others than root write it: chmod it to "
                               "0644\n");
        ck_assert_int_eq(chmod(own, 0644), 0);
        ck_assert_int_eq(chown(own, STRANGER, 0), 0);
        assert_include_reports(&as_root,
                               "D/conf.d/a.ini: it belongs to uid 54321 (of no user), and as root sqmgr "
                               "trusts only files of root's: chown it to root\n");
        /* A file of root's, which another user could have chosen. */
        ck_assert_int_eq(unlink(own), 0);
        snprintf(link, sizeof(link), "%s/own", dir);
        ck_assert_int_eq(symlink(link, own), 0);
        assert_include_reports(&as_root, "");
        ck_assert_int_eq(chmod(folder, 0777), 0);
        assert_include_reports(&as_root,
                               "D/conf.d/a.ini: 'D/conf.d/a.ini': others may write to the directory "
                               "'D/conf.d', and put something else there\n");
        ck_assert_int_eq(chmod(folder, 0755), 0);
        ck_assert_int_eq(lchown(own, STRANGER, 0), 0);
        assert_include_reports(
                &as_root,
                "D/conf.d/a.ini: 'D/conf.d/a.ini': the link 'D/conf.d/a.ini' belongs to another user, "
                "who could have it lead elsewhere\n");
}

enum sample { SAMPLE_UNTOUCHED, SAMPLE_EDITED, SAMPLE_WITH_EXAMPLES };

/* The sample; edited: without its user; or with its example of each key in force. */
static void write_sample(enum sample form)
{
        const char *source = getenv("srcdir");
        char path[512], line[256], text[32768] = "";
        size_t used = 0;

        snprintf(path, sizeof(path), "%s/etc/sqmgr.ini", source ? source : ".");
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "cannot open %s", path);
        while (fgets(line, sizeof(line), file)) {
                size_t key = strspn(line + MIN(strlen(line), (size_t)2), "abcdefghijklmnopqrstuvwxyz_");
                bool example =
                        strncmp(line, "# ", 2) == 0 && key > 0 && strncmp(line + 2 + key, " = ", 3) == 0;
                if (form == SAMPLE_EDITED && strcmp(line, "user = myapp\n") == 0)
                        continue;
                used += (size_t)snprintf(text + used, sizeof(text) - used, "%s",
                                         example && form == SAMPLE_WITH_EXAMPLES ? line + 2 : line);
        }
        ck_assert_int_eq(fclose(file), 0);
        write_bytes(text, strlen(text));
}

static void assert_waits_for_its_user(const struct settings_surroundings *surroundings)
{
        _cleanup_free_ char *text = NULL;

        ck_assert_ptr_null(load(surroundings, &text));
        ck_assert_msg(strstr(text, "fleet 'default': user = myapp: there is no such user, create it or name"),
                      "%s", text);
        ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
}

/* Whoever installs it and starts the service must not have run anything as root. */
TEST(accepts_the_sample_once_it_is_edited)
{
        write_sample(SAMPLE_UNTOUCHED);
        assert_waits_for_its_user(&as_user);
        if (geteuid() == 0)
                assert_waits_for_its_user(&as_root);
        write_sample(SAMPLE_EDITED);
        assert_reports(&as_user, "");
}

TEST(accepts_each_example_of_the_sample)
{
        static const char *const expected[] = {"tls_",
                                               "there is no such",
                                               "'stop_signal'",
                                               "password and password_file",
                                               "password_file /",
                                               "rollout_key_file /",
                                               "only root can run alert_command"};
        _cleanup_free_ char *text = NULL;

        write_sample(SAMPLE_WITH_EXAMPLES);
        _cleanup_settings_ struct settings *settings = load(&as_user, &text);
        for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
                bool known = false;
                for (size_t i = 0; i < ELEMENTSOF(expected); i++)
                        known |= !!strstr(line, expected[i]);
                ck_assert_msg(known, "%s", line);
        }
}

TEST_MAIN("ini", .each = {set_up, tear_down})
