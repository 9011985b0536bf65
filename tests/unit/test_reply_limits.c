/* SPDX-License-Identifier: MIT */
/* Limits on the replies of sqmgr: those of a large sqmgr are accepted, larger ones refused. */
#include "unit.h"
#include "wire/reply.h"

static char reason[REPLY_REASON_MAX];

static bool scan(enum instance_query query, const char *text)
{
        reason[0] = '\0';
        return reply_limits_scan(query, text, strlen(text), reason);
}

/* The reply as text: `before`, n times the piece, with commas between, and `after`. The caller frees it. */
static char *repeat(const char *before, const char *piece, size_t n, const char *after)
{
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        fputs(before, out);
        for (size_t i = 0; i < n; i++)
                fprintf(out, "%s%s", i > 0 ? "," : "", piece);
        fputs(after, out);
        ck_assert_int_eq(fclose(out), 0);
        return text;
}

static void expect_scan(enum instance_query query, char *text, const char *expected)
{
        _cleanup_free_ char *owned = text;
        bool good = scan(query, owned);

        ck_assert_msg(good == (expected[0] == '\0'), "%s", reason);
        ck_assert_msg(strstr(reason, expected), "%s", reason);
}

TEST(values_are_counted_before_they_are_parsed)
{
        const struct reply_limits *limits = &reply_limits[INSTANCE_QUERY_STATUS];

        expect_scan(INSTANCE_QUERY_STATUS, repeat("[", "{}", limits->containers - 1, "]"), "");
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[", "{}", limits->containers, "]"), "lists and objects");
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[", "[]", limits->containers, "]"), "lists and objects");
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[", "1", limits->values - 1, "]"), "");
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[", "1", limits->values, "]"), "values");
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[\"", "\\n", limits->values, "\"]"), "bytes");
}

TEST(what_is_in_a_text_is_no_value)
{
        /* Commas and brackets, and a quote that does not end it. */
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[\"", "{[", 5000, "\"]"), "");
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[\"\\\"", "{[", 5000, "\",1]"), "");
        ck_assert(scan(INSTANCE_QUERY_STATUS, "\""));
        ck_assert(scan(INSTANCE_QUERY_STATUS, "\"\\"));
        ck_assert(scan(INSTANCE_QUERY_STATUS, "]]}}{"));
        ck_assert(scan(INSTANCE_QUERY_STATUS, ""));
}

static char *text_of(size_t size, char character)
{
        char *text = calloc(1, size + 3);

        memset(text, character, size + 2);
        text[0] = text[size + 1] = '"';
        return text;
}

TEST(texts_are_bounded)
{
        const struct reply_limits *limits = &reply_limits[INSTANCE_QUERY_EVENTS];

        expect_scan(INSTANCE_QUERY_EVENTS, text_of(limits->string_bytes, 'x'), "");
        expect_scan(INSTANCE_QUERY_EVENTS, text_of(limits->string_bytes + 1, 'x'), "a text of more than");
        expect_scan(INSTANCE_QUERY_EVENTS, text_of(limits->bytes, 'x'), "bytes");
        /* On the page each of these becomes `&amp;`. */
        _cleanup_free_ char *markup = text_of(10000, '&');
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[", markup, 20, "]"), "");
        expect_scan(INSTANCE_QUERY_STATUS, repeat("[", markup, 21, "]"), "characters of markup");
}

TEST(depth_is_bounded)
{
        _cleanup_free_ char *deep = text_of(REPLY_DEPTH_MAX - 1, '['),
                            *deeper = text_of(REPLY_DEPTH_MAX, '[');

        deep[0] = deep[REPLY_DEPTH_MAX] = deeper[0] = deeper[REPLY_DEPTH_MAX + 1] = '[';
        deep[REPLY_DEPTH_MAX] = '\0';
        ck_assert(scan(INSTANCE_QUERY_STATUS, deep));
        ck_assert(!scan(INSTANCE_QUERY_STATUS, deeper));
        ck_assert_ptr_nonnull(strstr(reason, "levels"));
}

static void expect_check(enum instance_query query, char *text, const char *expected)
{
        _cleanup_free_ char *owned = text;
        _cleanup_json_ json_t *answer = json_loads(owned, 0, NULL);

        ck_assert_ptr_nonnull(answer);
        reason[0] = '\0';
        bool good = reply_limits_check(query, answer, reason);
        ck_assert_msg(good == (expected[0] == '\0'), "%s", reason);
        ck_assert_msg(strstr(reason, expected), "%s", reason);
}

/* n fleets, each with so many workers. */
static char *fleets(size_t n, size_t workers)
{
        char *text;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        _cleanup_free_ char *list = repeat("[", "{\"id\":\"w\"}", workers, "]");

        for (size_t i = 0; i < n; i++)
                fprintf(out, "%s{\"name\":\"%zu\",\"workers\":%s}", i > 0 ? "," : "{\"fleets\":[", i, list);
        fputs("]}", out);
        ck_assert_int_eq(fclose(out), 0);
        return text;
}

TEST(fleets_and_workers_are_counted)
{
        expect_check(INSTANCE_QUERY_STATUS, fleets(REPLY_FLEETS_MAX, 1), "");
        expect_check(INSTANCE_QUERY_STATUS, fleets(REPLY_FLEETS_MAX + 1, 0), "fleets");
        expect_check(INSTANCE_QUERY_STATUS, fleets(10, REPLY_WORKERS_MAX / 10), "");
        expect_check(INSTANCE_QUERY_STATUS, fleets(10, REPLY_WORKERS_MAX / 10 + 1), "workers");
}

TEST(names_are_short_and_each_stands_once)
{
        char name[REPLY_NAME_MAX + 2] = "", text[2 * sizeof(name)];

        memset(name, 'n', sizeof(name) - 1);
        snprintf(text, sizeof(text), "{\"fleets\":[{\"name\":\"%s\"}]}", name);
        expect_check(INSTANCE_QUERY_STATUS, strdup(text), "a fleet name");
        snprintf(text, sizeof(text), "{\"fleets\":[{\"workers\":[{\"id\":\"%s\"}]}]}", name);
        expect_check(INSTANCE_QUERY_STATUS, strdup(text), "a worker name");
        name[REPLY_NAME_MAX] = '\0';
        snprintf(text, sizeof(text), "{\"fleets\":[{\"name\":\"%s\"}]}", name);
        expect_check(INSTANCE_QUERY_STATUS, strdup(text), "");
        expect_check(INSTANCE_QUERY_STATUS, strdup("{\"fleets\":[{\"name\":\"a\"},{\"name\":\"a\"}]}"),
                     "two fleets with the same name");
        expect_check(INSTANCE_QUERY_STATUS, strdup("{\"fleets\":[{},7,{\"name\":7}]}"),
                     "two fleets with the same name");
        expect_check(INSTANCE_QUERY_STATUS, strdup("{\"fleets\":7}"), "");
}

TEST(events_are_counted_and_each_is_bounded)
{
        const size_t n = REPLY_EVENT_BYTES_MAX / 4;
        _cleanup_free_ char *text = text_of(n, 'x'), *object = NULL, *list = NULL;

        expect_check(INSTANCE_QUERY_EVENTS, repeat("{\"events\":[", "{}", REPLY_EVENTS_MAX, "]}"), "");
        expect_check(INSTANCE_QUERY_EVENTS, repeat("{\"events\":[", "{}", REPLY_EVENTS_MAX + 1, "]}"),
                     "events");
        /* Three texts are little enough, and four too much, wherever in it they stand. */
        list = repeat("{\"events\":[{\"a\":[", text, 3, "]}]}");
        expect_check(INSTANCE_QUERY_EVENTS, strdup(list), "");
        object = repeat("{\"events\":[{\"a\":{\"b\":[", text, 4, "]}}]}");
        expect_check(INSTANCE_QUERY_EVENTS, strdup(object), "an event of more than");
}

TEST(lines_of_metrics_are_counted)
{
        expect_check(INSTANCE_QUERY_METRICS, repeat("{\"text\":\"", "\\n", REPLY_METRICS_MAX, "\"}"), "");
        expect_check(INSTANCE_QUERY_METRICS, repeat("{\"text\":\"", "\\n", REPLY_METRICS_MAX + 1, "\"}"),
                     "lines of metrics");
        expect_check(INSTANCE_QUERY_METRICS, strdup("{\"text\":7}"), "");
        expect_check(INSTANCE_QUERY_QUEUES, strdup("{}"), "");
}

TEST_MAIN("reply_limits")
