/* SPDX-License-Identifier: MIT */
/* Metrics as text in both formats, and those of several instances as one text. */
#include "unit.h"
#include "web/metrics.h"
#include <math.h>

#define FAMILY(name, type, labels, values)                                                                   \
        "{\"name\":\"" name "\",\"type\":\"" type "\",\"help\":\"Help.\",\"labels\":[" labels                \
        "],\"values\":[" values "]}"
#define LABEL(name, values) "{\"name\":\"" name "\",\"values\":[" values "]}"

/* As sqmgr collects them. */
static json_t *one(void)
{
        struct metrics metrics = metrics_begin();

        metrics_family(&metrics, "a_bytes", "gauge", "Bytes of \"a\" \\.");
        METRICS_SAMPLE(&metrics, 1, "fleet", "x}\"", "queue", "\n\xff");
        METRICS_SAMPLE(&metrics, 2.5, "fleet", "", "queue", "q");
        METRICS_SAMPLE(&metrics, 123456789012, "fleet", "", "queue", "");
        METRICS_SAMPLE(&metrics, NAN, "fleet", "x", "queue", "none");
        metrics_family(&metrics, "b_total", "counter", "Bs.");
        metrics_sample(&metrics, 2, NULL);
        metrics_family(&metrics, "c_seconds", "summary", "Cs.");
        metrics_sample(&metrics, 1.5, NULL);
        metrics_sample(&metrics, 3, NULL);
        metrics_family(&metrics, "d", "gauge", "Nothing.");
        json_t *families = metrics_end(&metrics);
        ck_assert_ptr_nonnull(families);
        return families;
}

/* Takes families. */
static char *print(json_t *families, enum metrics_format format)
{
        const struct metrics_source source = {.families = families};
        char *text;
        size_t size;

        ck_assert_int_eq(metrics_print(&source, 1, format, &text, &size), 0);
        ck_assert_uint_eq(strlen(text), size);
        json_decref(families);
        return text;
}

TEST(families_are_printed_for_prometheus)
{
        _cleanup_free_ char *text = print(one(), METRICS_TEXT);

        ck_assert_str_eq(text, "# HELP a_bytes Bytes of \"a\" \\\\.\n# TYPE a_bytes gauge\n"
                               "a_bytes{fleet=\"x}\\\"\",queue=\"\\n?\"} 1\n"
                               "a_bytes{queue=\"q\"} 2.5\na_bytes 123456789012\n"
                               "# HELP b_total Bs.\n# TYPE b_total counter\nb_total 2\n"
                               "# HELP c_seconds Cs.\n# TYPE c_seconds summary\n"
                               "c_seconds_sum 1.5\nc_seconds_count 3\n"
                               "# HELP d Nothing.\n# TYPE d gauge\n");
}

TEST(openmetrics_names_counters_without_total_and_says_where_it_ends)
{
        _cleanup_free_ char *text = print(one(), METRICS_OPEN);

        ck_assert_ptr_nonnull(strstr(text, "# HELP a_bytes Bytes of \\\"a\\\" \\\\.\n"));
        ck_assert_ptr_nonnull(strstr(text, "# HELP b Bs.\n# TYPE b counter\nb_total 2\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nc_seconds_sum 1.5\nc_seconds_count 3\n"));
        ck_assert_str_eq(text + strlen(text) - strlen("\n# EOF\n"), "\n# EOF\n");
}

static const struct {
        const char *json, *text, *open;
} foreign[] = {
        {"{}", "", ""},
        {"7, null, [], \"a\"", "", ""},
        {FAMILY("", "gauge", "", "1"), "", ""},
        {FAMILY("1a", "gauge", "", "1"), "", ""},
        {FAMILY("a b", "gauge", "", "1"), "", ""},
        {FAMILY("a\\n", "gauge", "", "1"), "", ""},
        {FAMILY("a", "gauge", "7", "1"), "", ""},
        {FAMILY("a", "gauge", LABEL("b\\\"", "\"x\""), "1"), "", ""},
        /* A label for some samples only. */
        {FAMILY("a", "gauge", LABEL("b", "\"x\""), "1, 2"), "", ""},
        {FAMILY("a", "gauge", "{\"name\":\"b\"}", "1"), "", ""},
        /* More labels than any family has. */
        {FAMILY("a", "gauge",
                LABEL("a", "") "," LABEL("b", "") "," LABEL("c", "") "," LABEL("d", "") "," LABEL(
                        "e", "") "," LABEL("f", "") "," LABEL("g", "") "," LABEL("h", "") "," LABEL("i", ""),
                ""),
         "", ""},
        {FAMILY("a", "gauge", LABEL("b", "7"), "\"x\""), "# HELP a Help.\n# TYPE a gauge\na 0\n",
         "# HELP a Help.\n# TYPE a gauge\na 0\n"},
        /* Of a later sqmgr. */
        {FAMILY("a", "histogram", "", "1"), "# HELP a Help.\n# TYPE a untyped\na 1\n",
         "# HELP a Help.\n# TYPE a unknown\na 1\n"},
        {FAMILY("a", "counter", "", "1"), "# HELP a Help.\n# TYPE a counter\na 1\n",
         "# HELP a Help.\n# TYPE a counter\na_total 1\n"},
        {"{\"name\":\"a\",\"values\":[1]}", "# TYPE a untyped\na 1\n", "# TYPE a unknown\na 1\n"},
};

TEST_LOOP(what_is_no_family_is_left_out, ELEMENTSOF(foreign))
{
        char json[1024], open[1024];

        snprintf(json, sizeof(json), "[%s]", foreign[_i].json);
        _cleanup_free_ char *text = print(json_loads(json, 0, NULL), METRICS_TEXT);
        ck_assert_str_eq(text, foreign[_i].text);
        _cleanup_free_ char *other = print(json_loads(json, 0, NULL), METRICS_OPEN);
        snprintf(open, sizeof(open), "%s# EOF\n", foreign[_i].open);
        ck_assert_str_eq(other, open);
}

/* The metrics of all instances, without those of sqmgr-web. */
static char *merge(struct instance *list, size_t n)
{
        const struct instances instances = {.list = list, .n = n};
        const struct http_counts self = {.connections = 1, .streams = 2, .requests = 3, .refused = 4};
        char *text;
        size_t size;

        ck_assert_int_eq(metrics_merge(&instances, 0, &self, METRICS_TEXT, &text, &size), 0);
        char *own = strstr(text, "# HELP sqmgr_web_instance_up");
        ck_assert_ptr_nonnull(own);
        *own = '\0';
        return text;
}

TEST(one_instance_is_reported_as_it_is)
{
        _cleanup_json_ json_t *families = one();
        struct instance instance = {.socket = (char[]){"/s"}, .metrics = families},
                        unknown = {.socket = (char[]){"/s"}};
        _cleanup_free_ char *merged = merge(&instance, 1), *text = print(one(), METRICS_TEXT);
        _cleanup_free_ char *nothing = merge(&unknown, 1);

        ck_assert_str_eq(merged, text);
        ck_assert_str_eq(nothing, "");
}

TEST(each_family_of_several_stands_once)
{
        _cleanup_json_ json_t *first =
                json_loads("[" FAMILY("a", "gauge", LABEL("fleet", "\"x\""),
                                      "1") "," FAMILY("b_total", "counter", "", "2") "]",
                           0, NULL);
        _cleanup_json_ json_t *second = json_loads(
                "[" FAMILY("c", "summary", "", "1.5, 3") "," FAMILY("b_total", "gauge", "", "4") "]", 0,
                NULL);
        struct instance list[] = {{.socket = (char[]){"/a"}, .metrics = first},
                                  {.socket = (char[]){"/b\"\\"}, .metrics = second},
                                  {.socket = (char[]){"/c"}}};
        _cleanup_free_ char *merged = merge(list, 3);

        ck_assert_str_eq(merged, "# HELP a Help.\n# TYPE a gauge\na{socket=\"/a\",fleet=\"x\"} 1\n"
                                 "# HELP b_total Help.\n# TYPE b_total counter\n"
                                 "b_total{socket=\"/a\"} 2\nb_total{socket=\"/b\\\"\\\\\"} 4\n"
                                 "# HELP c Help.\n# TYPE c summary\n"
                                 "c_sum{socket=\"/b\\\"\\\\\"} 1.5\nc_count{socket=\"/b\\\"\\\\\"} 3\n");
}

TEST(says_of_each_instance_whether_it_answers)
{
        struct instance list[] = {{.socket = (char[]){"/a"},
                                   .reachable = true,
                                   .status = json_null(),
                                   .reported_at = USEC_PER_SEC},
                                  {.socket = (char[]){"/b"}}};
        const struct instances instances = {.list = list, .n = 2};
        const struct http_counts self = {.connections = 7};
        _cleanup_free_ char *text = NULL;
        size_t size;

        ck_assert_int_eq(metrics_merge(&instances, 5 * USEC_PER_SEC / 2, &self, METRICS_TEXT, &text, &size),
                         0);
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_web_instance_up{socket=\"/a\"} 1\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_web_instance_up{socket=\"/b\"} 0\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_web_status_age_seconds{socket=\"/a\"} 1.5\n"));
        ck_assert_ptr_null(strstr(text, "sqmgr_web_status_age_seconds{socket=\"/b\"}"));
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_web_connections 7\n"));
}

#define OPEN "application/openmetrics-text"

static const struct {
        const char *accept;
        enum metrics_format format;
} accepts[] = {
        {NULL, METRICS_TEXT},
        {"", METRICS_TEXT},
        {"*/*", METRICS_TEXT},
        {"text/html,application/xhtml+xml,*/*;q=0.8", METRICS_TEXT},
        {OPEN, METRICS_OPEN},
        {OPEN ";version=1.0.0", METRICS_OPEN},
        {OPEN "x", METRICS_TEXT},
        {OPEN ";q=0", METRICS_TEXT},
        {OPEN "; q=0.000", METRICS_TEXT},
        {OPEN ";q=0.5,text/plain;q=0.7", METRICS_TEXT},
        {OPEN ";q=0.7,text/plain;q=0.5", METRICS_OPEN},
        {"text/plain;q=0.5;version=0.0.4, " OPEN "; version=1.0.0; q=0.75", METRICS_OPEN},
        {OPEN ";version=1.0.0;q=0.5," OPEN ";version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2",
         METRICS_OPEN},
        {"text/plain," OPEN, METRICS_OPEN},
        {",,;;, ;q=,;q", METRICS_TEXT},
        {OPEN ";", METRICS_OPEN},
        {OPEN ";q", METRICS_OPEN},
        {OPEN ";q=", METRICS_OPEN},
};

TEST_LOOP(answers_in_the_format_that_is_asked_for, ELEMENTSOF(accepts))
{
        ck_assert_int_eq(metrics_negotiate(accepts[_i].accept), accepts[_i].format);
}

TEST_MAIN("metrics_merge")
