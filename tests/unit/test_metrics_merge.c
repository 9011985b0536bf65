/* SPDX-License-Identifier: MIT */
/* Metrics as text in both formats, and those of several instances as one text. */
#include "unit.h"
#include "web/metrics.h"
#include <math.h>

/* Metrics as sqmgr writes them. */
static char *one(void)
{
        struct metrics metrics;
        char *text;
        size_t size;

        metrics_begin(&metrics);
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
        ck_assert_int_eq(metrics_end(&metrics, &text, &size), 0);
        ck_assert_uint_eq(strlen(text), size);
        return text;
}

TEST(metrics_are_written_for_prometheus)
{
        _cleanup_free_ char *text = one();

        ck_assert_str_eq(text, "# HELP a_bytes Bytes of \"a\" \\\\.\n# TYPE a_bytes gauge\n"
                               "a_bytes{fleet=\"x}\\\"\",queue=\"\\n?\"} 1\n"
                               "a_bytes{queue=\"q\"} 2.5\na_bytes 123456789012\n"
                               "# HELP b_total Bs.\n# TYPE b_total counter\nb_total 2\n"
                               "# HELP c_seconds Cs.\n# TYPE c_seconds summary\n"
                               "c_seconds_sum 1.5\nc_seconds_count 3\n"
                               "# HELP d Nothing.\n# TYPE d gauge\n");
}

/* The metrics of all instances, without those of sqmgr-web. */
static char *merge(struct instance *list, size_t n, enum metrics_format format)
{
        const struct instances instances = {.list = list, .n = n};
        const struct http_counts self = {.connections = 1, .streams = 2, .requests = 3, .refused = 4};
        char *text;
        size_t size;

        ck_assert_int_eq(metrics_merge(&instances, 0, &self, format, &text, &size), 0);
        ck_assert_uint_eq(strlen(text), size);
        ck_assert_int_eq(strcmp(text + size - strlen("# EOF\n"), "# EOF\n") == 0, format == METRICS_OPEN);
        char *own = strstr(text, "# HELP sqmgr_web_instance_up");
        ck_assert_ptr_nonnull(own);
        *own = '\0';
        return text;
}

static char *merge_one(const char *text, enum metrics_format format)
{
        struct instance instance = {.socket = (char[]){"/s"}, .metrics = (char *)text};

        return merge(&instance, 1, format);
}

TEST(openmetrics_names_counters_without_total_and_says_where_it_ends)
{
        _cleanup_free_ char *given = one(), *text = merge_one(given, METRICS_OPEN);

        ck_assert_ptr_nonnull(strstr(text, "# HELP a_bytes Bytes of \\\"a\\\" \\\\.\n"));
        ck_assert_ptr_nonnull(strstr(text, "# HELP b Bs.\n# TYPE b counter\nb_total 2\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nc_seconds_sum 1.5\nc_seconds_count 3\n"));
}

#define HEAD "# HELP a Help.\n# TYPE a gauge\n"

static const struct {
        const char *given, *text, *open;
} foreign[] = {
        {"", "", ""},
        {"\n\n#\n# EOF\n# TYPE\n# TYPE \n# TYPE a\n# HELP a\n", "", ""},
        {"# TYPE 1a gauge\n1a 1\n# TYPE a\" gauge\n# TYPE  gauge\n", "", ""},
        {"a 1\n" HEAD "a 1\n", HEAD "a 1\n", HEAD "a 1\n"},
        /* Lines that are no samples of the last family. */
        {HEAD "b 1\nab 1\na_bucket 1\na_su 1\na_sumx 1\na{b=\"}\n_a 1\n a 1\n\na\n", HEAD, HEAD},
        {HEAD "a\na 1 2\na x\na  1\na 0x1\na nan\na inf\na -\na 1e999\n", HEAD, HEAD},
        {HEAD "a{} 1\na{b} 1\na{b=} 1\na{b=\"x\" 1\na{b=\"x\",} 1\na{b=\"x} 1\na{b=\"x\\\n", HEAD, HEAD},
        {HEAD "a{1=\"x\"} 1\na{b=\"x\"}1\na{b=\"x\"}\na{b=\"x\";c=\"y\"} 1\n", HEAD, HEAD},
        {HEAD "a{b=\"}\\\\\",c=\"\\\"\"} -1.5e3\n", HEAD "a{b=\"}\\\\\",c=\"\\\"\"} -1.5e3\n",
         HEAD "a{b=\"}\\\\\",c=\"\\\"\"} -1.5e3\n"},
        {"# TYPE a gauge\na 1", "# TYPE a gauge\na 1\n", "# TYPE a gauge\na 1\n"},
        /* Of a later sqmgr. */
        {"# TYPE a histogram\na 1\n", "# TYPE a untyped\na 1\n", "# TYPE a unknown\na 1\n"},
        {"# TYPE a counter\na 1\n", "# TYPE a counter\na 1\n", "# TYPE a unknown\na 1\n"},
        {"# HELP a Help.\na 1\n", "# HELP a Help.\n# TYPE a untyped\na 1\n",
         "# HELP a Help.\n# TYPE a unknown\na 1\n"},
};

TEST_LOOP(what_is_no_metric_is_left_out, ELEMENTSOF(foreign))
{
        _cleanup_free_ char *text = merge_one(foreign[_i].given, METRICS_TEXT),
                            *open = merge_one(foreign[_i].given, METRICS_OPEN);

        ck_assert_str_eq(text, foreign[_i].text);
        ck_assert_str_eq(open, foreign[_i].open);
}

TEST(one_instance_is_reported_as_it_is)
{
        _cleanup_free_ char *text = one(), *merged = merge_one(text, METRICS_TEXT),
                            *nothing = merge_one(NULL, METRICS_TEXT);

        ck_assert_str_eq(merged, text);
        ck_assert_str_eq(nothing, "");
}

TEST(each_family_of_several_stands_once)
{
        struct instance list[] = {
                {.socket = (char[]){"/a"},
                 .metrics = (char[]){"# HELP a Help.\n# TYPE a gauge\na{fleet=\"x\"} 1\n"
                                     "# HELP b_total Help.\n# TYPE b_total counter\nb_total 2\n"}},
                {.socket = (char[]){"/b\"\\"},
                 .metrics = (char[]){"# HELP c Help.\n# TYPE c summary\nc_sum 1.5\nc_count 3\n"
                                     "# HELP b_total Other.\n# TYPE b_total gauge\nb_total 4\n"}},
                {.socket = (char[]){"/c"}}};
        _cleanup_free_ char *merged = merge(list, 3, METRICS_TEXT);

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
