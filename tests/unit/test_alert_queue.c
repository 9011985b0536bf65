/* SPDX-License-Identifier: MIT */
/* Tests of advice/alert_queue.h: what is folded, what comes first, what is lost. */
#include "advice/alert_queue.h"
#include "model/fleet.h"
#include "unit.h"

#define T0 (1000 * USEC_PER_SEC)

static char name[] = "web", other_name[] = "mail";
static const struct fleet_settings web_settings = {.name = name}, mail_settings = {.name = other_name};
static const struct fleet web = {.settings = &web_settings}, mail = {.settings = &mail_settings};
static struct alert_queue queue;

static void teardown(void)
{
        alert_queue_clear(&queue);
}

static bool add(enum event_kind kind, const struct fleet *fleet, unsigned index, const char *text, usec_t now)
{
        const struct event event = {.kind = kind, .fleet = fleet, .index = index};

        return alert_queue_add(&queue, &event, json_pack("{s:s}", "text", text), now);
}

/* The next is due then, and stands for so many, of which that was the last. */
static void expect_next(usec_t due, int count, const char *text)
{
        struct alert *next = alert_queue_next(&queue);

        ck_assert_ptr_nonnull(next);
        ck_assert_uint_eq(next->due, due);
        ck_assert_str_eq(json_string_value(json_object_get(next->event, "text")), text);
        ck_assert_int_eq((int)next->count, count);
        alert_queue_sent(next);
}

TEST(the_first_is_reported_at_once_those_that_follow_it_together)
{
        ck_assert(add(EVENT_CRASHED, &web, 1, "one", T0));
        expect_next(T0, 1, "one");
        ck_assert_ptr_null(alert_queue_next(&queue));
        for (unsigned i = 1; i < 60; i++)
                ck_assert(add(EVENT_CRASHED, &web, 1, i == 59 ? "last" : "more", T0 + i * USEC_PER_SEC));
        expect_next(T0 + 60 * USEC_PER_SEC, 59, "last");
        /* Its telling began another such time. */
        ck_assert(add(EVENT_CRASHED, &web, 1, "again", T0 + 119 * USEC_PER_SEC));
        expect_next(T0 + 120 * USEC_PER_SEC, 1, "again");
        ck_assert(add(EVENT_CRASHED, &web, 1, "later", T0 + 180 * USEC_PER_SEC));
        expect_next(T0 + 180 * USEC_PER_SEC, 1, "later");
        ck_assert_ptr_null(alert_queue_next(&queue));
}

TEST(one_that_could_not_be_reported_waits)
{
        ck_assert(add(EVENT_CRASHED, &web, 1, "one", T0));
        ck_assert(add(EVENT_CRASHED, &web, 1, "two", T0));
        alert_queue_delay(&queue, alert_queue_next(&queue), T0 + 5);
        ck_assert(add(EVENT_CRASHED, &web, 1, "three", T0 + 1));
        expect_next(T0 + 5, 3, "three");
        ck_assert_ptr_null(alert_queue_next(&queue));
}

TEST(one_that_could_not_be_reported_still_comes_before_its_end)
{
        ck_assert(add(EVENT_HUNG, &web, 1, "hangs", T0));
        ck_assert(add(EVENT_BEATS_AGAIN, &web, 1, "beats", T0 + 1));
        ck_assert(add(EVENT_BEATS_AGAIN, &web, 2, "other", T0 + 2));
        alert_queue_delay(&queue, alert_queue_next(&queue), T0 + 5);
        expect_next(T0 + 2, 1, "other");
        expect_next(T0 + 5, 1, "hangs");
        expect_next(T0 + 6, 1, "beats");
        ck_assert_ptr_null(alert_queue_next(&queue));
}

TEST(those_that_come_before_it_was_reported_are_reported_with_it)
{
        ck_assert(add(EVENT_CRASHED, &web, 1, "one", T0));
        ck_assert(add(EVENT_CRASHED, &web, 1, "two", T0 + 1));
        expect_next(T0, 2, "two");
        ck_assert_ptr_null(alert_queue_next(&queue));
}

TEST(another_kind_fleet_or_worker_is_another_alert_in_the_order_of_events)
{
        ck_assert(add(EVENT_CRASHED, &web, 1, "one", T0));
        ck_assert(add(EVENT_CRASHED, &web, 2, "two", T0));
        ck_assert(add(EVENT_CRASHED, &mail, 1, "three", T0));
        ck_assert(add(EVENT_KILLED, &web, 1, "four", T0));
        ck_assert(add(EVENT_TIME_DOUBT, NULL, 0, "five", T0));
        expect_next(T0, 1, "one");
        expect_next(T0, 1, "two");
        expect_next(T0, 1, "three");
        expect_next(T0, 1, "four");
        expect_next(T0, 1, "five");
}

TEST(only_what_waits_fills_the_queue)
{
        for (unsigned i = 1; i <= ALERTS_MAX; i++)
                ck_assert(add(EVENT_CRASHED, &web, i, "waits", T0 + i));
        ck_assert(!add(EVENT_CRASHED, &web, ALERTS_MAX + 1, "lost", T0 + USEC_PER_SEC));
        ck_assert(add(EVENT_CRASHED, &web, 1, "folded", T0 + USEC_PER_SEC));
        expect_next(T0 + 1, 2, "folded");
        ck_assert(add(EVENT_CRASHED, &web, ALERTS_MAX + 1, "fits", T0 + 2 * USEC_PER_SEC));
        for (unsigned i = 2; i <= ALERTS_MAX; i++)
                expect_next(T0 + i, 1, "waits");
        expect_next(T0 + 2 * USEC_PER_SEC, 1, "fits");
        ck_assert_ptr_null(alert_queue_next(&queue));
}

TEST(a_trouble_and_its_end_are_reported_in_their_order_however_they_are_folded)
{
        const usec_t second = USEC_PER_SEC;

        ck_assert(add(EVENT_REDIS_UP, &web, 0, "up 1", T0));
        expect_next(T0, 1, "up 1");
        ck_assert(add(EVENT_REDIS_DOWN, &web, 0, "down 1", T0 + 55 * second));
        expect_next(T0 + 55 * second, 1, "down 1");
        ck_assert(add(EVENT_REDIS_DOWN, &web, 0, "down 2", T0 + 60 * second));
        /* Another fleet's says nothing of this one's. */
        ck_assert(add(EVENT_REDIS_UP, &mail, 0, "other", T0 + 61 * second));
        expect_next(T0 + 61 * second, 1, "other");
        /* Alone it would be told at once, and before what it ends. */
        ck_assert(add(EVENT_REDIS_UP, &web, 0, "up 2", T0 + 62 * second));
        ck_assert(add(EVENT_CRASHED, &web, 0, "crash", T0 + 63 * second));
        expect_next(T0 + 63 * second, 1, "crash");
        expect_next(T0 + 115 * second, 1, "down 2");
        expect_next(T0 + 115 * second + 1, 1, "up 2");
        ck_assert_ptr_null(alert_queue_next(&queue));

        ck_assert(add(EVENT_HUNG, &web, 1, "hangs", T0));
        expect_next(T0, 1, "hangs");
        ck_assert(add(EVENT_BEATS_AGAIN, &web, 1, "beats", T0 + 1));
        expect_next(T0 + 1, 1, "beats");
        ck_assert(add(EVENT_HUNG, &web, 1, "hangs", T0 + 2));
        ck_assert(add(EVENT_BEATS_AGAIN, &web, 1, "beats", T0 + 3));
        ck_assert(add(EVENT_HUNG, &web, 1, "hangs still", T0 + 4));
        expect_next(T0 + 60 * second + 1, 1, "beats");
        expect_next(T0 + 60 * second + 2, 2, "hangs still");
        ck_assert_ptr_null(alert_queue_next(&queue));
}

TEST_MAIN("alert_queue", .each = {NULL, teardown})
