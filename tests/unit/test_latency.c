/* SPDX-License-Identifier: MIT */
/* Are latencies estimated from the jobs that workers end, unknown without data, and bounded whatever workers
 * report? */
/* promises: P2 */
#include "model/fleet.h"
#include "unit.h"
#include <math.h>

#define SEC USEC_PER_SEC
/* Longer than a part of the window. */
#define LONG 40

static struct latency_work one, two;
static usec_t now;

static void setup(void)
{
        now = 1000 * SEC;
        one = two = (struct latency_work){0};
}

/* Reports `each` ended jobs every 2 s. */
static void work(struct latency_work *fleet, unsigned seconds, uint64_t each)
{
        for (unsigned i = 0; i < seconds; i += 2) {
                now += 2 * SEC;
                latency_count(fleet, each, now);
        }
}

/* Returns the latency in seconds of queue "a", of which two fleets serve these; -1: unknown. */
static double latency_of(uint64_t size, const char *by_one, const char *by_two)
{
        struct latency_flow flows[2] = {{0}};
        struct queue list[] = {{.name = (char *)"a", .size = size}, {.name = (char *)"b"}};
        struct queues queues = {.list = list, .n = ELEMENTSOF(list)};

        latency_add(flows, &queues, &one, by_one, now);
        latency_add(flows, &queues, &two, by_two, now);
        latency_judge(&queues, flows, now);
        ck_assert_uint_le(list[0].latency, LATENCY_MAX_USEC);
        ck_assert(list[1].latency_known && list[1].latency == 0);
        return list[0].latency_known ? (double)list[0].latency / SEC : -1;
}

static double latency(uint64_t size)
{
        return latency_of(size, "a\0", NULL);
}

#define assert_about(value, expected) ck_assert_double_eq_tol(value, expected, fabs((expected)*0.1) + 0.01)

TEST(without_data_a_latency_is_unknown_and_an_empty_queue_has_none)
{
        assert_about(latency(0), 0);
        assert_about(latency(5), -1);
        latency_count(&one, 0, now);
        assert_about(latency(5), -1);
        work(&one, 8, 4);
        assert_about(latency(5), -1);
        assert_about(latency(0), 0);
        work(&one, 4, 4);
        ck_assert_double_gt(latency(5), 0);
}

TEST(the_estimate_is_length_over_rate)
{
        latency_count(&one, 0, now);
        work(&one, 2 * LONG, 4);
        assert_about(latency(200), 100);
        /* Only the last minute counts. */
        work(&one, 2 * LONG, 40);
        assert_about(latency(200), 10);
}

TEST(all_fleets_that_serve_the_queue_count_and_no_other)
{
        for (unsigned i = 0; i <= 2 * LONG; i++) {
                now += SEC;
                latency_count(&one, 1, now);
                latency_count(&two, 3, now);
        }
        assert_about(latency_of(400, "a\0", "b\0a\0"), 100);
        assert_about(latency_of(400, "a\0", "b\0"), 400);
        assert_about(latency_of(400, "a\0", NULL), 400);
        assert_about(latency_of(400, "b\0", NULL), -1);
}

TEST(a_fleet_that_comes_adds_nothing_before_it_has_data)
{
        latency_count(&one, 0, now);
        work(&one, LONG, 4);
        latency_count(&two, 5000, now);
        assert_about(latency_of(200, "a\0", "a\0"), 100);
        work(&one, 2, 4);
        latency_count(&two, 5000, now);
        assert_about(latency_of(200, "a\0", "a\0"), 100);
}

TEST(without_progress_the_latency_is_the_time_since_jobs_began_to_wait)
{
        latency_count(&one, 0, now);
        work(&one, LONG, 0);
        assert_about(latency(0), 0);
        work(&one, 10, 0);
        assert_about(latency(3), 10);
        work(&one, 30, 0);
        assert_about(latency(3), 40);
        assert_about(latency(9), 40);
        /* A reading without jobs ends the wait, and one of other queues does not. */
        assert_about(latency_of(0, "b\0", NULL), 0);
        assert_about(latency(0), 0);
        assert_about(latency(3), 0);
        /* A queue that was not read may have been empty. */
        work(&one, 150, 0);
        assert_about(latency(3), 0);
}

TEST(a_queue_of_another_fleet_leaves_the_wait_as_it_is)
{
        latency_count(&one, 0, now);
        work(&one, LONG, 0);
        assert_about(latency(3), 0);
        work(&one, LONG, 0);
        (void)latency_of(3, "c\0", NULL);
        assert_about(latency(3), LONG);
}

TEST(a_wait_without_progress_begins_with_the_last_job)
{
        latency_count(&one, 0, now);
        work(&one, LONG, 2);
        ck_assert_double_gt(latency(3), 0);
        work(&one, 90, 0);
        assert_about(latency(3), 90);
}

TEST(the_estimate_is_bounded)
{
        latency_count(&one, 0, now);
        for (unsigned i = 0; i < 50; i++) {
                now += SEC;
                latency_count(&one, i % 2 ? UINT64_MAX : 1, now);
                ck_assert(isfinite(latency(QUEUE_JOBS_MAX)));
        }
        work(&one, 4 * LONG, 0);
        work(&one, 2 * LONG, 0);
        now += 2 * LATENCY_MAX_USEC;
        latency_count(&one, 1, now);
        (void)latency(QUEUE_JOBS_MAX);
}

TEST_MAIN("latency", .each = {setup, NULL})
