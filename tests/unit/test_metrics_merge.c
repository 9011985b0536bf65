/* SPDX-License-Identifier: MIT */
/* The metrics of several instances as one text, in both formats. */
#include "unit.h"
#include "web/metrics.h"
#include <time.h>

#define ONE                                                                                                  \
        "# HELP a_bytes Bytes of \"a\" \\\\.\n# TYPE a_bytes gauge\na_bytes{fleet=\"x}\\\"\"} 1\n"           \
        "# HELP b_total Bs.\n# TYPE b_total counter\nb_total 2\n"                                            \
        "# HELP c_seconds Cs.\n# TYPE c_seconds summary\nc_seconds_sum 1.5\nc_seconds_count 3\n"

/* What comes of the sources, without what sqmgr-web says of itself. */
static char *merge(struct instance *list, size_t n, enum metrics_format format)
{
        const struct instances instances = {.list = list, .n = n};
        const struct http_counts self = {.connections = 1, .streams = 2, .requests = 3, .refused = 4};
        char *text;
        size_t size;

        ck_assert_int_eq(metrics_merge(&instances, 0, &self, format, &text, &size), 0);
        ck_assert_uint_eq(strlen(text), size);
        char *own = strstr(text, "# HELP sqmgr_web_instance_up");
        ck_assert_ptr_nonnull(own);
        *own = '\0';
        return text;
}

static void expect(const char *text, enum metrics_format format, const char *expected)
{
        struct instance instance = {.socket = "/s", .metrics = (char *)text};
        _cleanup_free_ char *merged = merge(&instance, 1, format);

        ck_assert_str_eq(merged, expected);
}

TEST(one_instance_is_reported_as_it_is)
{
        expect(ONE, METRICS_TEXT, ONE);
        expect("", METRICS_TEXT, "");
        expect(NULL, METRICS_TEXT, "");
}

TEST(each_family_of_several_stands_once)
{
        char one[] = ONE;
        struct instance list[] = {
                {.socket = "/a", .metrics = one}, {.socket = "/b\"\\", .metrics = one}, {.socket = "/c"}};
        _cleanup_free_ char *merged = merge(list, 3, METRICS_TEXT);

        ck_assert_str_eq(merged, "# HELP a_bytes Bytes of \"a\" \\\\.\n# TYPE a_bytes gauge\n"
                                 "a_bytes{socket=\"/a\",fleet=\"x}\\\"\"} 1\n"
                                 "a_bytes{socket=\"/b\\\"\\\\\",fleet=\"x}\\\"\"} 1\n"
                                 "# HELP b_total Bs.\n# TYPE b_total counter\n"
                                 "b_total{socket=\"/a\"} 2\nb_total{socket=\"/b\\\"\\\\\"} 2\n"
                                 "# HELP c_seconds Cs.\n# TYPE c_seconds summary\n"
                                 "c_seconds_sum{socket=\"/a\"} 1.5\nc_seconds_count{socket=\"/a\"} 3\n"
                                 "c_seconds_sum{socket=\"/b\\\"\\\\\"} 1.5\n"
                                 "c_seconds_count{socket=\"/b\\\"\\\\\"} 3\n");
}

TEST(openmetrics_names_counters_without_total)
{
        expect(ONE, METRICS_OPEN,
               "# HELP a_bytes Bytes of \\\"a\\\" \\\\.\n# TYPE a_bytes gauge\na_bytes{fleet=\"x}\\\"\"} 1\n"
               "# HELP b Bs.\n# TYPE b counter\nb_total 2\n"
               "# HELP c_seconds Cs.\n# TYPE c_seconds summary\nc_seconds_sum 1.5\nc_seconds_count 3\n");
        expect("# TYPE d untyped\nd 1\n", METRICS_OPEN, "# TYPE d unknown\nd 1\n");
        expect("# TYPE e counter\ne 1\n", METRICS_OPEN, "# TYPE e counter\ne_total 1\n");
}

TEST(openmetrics_says_where_it_ends)
{
        const struct http_counts self = {0};
        const struct instances none = {0};
        char *text;
        size_t size;

        ck_assert_int_eq(metrics_merge(&none, 0, &self, METRICS_OPEN, &text, &size), 0);
        ck_assert_str_eq(text + size - strlen("\n# EOF\n"), "\n# EOF\n");
        free(text);
}

static const char *const garbage[] = {
        "a",
        "a ",
        "a x",
        "a 1 2",
        "a{",
        "a{b=\"",
        "a{b=\"}\\\"} 1",
        " a 1",
        "1a 1",
        "a{b=\"c\"}1",
        "{b=\"c\"} 1",
        "a{} 0x10",
        "a  1",
        "a\t1",
        "a 1\r",
        "# TYPE",
        "# HELP",
        "#",
        "# TYPE 1 gauge",
        "# EOF",
        "-\xff\xfe 1",
        "a 1e",
        "a inf",
};

TEST_LOOP(what_is_not_of_the_format_is_left_out, ELEMENTSOF(garbage))
{
        char text[64];

        snprintf(text, sizeof(text), "%s\nz 1\n", garbage[_i]);
        expect(text, METRICS_TEXT, "z 1\n");
        /* Without the newline. */
        expect(garbage[_i], METRICS_TEXT, "");
}

TEST(a_sample_of_another_family_is_one_of_its_own)
{
        expect("# HELP a A.\n# TYPE a gauge\nb 1\na 2\na_other 3\n", METRICS_TEXT,
               "# HELP a A.\n# TYPE a gauge\na 2\nb 1\na_other 3\n");
}

static size_t count_lines(const char *text, const char *begin)
{
        size_t n = 0;

        for (const char *line = text; *line != '\0'; line = strchr(line, '\n') + 1)
                n += strncmp(line, begin, strlen(begin)) == 0;
        return n;
}

TEST(too_many_families_are_left_out_and_take_no_place_of_others)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);
        char other[] = "b 1\n";

        for (unsigned i = 0; i < 5000; i++)
                fprintf(out, "a%u 1\n", i);
        ck_assert_int_eq(fclose(out), 0);
        struct instance list[] = {{.socket = "/s", .metrics = text}, {.socket = "/t", .metrics = other}};
        const struct instances instances = {.list = list, .n = 2};
        const struct http_counts self = {0};
        _cleanup_free_ char *merged = NULL;
        ck_assert_int_eq(metrics_merge(&instances, 0, &self, METRICS_TEXT, &merged, &size), 0);
        ck_assert_uint_eq(count_lines(merged, "a"), 500);
        ck_assert_uint_eq(count_lines(merged, "b{socket=\"/t\"} 1"), 1);
        ck_assert_uint_eq(count_lines(merged, "sqmgr_web_connections 0"), 1);
}

/* Seconds of the processor for many families, and many samples outside of a block of their family. */
static double merge_many(const char *name)
{
        _cleanup_free_ char *text = NULL, *merged = NULL;
        struct timespec begin, end;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        for (unsigned i = 0; i < 499; i++)
                fprintf(out, "# TYPE family_of_a_long_name_%03u gauge\n", i);
        for (unsigned i = 0; i < 50000; i++)
                fprintf(out, "%s 1\n", name);
        ck_assert_int_eq(fclose(out), 0);
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
        struct instance instance = {.socket = "/s", .metrics = text};
        merged = merge(&instance, 1, METRICS_TEXT);
        (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
        ck_assert_uint_eq(count_lines(merged, name), 50000);
        return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) / 1e9;
}

TEST(a_sample_costs_the_same_however_many_families_there_are)
{
        double declared_last = merge_many("family_of_a_long_name_498"),
               first = merge_many("family_of_a_long_name_000"),
               last = merge_many("family_of_a_long_name_497");

        ck_assert_msg(last < 8 * first && last < 8 * declared_last, "%f %f %f", declared_last, first, last);
}

TEST(says_of_each_instance_whether_it_answers)
{
        struct instance list[] = {
                {.socket = "/a", .reachable = true, .status = json_null(), .reported_at = USEC_PER_SEC},
                {.socket = "/b"}};
        const struct instances instances = {.list = list, .n = 2};
        const struct http_counts self = {.connections = 7};
        _cleanup_free_ char *text = NULL;
        size_t size;

        ck_assert_int_eq(metrics_merge(&instances, 5 * USEC_PER_SEC / 2, &self, METRICS_TEXT, &text, &size),
                         0);
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_web_instance_up{socket=\"/a\"} 1\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_web_instance_up{socket=\"/b\"} 0\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nsqmgr_web_status_age_seconds{socket=\"/a\"} 1.500\n"));
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
