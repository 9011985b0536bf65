/* SPDX-License-Identifier: MIT */
/* Framing and messages of Varlink. */
/* promises: P10 */
#include "unit.h"
#include "wire/varlink.h"

static void add_input(struct varlink_input *input, const char *data, size_t size)
{
        char *room;

        ck_assert_int_eq(varlink_input_reserve(input, size, &room), 0);
        memcpy(room, data, size);
        varlink_input_filled(input, size);
}

TEST(takes_messages_whatever_the_pieces)
{
        static const char stream[] = "first\0\0second\0third";
        struct varlink_input input = {0};
        const char *wanted[] = {"first", "", "second"};

        for (size_t piece = 1; piece <= sizeof(stream) - 1; piece++) {
                size_t found = 0;

                for (size_t at = 0; at < sizeof(stream) - 1; at += piece) {
                        const char *text;
                        size_t size;

                        add_input(&input, stream + at, MIN(piece, sizeof(stream) - 1 - at));
                        while (varlink_input_take(&input, 100, &text, &size) == 1) {
                                ck_assert_uint_lt(found, ELEMENTSOF(wanted));
                                ck_assert_str_eq(text, wanted[found]);
                                ck_assert_uint_eq(size, strlen(wanted[found]));
                                found++;
                        }
                }
                ck_assert_uint_eq(found, ELEMENTSOF(wanted));
                ck_assert_uint_eq(varlink_input_size(&input), strlen("third"));
                varlink_input_free(&input);
        }
}

TEST(refuses_a_message_over_the_limit)
{
        struct varlink_input input = {0};
        const char *text;
        size_t size;

        add_input(&input, "12345", 6);
        ck_assert_int_eq(varlink_input_ready(&input, 5), 1);
        ck_assert_int_eq(varlink_input_take(&input, 4, &text, &size), -EMSGSIZE);
        ck_assert_int_eq(varlink_input_take(&input, 5, &text, &size), 1);
        add_input(&input, "12345", 5);
        ck_assert_int_eq(varlink_input_take(&input, 5, &text, &size), 0);
        ck_assert_int_eq(varlink_input_take(&input, 4, &text, &size), -EMSGSIZE);
        varlink_input_free(&input);
}

static const struct {
        const char *text;
        int result;
        bool more, oneway, upgrade;
} calls[] = {
        {"{\"method\":\"a.B\"}", 0, false, false, false},
        {"{\"method\":\"a.B\",\"parameters\":{}}", 0, false, false, false},
        {"{\"method\":\"a.B\",\"parameters\":null,\"more\":null}", 0, false, false, false},
        {"{\"method\":\"a.B\",\"more\":true}", 0, true, false, false},
        {"{\"method\":\"a.B\",\"oneway\":true,\"more\":false}", 0, false, true, false},
        {"{\"method\":\"a.B\",\"upgrade\":true,\"unheard\":1}", 0, false, false, true},
        {"", -EBADMSG, false, false, false},
        {"{", -EBADMSG, false, false, false},
        {"[]", -EBADMSG, false, false, false},
        {"7", -EBADMSG, false, false, false},
        {"{}", -EBADMSG, false, false, false},
        {"{\"method\":7}", -EBADMSG, false, false, false},
        {"{\"method\":null}", -EBADMSG, false, false, false},
        {"{\"method\":\"a.B\",\"parameters\":[]}", -EBADMSG, false, false, false},
        {"{\"method\":\"a.B\",\"more\":1}", -EBADMSG, false, false, false},
        {"{\"method\":\"a.B\",\"method\":\"a.C\"}", -EBADMSG, false, false, false},
        {"{\"method\":\"a.B\"} x", -EBADMSG, false, false, false},
        {"{\"method\":\"\xff\"}", -EBADMSG, false, false, false},
};

TEST_LOOP(decodes_calls, ELEMENTSOF(calls))
{
        struct varlink_call call;

        ck_assert_int_eq(varlink_decode_call(calls[_i].text, strlen(calls[_i].text), &call),
                         calls[_i].result);
        if (calls[_i].result < 0)
                return;
        ck_assert_str_eq(call.method, "a.B");
        ck_assert(json_is_object(call.parameters));
        ck_assert_int_eq(call.more, calls[_i].more);
        ck_assert_int_eq(call.oneway, calls[_i].oneway);
        ck_assert_int_eq(call.upgrade, calls[_i].upgrade);
        varlink_call_free(&call);
}

TEST(refuses_deep_nesting)
{
        size_t depth = 500000;
        char *text = malloc(depth + 64);
        struct varlink_call call;

        ck_assert_ptr_nonnull(text);
        int length = sprintf(text, "{\"method\":\"a.B\",\"parameters\":");
        memset(text + length, '[', depth);
        ck_assert_int_eq(varlink_decode_call(text, (size_t)length + depth, &call), -EBADMSG);
        free(text);
}

/* Of empty objects alone, a message would become 79 times its size in memory. */
TEST(refuses_more_values_than_any_message_has)
{
        static const char begin[] = "{\"method\":\"a.B\",\"parameters\":{\"a\":[", end[] = "0]}}";
        struct varlink_call call = {0};
        struct varlink_reply reply = {0};

        for (size_t most = 1 << 14; most <= 1 << 16; most *= 4) {
                char *text = malloc(sizeof(begin) + 3 * most + sizeof(end)), *at = stpcpy(text, begin);

                for (size_t i = 0; i < most; i++)
                        at = stpcpy(at, "{},");
                size_t size = (size_t)(stpcpy(at, end) - text);
                int r = varlink_decode_call(text, size, &call);
                ck_assert_int_eq(r, most == 1 << 14 ? 0 : -EBADMSG);
                ck_assert_int_eq(varlink_decode_reply(text, size, size, &reply), -EBADMSG);
                varlink_call_free(&call);
                free(text);
        }
}

TEST(encoded_replies_decode_again)
{
        struct varlink_reply reply;
        char *text;
        size_t size;

        ck_assert_int_eq(varlink_encode_reply(NULL, json_pack("{s:f}", "seconds", 12.3), true, &text, &size),
                         0);
        ck_assert_uint_eq(size, strlen(text) + 1);
        ck_assert_ptr_nonnull(strstr(text, "12.3}"));
        ck_assert_int_eq(varlink_decode_reply(text, size - 1, VARLINK_REPLY_MAX, &reply), 0);
        ck_assert_ptr_null(reply.error);
        ck_assert(reply.continues);
        free(text);
        varlink_reply_free(&reply);

        ck_assert_int_eq(
                varlink_encode_reply("a.Wrong", json_pack("{s:s}", "name", "x"), false, &text, &size), 0);
        ck_assert_int_eq(varlink_decode_reply(text, size - 1, VARLINK_REPLY_MAX, &reply), 0);
        ck_assert_str_eq(reply.error, "a.Wrong");
        ck_assert(!reply.continues);
        ck_assert_str_eq(json_string_value(json_object_get(reply.parameters, "name")), "x");
        free(text);
        varlink_reply_free(&reply);

        struct varlink_call call;
        ck_assert_int_eq(varlink_encode_call("a.B", json_object(), true, &text, &size), 0);
        ck_assert_int_eq(varlink_decode_call(text, size - 1, &call), 0);
        ck_assert(call.more);
        free(text);
        varlink_call_free(&call);
}

TEST(a_failed_allocation_is_passed_on)
{
        char *text;
        size_t size;

        ck_assert_int_eq(varlink_encode_reply(NULL, NULL, false, &text, &size), -ENOMEM);
        ck_assert_int_eq(varlink_encode_reply("a.Wrong", NULL, false, &text, &size), -ENOMEM);
        ck_assert_int_eq(varlink_encode_call("a.B", NULL, false, &text, &size), -ENOMEM);
}

TEST(foreign_text_becomes_a_json_string)
{
        static const struct {
                const char *text, *wanted;
        } cases[] = {
                {"plain", "plain"},
                {"caf\xc3\xa9", "caf\xc3\xa9"},
                {"cut \xc3", "cut ?"},
                {"two\nlines \033[2J", "two\nlines ?[2J"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                json_t *json = varlink_text(cases[i].text);

                ck_assert_str_eq(json_string_value(json), cases[i].wanted);
                json_decref(json);
        }
        ck_assert(json_is_null(varlink_text("")));
        ck_assert(json_is_null(varlink_text(NULL)));

        json_t *name = varlink_name("two\nlines \xff");
        ck_assert_str_eq(json_string_value(name), "two?lines ?");
        json_decref(name);
        name = varlink_name("");
        ck_assert_str_eq(json_string_value(name), "");
        json_decref(name);
}

TEST_MAIN("varlink")
