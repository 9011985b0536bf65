/* SPDX-License-Identifier: MIT */
/* What is left out of the replies to viewers. */
#include "unit.h"
#include "wire/varlink.h"
#include "wire/withhold.h"

/* Cuts a copy that ends where its memory does. Returns it, to be freed. */
static char *cut(const char *text)
{
        size_t size = strlen(text) + 1;
        char *copy = malloc(size);

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, text, size);
        size_t left = withhold_cut(copy, size);
        ck_assert_uint_le(left, size);
        ck_assert_uint_eq(left, strlen(copy) + 1);
        return copy;
}

static const struct {
        const char *text, *left;
} cases[] = {
        {"", ""},
        {"{\"parameters\":{}}", "{\"parameters\":{}}"},
        {"{\"a\":\"x exited with status 1; its last lines: secret|more\",\"b\":1}",
         "{\"a\":\"x exited with status 1\",\"b\":1}"},
        /* The lines may hold anything. */
        {"{\"a\":\"x; its last lines: say \\\"no\\\" \\\\\",\"b\":\"y; its last lines: \",\"c\":2}",
         "{\"a\":\"x\",\"b\":\"y\",\"c\":2}"},
        {"{\"a\":\"x; its last lines: could not be started: z; its last lines: s\"}", "{\"a\":\"x\"}"},
        {"[\"default/1 could not be started: cannot run 'secret' in PATH '/s'; its last lines: s\"]",
         "[\"default/1 could not be started\"]"},
        {"[\"default/1 could not be forked: s\",\"its application leaves open what all workers would share: "
         "s\"]",
         "[\"default/1 could not be forked\",\"its application leaves open what all workers would share\"]"},
        {"[\"Redis: it answers 'NOPERM User secret'\",\"it answers 'x\"]",
         "[\"Redis: it refuses\",\"it refuses\"]"},
        /* What is no whole message is cut all the same. */
        {"{\"a\":\"x; its last lines: secret", "{\"a\":\"x"},
        {"{\"a\":\"x; its last lines: secret\\", "{\"a\":\"x"},
        {"{\"a\":\"x; its last lines:\"}", "{\"a\":\"x; its last lines:\"}"},
};

TEST_LOOP(strings_end_where_they_begin_to_quote, ELEMENTSOF(cases))
{
        _cleanup_free_ char *left = cut(cases[_i].text);

        ck_assert_str_eq(left, cases[_i].left);
}

TEST(one_sentence_ends_there_too)
{
        char quotes[] = "x exited; its last lines: say \"it answers 'no'\"", plain[] = "x exited";
        char refused[] = "Redis refuses: it answers 'NOPERM'";

        withhold_end(quotes);
        ck_assert_str_eq(quotes, "x exited");
        withhold_end(plain);
        ck_assert_str_eq(plain, "x exited");
        withhold_end(refused);
        ck_assert_str_eq(refused, "Redis refuses: it refuses");
}

TEST(names_that_hold_a_phrase_are_found)
{
        ck_assert(withhold_finds("low; its last lines: x"));
        ck_assert(withhold_finds("it answers '"));
        ck_assert(!withhold_finds("low"));
        ck_assert(!withhold_finds("; its last lines"));
}

/* Pseudo-random strings of phrases, quotes and backslashes: what is left is JSON, in which no phrase stands
 * and none of what was quoted. */
TEST(what_is_left_of_any_message_is_one)
{
        static const char *const pieces[] = {
                WITHHOLD_LAST_LINES,
                WITHHOLD_NOT_STARTED,
                WITHHOLD_NOT_FORKED,
                WITHHOLD_SHARED,
                WITHHOLD_ANSWER,
                "\"",
                "\\",
                "\n",
                "\xe2\x82\xac",
                "; its last",
                "word ",
                "\\\"",
                "\x01",
        };
        uint32_t random = 1;

        for (unsigned n = 0; n < 2000; n++) {
                json_t *list = json_array();

                for (unsigned i = 0; i < 8; i++) {
                        char text[512] = "";
                        bool quotes = false;

                        for (unsigned k = 0; k < 8; k++) {
                                random = random * 1664525 + 1013904223;
                                const char *piece = pieces[(random >> 8) % ELEMENTSOF(pieces)];

                                strcat(text, piece);
                                quotes = quotes || withhold_finds(piece);
                                if (quotes)
                                        strcat(text, "secret");
                        }
                        ck_assert_int_eq(json_array_append_new(list, json_string(text)), 0);
                }
                char *text;
                size_t size;
                ck_assert_int_eq(varlink_encode_reply(json_pack("{s:o}", "list", list), false, &text, &size),
                                 0);
                size = withhold_cut(text, size);
                ck_assert_uint_eq(size, strlen(text) + 1);
                ck_assert(!withhold_finds(text));
                ck_assert_ptr_null(strstr(text, "secret"));
                json_t *left = json_loads(text, 0, NULL);
                ck_assert_msg(json_is_array(json_object_get(json_object_get(left, "parameters"), "list")),
                              "%s", text);
                json_decref(left);
                free(text);
        }
}

TEST_MAIN("withhold")
