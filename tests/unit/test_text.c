/* SPDX-License-Identifier: MIT */
/* How wide text is on a terminal, and where it is cut and broken. */
#include "base/text.h"
#include "unit.h"

static const struct {
        const char *text;
        int width;
} texts[] = {
        {"", 0},
        {"ReportJob", 9},
        {"caf\u00e9", 4},
        /* e, and an accent above it */
        {"cafe\u0301", 4},
        {"\u30ec\u30dd\u30fc\u30c8", 8},
        {"\ud55c\uad6d", 4},
        {"\U0001f680 go", 5},
        {"\xff\xc3", 2},
};

TEST_LOOP(a_character_takes_the_columns_that_a_terminal_gives_it, ELEMENTSOF(texts))
{
        ck_assert_int_eq(text_width(texts[_i].text), texts[_i].width);
}

TEST(a_line_is_cut_before_a_character_that_does_not_fit)
{
        const char *line = "a\u30ec\u30ddb";

        ck_assert_uint_eq(text_fitting(line, strlen(line), 6), strlen(line));
        ck_assert_uint_eq(text_fitting(line, strlen(line), 5), 7);
        ck_assert_uint_eq(text_fitting(line, strlen(line), 4), 4);
        ck_assert_uint_eq(text_fitting(line, strlen(line), 3), 4);
        ck_assert_uint_eq(text_fitting("\033[31mab\033[0m", 11, 1), 6);
}

TEST(words_that_are_wide_are_broken_in_time)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        text_print_wrapped(out, "\u30ec\u30dd \u30fc\u30c8", 0, 1, 8);
        ck_assert_int_eq(fclose(out), 0);
        ck_assert_str_eq(text, "\u30ec\u30dd\n \u30fc\u30c8\n");
        free(text);
}

TEST_MAIN("text")
