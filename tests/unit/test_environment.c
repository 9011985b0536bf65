/* SPDX-License-Identifier: MIT */
/* Tests of base/environment.h, base/printable.h and base/fd.h. */
#include "base/environment.h"
#include "base/fd.h"
#include "base/printable.h"
#include "golden.h"
#include "unit.h"

#include <stdio.h>
#include <string.h>

TEST(later_value_replaces_earlier_one)
{
        _cleanup_environment_ struct environment environment = {0};

        ck_assert_int_eq(environment_set(&environment, "A", "1"), 0);
        ck_assert_int_eq(environment_set(&environment, "AB", "2"), 0);
        ck_assert_int_eq(environment_put(&environment, "A=3=4"), 0);
        ck_assert_int_eq(environment_put(&environment, "no value"), 0);
        ck_assert_int_eq(environment_put(&environment, "=no name"), 0);
        ck_assert_uint_eq(environment.n, 2);
        ck_assert_str_eq(environment.list[0], "A=3=4");
        ck_assert_str_eq(environment.list[1], "AB=2");
        ck_assert_ptr_null(environment.list[2]);
        ck_assert_str_eq(environment_get(&environment, "AB"), "2");
        ck_assert_ptr_null(environment_get(&environment, "B"));
}

TEST(holds_many_entries_and_long_ones)
{
        _cleanup_environment_ struct environment environment = {0};
        char name[16], value[6001];

        for (size_t i = 0; i < 1000; i++) {
                snprintf(name, sizeof(name), "N%zu", i);
                memset(value, 'a' + (int)(i % 26), sizeof(value) - 1);
                value[i * 6] = '\0';
                ck_assert_int_eq(environment_set(&environment, name, value), 0);
        }
        for (size_t i = 0; i < 1000; i += 2) {
                snprintf(name, sizeof(name), "N%zu", i);
                environment_remove(&environment, name);
        }
        ck_assert_int_eq(environment_set(&environment, "N1", "one"), 0);
        ck_assert_uint_eq(environment.n, 500);
        ck_assert_ptr_null(environment.list[500]);
        ck_assert_str_eq(environment_get(&environment, "N1"), "one");
        for (size_t i = 3; i < 1000; i += 2) {
                snprintf(name, sizeof(name), "N%zu", i);
                memset(value, 'a' + (int)(i % 26), sizeof(value) - 1);
                value[i * 6] = '\0';
                ck_assert_str_eq(environment_get(&environment, name), value);
        }
}

TEST(what_is_for_another_process_alone_is_not_handed_on)
{
        static const char *const list[] = {"A=1",
                                           "NOTIFY_SOCKET=/n",
                                           "WATCHDOG_PID=1",
                                           "LISTEN_FDS=1",
                                           "RUNTIME_DIRECTORY=/r",
                                           "STATE_DIRECTORY=/s",
                                           "LOGS_DIRECTORY=/l",
                                           "CACHE_DIRECTORY=/c",
                                           "CONFIGURATION_DIRECTORY=/e",
                                           "SQMGR_INSTANCE=x",
                                           "SQMGR_STATUS_DIR=/d",
                                           "SQMGR_SOCKET=/s",
                                           NULL};
        _cleanup_environment_ struct environment environment = {0};

        ck_assert_int_eq(environment_put_inherited(&environment, (char *const *)list), 0);
        ck_assert_uint_eq(environment.n, 2);
        ck_assert_str_eq(environment_get(&environment, "A"), "1");
        ck_assert_str_eq(environment_get(&environment, "SQMGR_SOCKET"), "/s");
        ck_assert_int_eq(environment_put_inherited(&environment, NULL), 0);
}

static const struct {
        const char *text, *value;
} values[] = {
        {"V=1", "1"},
        {"V=1\r\n", "1"},
        {"\n# V=0\n  # more\n\tV=1\n", "1"},
        {"V=", ""},
        {"V=  two words \t\n", "two words"},
        {"V=a#b # c", "a#b # c"},
        {"V=a'b\"c", "a'b\"c"},
        {"V=' in $single\\ '", " in $single\\ "},
        {"V=\"a \\\"b\\\" \\$c \\\\ \\n\"", "a \"b\" $c \\ \\n"},
        {"V=1\nV=2", "2"},
        {"export V=1", "1"},
        {" export\t V='a b'\nexportV=2\nexport=3", "a b"},
        {"_x9=0\nV==", "="},
};

TEST_LOOP(reads_values_of_lines, ELEMENTSOF(values))
{
        _cleanup_environment_ struct environment environment = {0};
        const char *error = NULL;
        unsigned line = 0;

        int r = environment_put_lines(&environment, values[_i].text, strlen(values[_i].text), &line, &error);
        ck_assert_int_eq(r, 0);
        ck_assert_str_eq(environment_get(&environment, "V"), values[_i].value);
}

TEST(a_variable_can_be_taken_out)
{
        _cleanup_environment_ struct environment environment = {0};

        environment_remove(&environment, "A");
        ck_assert_int_eq(environment_set(&environment, "A", "1"), 0);
        ck_assert_int_eq(environment_set(&environment, "AB", "2"), 0);
        ck_assert_int_eq(environment_set(&environment, "C", "3"), 0);
        environment_remove(&environment, "A");
        ck_assert_uint_eq(environment.n, 2);
        ck_assert_str_eq(environment.list[0], "AB=2");
        ck_assert_str_eq(environment.list[1], "C=3");
        ck_assert_ptr_null(environment.list[2]);
}

static const struct {
        const char *text;
        size_t length; /* 0: to the NUL */
        unsigned line;
} bad_lines[] = {
        {"A=1\n\nB\n", 0, 3},     {"export A", 0, 1}, {"export", 0, 1}, {"exportA =1", 0, 1},
        {"1A=1", 0, 1},           {"=1", 0, 1},       {"A =1", 0, 1},   {"A='1", 0, 1},
        {"A=\"1\\\"", 0, 1},      {"A=\"1\\", 0, 1},  {"A=\"", 0, 1},   {"A=1\nB='1' 2", 0, 2},
        {"A=1\nB=\0002\n", 8, 2},
};

TEST(refuses_bad_lines_with_their_number)
{
        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(bad_lines); i++) {
                _cleanup_environment_ struct environment environment = {0};
                const char *text = bad_lines[i].text, *error = NULL;
                size_t length = bad_lines[i].length ? bad_lines[i].length : strlen(text);
                unsigned line = 0;

                ck_assert_int_eq(environment_put_lines(&environment, text, length, &line, &error), -EINVAL);
                ck_assert_uint_eq(line, bad_lines[i].line);
                golden_add(golden_label(text), error);
        }
        golden_end("settings-errors", "environment_file");
}

static const struct {
        const char *text, *printable;
} prints[] = {
        {"plain \n text\t.", "plain \n text ."},
        {"\033[31mred\177", "?[31mred?"},
        {"gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80",
         "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"cut \xe2\x82", "cut ??"},
        {"\x82 lone", "? lone"},
        {"\xc2\x9b C1", "?? C1"},
        {"\xc0\x80 \xe0\x80\x80 \xed\xa0\x80 \xf5\x80\x80\x80 \xff", "?? ??? ??? ???? ?"},
};

TEST_LOOP(makes_text_printable, ELEMENTSOF(prints))
{
        char text[64];

        snprintf(text, sizeof(text), "%s", prints[_i].text);
        printable_replace(text, strlen(text), true);
        ck_assert_str_eq(text, prints[_i].printable);
}

static const struct {
        const char *text, *plain;
} colours[] = {
        {"", ""},
        {"plain [1m", "plain [1m"},
        {"\033[1;34mINFO \033[0m 2026-11-21T11:50:15.370Z", "INFO  2026-11-21T11:50:15.370Z"},
        {"\033[31m\033[m\033[2K\033[?25lx", "x"},
        {"lone \033 \033]0;title\007", "lone \033 \033]0;title\007"},
        {"cut \033[1;3", "cut \033[1;3"},
        {"cut \033[", "cut \033["},
        {"cut \033", "cut \033"},
        {"\033[1\nm", "\033[1\nm"},
};

TEST_LOOP(colours_are_dropped, ELEMENTSOF(colours))
{
        /* Without an end, so that whoever reads too far is seen. */
        size_t length = strlen(colours[_i].text);
        char *text = malloc(MAX(length, (size_t)1));

        ck_assert_ptr_nonnull(text);
        memcpy(text, colours[_i].text, length);
        ck_assert_uint_eq(printable_drop_colours(text, length), strlen(colours[_i].plain));
        ck_assert_int_eq(memcmp(text, colours[_i].plain, strlen(colours[_i].plain)), 0);
        free(text);
}

TEST(newlines_go_where_one_line_is_wanted)
{
        char text[] = "a\nb";

        printable_replace(text, strlen(text), false);
        ck_assert_str_eq(text, "a?b");
}

TEST(reads_whole_files_and_starts_of_files)
{
        _cleanup_free_ char *whole = NULL;
        char text[10000], start[8];
        size_t length;

        memset(text, 'x', sizeof(text));
        FILE *file = tmpfile();
        ck_assert_ptr_nonnull(file);
        int fd = fileno(file);
        ck_assert_int_eq(fd_write_all(fd, text, sizeof(text)), 0);

        ck_assert_int_eq(fd_read_start(fd, start, sizeof(start)), 7);
        ck_assert_str_eq(start, "xxxxxxx");
        ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
        ck_assert_int_eq(fd_read_whole(fd, sizeof(text) - 1, &whole, &length), -EFBIG);
        ck_assert_ptr_null(whole);
        ck_assert_int_eq(lseek(fd, 0, SEEK_SET), 0);
        ck_assert_int_eq(fd_read_whole(fd, sizeof(text), &whole, &length), 0);
        ck_assert_uint_eq(length, sizeof(text));
        ck_assert_mem_eq(whole, text, sizeof(text));
        ck_assert_int_eq(whole[length], 0);
        ck_assert_int_eq(fd_read_start(-1, start, sizeof(start)), -EBADF);
        fclose(file);
}

TEST(a_value_of_parts_keeps_what_it_has)
{
        _cleanup_environment_ struct environment environment = {0};

        ck_assert_int_eq(environment_extend(&environment, "A", "1", ':', false), 0);
        ck_assert_str_eq(environment_get(&environment, "A"), "1");
        ck_assert_int_eq(environment_extend(&environment, "A", "2", ':', false), 0);
        ck_assert_int_eq(environment_extend(&environment, "A", "0", ' ', true), 0);
        ck_assert_str_eq(environment_get(&environment, "A"), "0 1:2");
        ck_assert_int_eq(environment_set(&environment, "A", ""), 0);
        ck_assert_int_eq(environment_extend(&environment, "A", "3", ':', true), 0);
        ck_assert_str_eq(environment_get(&environment, "A"), "3");
        ck_assert_uint_eq(environment.n, 1);
}

TEST_MAIN("environment")
