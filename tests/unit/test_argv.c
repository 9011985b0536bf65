/* SPDX-License-Identifier: MIT */
/* Tests of base/argv.h. */
#include "base/argv.h"
#include "golden.h"
#include "unit.h"
#include <limits.h>

static const struct {
        const char *line;
        const char *words[6];
} split_cases[] = {
        {"", {NULL}},
        {" \t\n", {NULL}},
        {"bundle exec sidekiq", {"bundle", "exec", "sidekiq"}},
        {"  a\tb  ", {"a", "b"}},
        {"/bin/sh -c 'a b; c'", {"/bin/sh", "-c", "a b; c"}},
        {"A='x y' B=\"p q\"", {"A=x y", "B=p q"}},
        {"a'b'\"c\"d", {"abcd"}},
        {"'' \"\"", {"", ""}},
        {"a\\ b \\'c \\\"d", {"a b", "'c", "\"d"}},
        {"'a\\b\"c'", {"a\\b\"c"}},
        {"\"a\\\"b\\\\c\\nd'e\"", {"a\"b\\c\\nd'e"}},
        {"\\$HOME $HOME *", {"$HOME", "$HOME", "*"}},
        {"a#b ;", {"a#b", ";"}},
        {"\\\\", {"\\"}},
};

TEST_LOOP(splits_as_a_shell_would_without_expanding, ELEMENTSOF(split_cases))
{
        _cleanup_argv_ char **words = NULL;
        const char *error = NULL;

        ck_assert_int_eq(argv_split(split_cases[_i].line, &words, &error), 0);
        ck_assert_ptr_null(error);
        size_t n = 0;
        for (; split_cases[_i].words[n]; n++) {
                ck_assert_ptr_nonnull(words[n]);
                ck_assert_str_eq(words[n], split_cases[_i].words[n]);
        }
        ck_assert_ptr_null(words[n]);
}

static const char *const bad_lines[] = {
        "a 'b", "a \"b", "a \"b\\\"", "it's", "a \"b\\", "a b\\",
};

TEST(says_what_is_not_closed)
{
        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(bad_lines); i++) {
                char **words = (void *)&split_cases;
                const char *error = NULL;

                ck_assert_int_eq(argv_split(bad_lines[i], &words, &error), -EINVAL);
                ck_assert_ptr_eq(words, (void *)&split_cases);
                golden_add(bad_lines[i], error);
        }
        golden_end("settings-errors", "words of a command");
}

TEST(frees_nothing)
{
        ck_assert_ptr_null(argv_free(NULL));
}

static const struct {
        const char *a, *b;
        unsigned distance;
} distance_cases[] = {
        {"", "", 0},
        {"abc", "", 3},
        {"memory_threshold", "MEMORY_THRESHOLD", 0},
        {"memory_treshold", "memory_threshold", 1},
        {"memory_threshhold", "memory_threshold", 1},
        {"memroy_threshold", "memory_threshold", 1},
        {"memory-threshold", "memory_threshold", 1},
        {"user", "group", 5},
        {"0123456789012345678901234567890123456789012345678901234567890123", "a", UINT_MAX},
        {"a", "0123456789012345678901234567890123456789012345678901234567890123", UINT_MAX},
};

TEST_LOOP(counts_slips_of_the_pen, ELEMENTSOF(distance_cases))
{
        ck_assert_uint_eq(edit_distance(distance_cases[_i].a, distance_cases[_i].b),
                          distance_cases[_i].distance);
}

TEST_MAIN("argv")
