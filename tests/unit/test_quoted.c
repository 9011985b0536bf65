/* SPDX-License-Identifier: MIT */
/* Tests of text from elsewhere, which viewers are not sent (wire/quoted.h). */
#include "unit.h"
#include "wire/quoted.h"
#include "wire/varlink.h"

static struct quoted quoted;

static void setup(void)
{
        quoted_set(&quoted, "a secret");
}

TEST_FIXTURE(setup, NULL)

static void assert_quoted(const char *text, const char *expected)
{
        quoted_set(&quoted, text);
        ck_assert_str_eq(quoted_reveal(&quoted), expected);
}

TEST(a_text_is_bounded_and_printable_and_keeps_its_lines)
{
        char text[QUOTED_MAX + 100];

        assert_quoted(NULL, "");
        ck_assert(quoted_is_empty(&quoted));
        assert_quoted("a\nb\tc\x1b[1m", "a\nb c?[1m");
        ck_assert(!quoted_is_empty(&quoted));
        memset(text, 'x', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        /* The limit cuts through a character. */
        memcpy(text + QUOTED_MAX - 2, "\xc3\xa9", 2);
        quoted_set(&quoted, text);
        ck_assert_uint_eq(strlen(quoted_reveal(&quoted)), QUOTED_MAX - 1);
        ck_assert_int_eq(quoted_reveal(&quoted)[QUOTED_MAX - 2], '?');
        memset(&quoted, '\xff', sizeof(quoted));
        quoted_clean(&quoted);
        ck_assert_uint_eq(strlen(quoted_reveal(&quoted)), QUOTED_MAX - 1);
        ck_assert_int_eq(quoted_reveal(&quoted)[0], '?');
}

TEST(a_text_is_appended_as_further_lines)
{
        struct quoted more;

        quoted_set(&quoted, "");
        quoted_set(&more, "boom");
        quoted_append(&quoted, &more);
        ck_assert_str_eq(quoted_reveal(&quoted), "boom");
        quoted_append(&quoted, &more);
        ck_assert_str_eq(quoted_reveal(&quoted), "boom\nboom");
        memset(quoted.quoted_bytes, 'x', QUOTED_MAX - 1);
        quoted_append(&quoted, &more);
        ck_assert_uint_eq(strlen(quoted_reveal(&quoted)), QUOTED_MAX - 1);
}

TEST(a_text_of_the_other_side_is_found)
{
        quoted_set(&quoted, "NOPERM this user has no permissions");
        ck_assert(quoted_contains(&quoted, "no permissions"));
        ck_assert(!quoted_contains(&quoted, "NOAUTH"));
}

TEST(an_error_is_a_sentence_and_what_it_quotes)
{
        struct error_report a, b;

        error_report_quote(&a, "ERR x", "it refuses %s", "EVAL");
        ck_assert_str_eq(a.text, "it refuses EVAL");
        ck_assert_str_eq(quoted_reveal(&a.quoted), "ERR x");
        error_report_quote(&b, "ERR y", "it refuses EVAL");
        ck_assert(!error_report_equal(&a, &b));
        b.quoted = a.quoted;
        ck_assert(error_report_equal(&a, &b));
        error_report_set(&a, "it is %s", "do\033wn\n");
        ck_assert_str_eq(a.text, "it is do?wn?");
        ck_assert(quoted_is_empty(&a.quoted));
        ck_assert(!error_report_equal(&a, &b));
}

TEST(a_message_has_it_in_a_member_of_its_own)
{
        _cleanup_json_ json_t *object = quoted_put(json_pack("{s:s}", "text", "it died"), &quoted);

        ck_assert_str_eq(json_string_value(json_object_get(object, "quoted")), "a secret");
        ck_assert_str_eq(json_string_value(json_object_get(object, "text")), "it died");
        quoted_set(&quoted, "");
        ck_assert_ptr_nonnull(quoted_put(object, &quoted));
        ck_assert(json_is_null(json_object_get(object, "quoted")));
        ck_assert_ptr_null(quoted_put(NULL, &quoted));
}

/* Pseudo-random trees of objects and lists. */
static json_t *make_tree(uint32_t *random, unsigned depth, unsigned *n)
{
        json_t *tree = json_object(), *list = json_array();

        *random = *random * 1664525 + 1013904223;
        for (unsigned i = 0; depth > 0 && i < (*random >> 8) % 4; i++) {
                char name[16];

                snprintf(name, sizeof(name), "member%u", i);
                ck_assert_int_eq(json_object_set_new(tree, name, make_tree(random, depth - 1, n)), 0);
                ck_assert_int_eq(json_array_append_new(list, make_tree(random, depth - 1, n)), 0);
        }
        ck_assert_int_eq(json_object_set_new(tree, "text", json_string("plain")), 0);
        ck_assert_int_eq(json_object_set_new(tree, "list", list), 0);
        (*n)++;
        return *random % 2 == 0 ? tree : quoted_put(tree, &quoted);
}

static unsigned count(const char *text, const char *what)
{
        unsigned n = 0;

        for (; (text = strstr(text, what)); text++)
                n++;
        return n;
}

TEST(a_viewer_is_sent_all_but_that)
{
        uint32_t random = 1;

        for (unsigned i = 0; i < 200; i++) {
                unsigned n = 0;
                json_t *tree = make_tree(&random, 4, &n);
                char *text;
                size_t size;

                quoted_drop(tree);
                ck_assert_int_eq(varlink_encode_reply(NULL, tree, false, &text, &size), 0);
                ck_assert_uint_eq(count(text, "secret"), 0);
                ck_assert_uint_eq(count(text, "\"quoted\""), 0);
                ck_assert_uint_eq(count(text, "\"plain\""), n);
                free(text);
        }
        quoted_drop(NULL);
}

TEST_MAIN("quoted")
