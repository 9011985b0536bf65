/* SPDX-License-Identifier: MIT */
/* What sqmgr-web knows of each sqmgr, and what of it goes into the history. */
#include "base/fd.h"
#include "golden.h"
#include "model/event.h"
#include "unit.h"
#include "web/history.h"
#include "web/watch.h"
#include "wire/json.h"
#include <math.h>
#include <sys/socket.h>
#include <sys/un.h>

#define STATUS(fleets) "{\"shutdown\":null,\"fleets\":[" fleets "]}"
#define FLEET(name, active)                                                                                  \
        "{\"name\":\"" name "\",\"state\":\"running\",\"target\":2,\"active\":" #active                      \
        ",\"starting\":0,\"memory_bytes\":1000,\"workers\":[{\"state\":\"active\",\"busy\":3},"              \
        "{\"state\":\"quiet\",\"busy\":1},{\"state\":\"starting\",\"busy\":null}]}"

static const char *const sockets[] = {"/a", "/b"};
static struct instances instances;

static void setup(void)
{
        ck_assert_int_eq(instances_init(&instances), 0);
        for (size_t i = 0; i < ELEMENTSOF(sockets); i++)
                ck_assert_ptr_nonnull(instances_add(&instances, sockets[i], NULL));
}

static void teardown(void)
{
        instances_done(&instances);
}

static json_t *load(const char *text)
{
        json_t *json = json_loads(text, 0, NULL);

        ck_assert_ptr_nonnull(json);
        return json;
}

static void report_status(size_t i, const char *text, usec_t now)
{
        _cleanup_json_ json_t *json = load(text);

        instance_take_status(&instances.list[i], json, now);
}

static void expect_document(usec_t now, const char *expected)
{
        _cleanup_json_ json_t *document = instances_render(&instances, NULL, now), *json = load(expected);
        _cleanup_free_ char *text = json_dumps(document, JSON_REAL_PRECISION(15));

        ck_assert_msg(json_equal(document, json), "%s", text);
}

TEST(what_was_reported_last_stays_with_its_age)
{
        expect_document(
                5 * USEC_PER_SEC,
                "{\"instances\":["
                "{\"socket\":\"/a\",\"name\":\"/a\",\"reachable\":false,\"age_seconds\":null,\"error\":null,"
                "\"status\":null,\"queues\":null},"
                "{\"socket\":\"/b\",\"name\":\"/b\",\"reachable\":false,\"age_seconds\":null,\"error\":null,"
                "\"status\":null,\"queues\":null}]}");
        report_status(0, "{\"fleets\":[]}", 5 * USEC_PER_SEC);
        instance_lose(&instances.list[1], "nobody answers");
        expect_document(
                6 * USEC_PER_SEC + 2500,
                "{\"instances\":["
                "{\"socket\":\"/a\",\"name\":\"/a\",\"reachable\":true,\"age_seconds\":1.002,\"error\":null,"
                "\"status\":{\"fleets\":[]},\"queues\":null},"
                "{\"socket\":\"/b\",\"name\":\"/"
                "b\",\"reachable\":false,\"age_seconds\":null,\"error\":\"nobody answers\","
                "\"status\":null,\"queues\":null}]}");
        instance_lose(&instances.list[0], "gone");
        expect_document(7 * USEC_PER_SEC,
                        "{\"instances\":["
                        "{\"socket\":\"/a\",\"name\":\"/"
                        "a\",\"reachable\":false,\"age_seconds\":2.0,\"error\":\"gone\","
                        "\"status\":{\"fleets\":[]},\"queues\":null},"
                        "{\"socket\":\"/b\",\"name\":\"/"
                        "b\",\"reachable\":false,\"age_seconds\":null,\"error\":\"nobody answers\","
                        "\"status\":null,\"queues\":null}]}");
}

TEST(an_answer_that_is_none_is_passed_over)
{
        _cleanup_json_ json_t *queues = load("{\"redis\":7}"), *good = load("{\"redis\":[]}");

        report_status(0, "{}", 1);
        ck_assert(!instances.list[0].reachable);
        ck_assert_ptr_null(instances.list[0].status);
        report_status(0, "{\"fleets\":{}}", 1);
        ck_assert(!instances.list[0].reachable);
        instance_take_status(&instances.list[0], NULL, 1);
        instance_take_queues(&instances.list[0], NULL);
        instance_take_queues(&instances.list[0], queues);
        ck_assert_ptr_null(instances.list[0].queues);
        instance_take_queues(&instances.list[0], good);
        ck_assert(json_is_array(instances.list[0].queues));
}

/* The texts of those that are new, one letter each. */
static const char *take_events(size_t i, const char *text)
{
        static char texts[64];
        _cleanup_json_ json_t *answer = load(text);
        _cleanup_json_ json_t *news = json_array();
        size_t k;
        json_t *each;

        instances_take_events(&instances, &instances.list[i], answer, news);
        texts[0] = '\0';
        json_array_foreach(news, k, each)
        {
                ck_assert_str_eq(json_string_value(json_object_get(each, "socket")), sockets[i]);
                strncat(texts, json_string_value(json_object_get(each, "text")), 1);
        }
        return texts;
}

static const char *known_events(void)
{
        static char texts[INSTANCES_EVENTS + 8];
        size_t k;
        json_t *each;

        texts[0] = '\0';
        json_array_foreach(instances.events, k, each)
        {
                strncat(texts, json_string_value(json_object_get(each, "text")), 1);
        }
        return texts;
}

TEST(an_event_is_reported_once)
{
        const struct instance *one = &instances.list[0];

        ck_assert(instance_events_after(one, 100 * USEC_PER_SEC) == 0);
        ck_assert_str_eq(
                take_events(0, "{\"events\":[{\"at\":1.5,\"text\":\"a\"},{\"at\":3,\"text\":\"c\"}]}"), "ac");
        ck_assert(instance_events_after(one, 100 * USEC_PER_SEC) == 3);
        /* What was rounded comes again, and what is of the same moment is none of these. */
        ck_assert_str_eq(take_events(0, "{\"events\":[{\"at\":3,\"text\":\"c\"},{\"at\":3,\"text\":\"d\"}]}"),
                         "d");
        ck_assert_str_eq(known_events(), "dca");
        ck_assert_str_eq(take_events(0, "{\"events\":[]}"), "");
        ck_assert(instance_events_after(one, 100 * USEC_PER_SEC) == 3);
        /* The same of another one is another. */
        ck_assert_str_eq(take_events(1, "{\"events\":[{\"at\":2,\"text\":\"b\"},{\"at\":3,\"text\":\"c\"}]}"),
                         "bc");
        ck_assert_str_eq(known_events(), "cdcba");
        ck_assert_str_eq(take_events(1, "{\"events\":[7,null]}"), "");
        ck_assert_str_eq(take_events(1, "{\"events\":7}"), "");
}

TEST(a_clock_that_was_set_back_hides_no_event)
{
        const struct instance *one = &instances.list[0];

        ck_assert_str_eq(take_events(0, "{\"events\":[{\"at\":100,\"text\":\"a\"}]}"), "a");
        ck_assert(instance_events_after(one, 50 * USEC_PER_SEC) == 50);
        ck_assert_str_eq(
                take_events(0, "{\"events\":[{\"at\":100,\"text\":\"a\"},{\"at\":51,\"text\":\"b\"}]}"), "b");
        ck_assert_str_eq(known_events(), "ab");
}

/* One instance reports newer events without end. */
TEST(many_events_of_one_displace_none_of_another)
{
        char text[128];

        take_events(1, "{\"events\":[{\"at\":1,\"text\":\"b\"},{\"at\":2,\"text\":\"c\"}]}");
        for (unsigned i = 0; i < 2 * INSTANCES_EVENTS; i++) {
                snprintf(text, sizeof(text), "{\"events\":[{\"at\":%u,\"text\":\"a\"}]}", i + 10);
                take_events(0, text);
        }
        ck_assert_uint_eq(strlen(known_events()), INSTANCES_EVENTS);
        ck_assert_str_eq(known_events() + INSTANCES_EVENTS - 3, "acb");
        ck_assert_uint_eq(instances.list[0].n_events, INSTANCES_EVENTS - 2);
        /* If both have the same number, the oldest event is dropped. */
        for (unsigned i = 0; i < INSTANCES_EVENTS; i++) {
                snprintf(text, sizeof(text), "{\"events\":[{\"at\":%u,\"text\":\"d\"}]}", i + 3);
                take_events(1, text);
        }
        ck_assert_uint_eq(instances.list[0].n_events, INSTANCES_EVENTS / 2);
        ck_assert_uint_eq(instances.list[1].n_events, INSTANCES_EVENTS / 2);
}

TEST(news_are_bounded)
{
        _cleanup_json_ json_t *answer = json_object(), *list = json_array(), *news = json_array();

        for (unsigned i = 0; i < 3 * INSTANCES_EVENTS; i++)
                json_array_append_new(list, json_pack("{s:i}", "at", i + 1));
        json_object_set(answer, "events", list);
        instances_take_events(&instances, &instances.list[0], answer, news);
        ck_assert_uint_eq(json_array_size(news), INSTANCES_EVENTS);
        ck_assert_int_eq(json_integer_value(json_object_get(json_array_get(news, 0), "at")),
                         2 * INSTANCES_EVENTS + 1);
}

/* The sentences of that section of tests/golden/ready; NULL: nothing is missing. */
static void expect_lacks(const char *section)
{
        _cleanup_free_ char *lacks = instances_lacks(&instances);

        if (section)
                golden_expect("ready", section, lacks);
        else
                ck_assert_str_eq(lacks, "");
}

#define JUDGED(problems) "{\"fleets\":[],\"problems\":[" problems "]}"

TEST(all_must_be_ready)
{
        expect_lacks("instances: no answer yet");
        report_status(0, JUDGED("{\"summary\":\"fleet 'x': 1 of 2 workers active\",\"unready\":true}"), 1);
        report_status(1, JUDGED("{\"summary\":\"y\",\"unready\":false}"), 1);
        expect_lacks("instances: one lacks a worker");
        report_status(0, JUDGED(""), 1);
        expect_lacks(NULL);
        instance_lose(&instances.list[1], "gone");
        expect_lacks("instances: one is lost");
}

TEST(the_history_has_the_fleets_of_who_answers)
{
        _cleanup_free_ struct history_sample *samples = NULL;
        _cleanup_json_ json_t *queues =
                load("{\"redis\":[{\"queues\":[{\"latency_seconds\":2.5},"
                     "{\"latency_seconds\":null}]},{\"queues\":[{\"latency_seconds\":1}]}]}");

        report_status(0, STATUS(FLEET("x", 1) ",{},{\"name\":\"y\"}"), 1);
        report_status(1, STATUS(FLEET("x", 2)), 1);
        instance_take_queues(&instances.list[0], queues);
        instance_lose(&instances.list[1], "gone");
        ck_assert_int_eq(history_feed_samples(&instances, &samples), 2);
        ck_assert_str_eq(samples[0].socket, "/a");
        ck_assert_str_eq(samples[0].fleet, "x");
        ck_assert(samples[0].memory_bytes == 1000 && samples[0].active == 1 && samples[0].busy == 4);
        ck_assert(samples[0].latency_seconds == 2.5);
        ck_assert_str_eq(samples[1].fleet, "y");
        ck_assert(isnan(samples[1].memory_bytes) && isnan(samples[1].active));
}

TEST(busy_is_unknown_where_one_does_not_report)
{
        _cleanup_free_ struct history_sample *samples = NULL;

        report_status(0,
                      STATUS("{\"name\":\"x\",\"workers\":[{\"state\":\"active\",\"busy\":1},"
                             "{\"state\":\"active\",\"busy\":null}]}"),
                      1);
        ck_assert_int_eq(history_feed_samples(&instances, &samples), 1);
        ck_assert(isnan(samples[0].busy) && isnan(samples[0].latency_seconds));
}

TEST(marks_are_of_kinds_that_there_are)
{
        unsigned n = 0;

        for (enum event_kind kind = 0; kind < _EVENT_MAX; kind++)
                n += history_feed_mark_name(event_kinds[kind].name) ? 1 : 0;
        ck_assert_uint_eq(n, 19);
        ck_assert_str_eq(history_feed_mark_name("rollout-halted"), "halt");
}

static char folder[64], found_text[1024];

static const char *in_folder(const char *name)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", folder, name);
        return path;
}

static void make_socket(const char *name)
{
        struct sockaddr_un address = {.sun_family = AF_UNIX};
        _cleanup_close_ int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

        snprintf(address.sun_path, sizeof(address.sun_path), "%.100s", in_folder(name));
        ck_assert_int_eq(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
}

static void on_found(void *userdata, const struct located *found)
{
        ck_assert_ptr_eq(userdata, found_text);
        ck_assert_int_eq(strncmp(found->socket, folder, strlen(folder)), 0);
        strcat(strcat(strcat(strcat(found_text, found->name), " "), found->socket + strlen(folder)), "\n");
}

static void expect_found(const char *expected)
{
        char enabled[64];

        snprintf(enabled, sizeof(enabled), "%.40s/wants", folder);
        snprintf(found_text, sizeof(found_text), "%s", "");
        find_instances(in_folder("run"), enabled, on_found, found_text);
        ck_assert_str_eq(found_text, expected);
}

TEST(instances_are_those_that_are_enabled_and_those_with_a_socket)
{
        static const char *const made[] = {"run",
                                           "wants",
                                           "run/shop",
                                           "run/blog",
                                           "run/status",
                                           "run/a b",
                                           "run/stale",
                                           "run/.hidden",
                                           "wants/sqmgr@mail.service",
                                           "wants/x@y.service",
                                           "wants/sqmgr@.service",
                                           "wants/sqmgr@a b.service",
                                           "wants/sqmgr-app@u.service",
                                           "wants/sqmgr-web.service",
                                           "run/stale/control.sock"};

        unit_make_folder(folder);
        expect_found("");
        for (size_t i = 0; i < ELEMENTSOF(made); i++)
                ck_assert_int_eq(mkdir(in_folder(made[i]), 0700), 0);
        make_socket("run/shop/control.sock");
        make_socket("run/blog/control.sock");
        make_socket("run/a b/control.sock");
        make_socket("run/.hidden/control.sock");
        make_socket("run/control.sock");
        expect_found(
                "mail /run/mail/control.sock\nblog /run/blog/control.sock\nshop /run/shop/control.sock\n");
}

TEST_MAIN("instances", .each = {setup, teardown})
