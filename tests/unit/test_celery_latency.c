/* SPDX-License-Identifier: MIT */
/* Are the latencies of Celery's queues estimated from what their consumers begin, unknown without data, and
 * bounded whatever is forged? */
/* promises: P1 P5 */
#include "frameworks/celery/latency.h"
#include "unit.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

#define SEC USEC_PER_SEC
/* Longer than the window. */
#define LONG 40

static struct celery_nodes nodes;
static struct celery_waits waits;
static struct queue last;
static usec_t now;

static void setup(void)
{
        now = 1000 * SEC;
        waits = (struct celery_waits){.nodes = &nodes};
}

static void teardown(void)
{
        celery_nodes_clear(&nodes);
}

static struct celery_node *find(const char *name)
{
        char identity[64];

        snprintf(identity, sizeof(identity), "vm:7:%s", name);
        return celery_nodes_find(&nodes, identity);
}

static void hear(const char *name, uint64_t processed)
{
        struct celery_event event = {
                .type = CELERY_HEARTBEAT, .pid = 7, .has_counts = true, .active = 1, .processed = processed};

        snprintf(event.node, sizeof(event.node), "%s", name);
        ck_assert_int_eq(celery_nodes_hear(&nodes, &event, now), 0);
}

/* The node consumes n of "a" and "b". */
static void consume(const char *name, size_t n)
{
        char *queues[] = {(char *)"a", (char *)"b"};
        struct celery_reply reply = {.method = CELERY_ACTIVE_QUEUES, .queues = queues, .n_queues = n};

        snprintf(reply.node, sizeof(reply.node), "%s", name);
        ck_assert_ptr_nonnull(celery_nodes_reply(&nodes, &reply, true, now, now));
}

/* Heartbeats every 2 s, with `each` tasks begun in between. Returns the last counter. */
static uint64_t work(const char *name, unsigned seconds, uint64_t processed, unsigned each)
{
        for (unsigned i = 0; i < seconds; i += 2) {
                now += 2 * SEC;
                hear(name, processed += each);
        }
        return processed;
}

/* Returns the latency of queue "a" in seconds; -1: unknown. */
static double latency(uint64_t size)
{
        struct queues queues = {0};

        ck_assert_int_eq(queues_add_once(&queues, "b"), 0);
        ck_assert_int_eq(queues_add_once(&queues, "a"), 0);
        queues.list[0].size = size;
        celery_waits_judge(&waits, &queues, now);
        last = queues.list[0];
        free(queues.list[0].name);
        free(queues.list[1].name);
        free(queues.list);
        return last.latency_known ? (double)last.latency / SEC : -1;
}

#define assert_about(value, expected) ck_assert_double_eq_tol(value, expected, fabs((expected)*0.1) + 0.01)

static void begin(const char *name, size_t n_queues)
{
        hear(name, 100);
        consume(name, n_queues);
}

TEST(without_data_a_latency_is_unknown_and_an_empty_queue_has_none)
{
        assert_about(latency(0), 0);
        assert_about(latency(5), -1);
        begin("one@vm", 1);
        assert_about(latency(5), -1);
        work("one@vm", 8, 100, 4);
        assert_about(latency(5), -1);
        assert_about(latency(0), 0);
        work("one@vm", 4, 116, 4);
        ck_assert_double_gt(latency(5), 0);
}

TEST(the_estimate_is_length_over_rate)
{
        begin("one@vm", 1);
        uint64_t processed = work("one@vm", 2 * LONG, 100, 4);
        assert_about(latency(200), 100);
        /* Only the last minute counts. */
        work("one@vm", 2 * LONG, processed, 40);
        assert_about(latency(200), 10);
}

TEST(all_consumers_count_and_no_other_node)
{
        begin("one@vm", 1);
        begin("two@vm", 2);
        begin("three@vm", 0);
        for (unsigned i = 1; i <= LONG; i++) {
                now += SEC;
                hear("one@vm", 100 + i);
                hear("two@vm", 100 + 3 * i);
                hear("three@vm", 100 + 100 * i);
        }
        assert_about(latency(400), 100);
        /* A node that is silent or quieted begins nothing more. */
        consume("two@vm", 0);
        assert_about(latency(400), 400);
        now += 8 * SEC;
        assert_about(latency(400), -1);
}

TEST(a_node_that_comes_adds_nothing_before_it_has_data)
{
        begin("one@vm", 1);
        uint64_t processed = work("one@vm", LONG, 100, 4);
        begin("two@vm", 1);
        hear("two@vm", 5000);
        assert_about(latency(200), 100);
        work("one@vm", 2, processed, 4);
        assert_about(latency(200), 100);
}

TEST(without_progress_the_latency_is_the_time_since_the_queue_was_read)
{
        begin("one@vm", 1);
        work("one@vm", LONG, 100, 0);
        assert_about(latency(0), 0);
        work("one@vm", 10, 100, 0);
        assert_about(latency(3), 0);
        work("one@vm", 30, 100, 0);
        assert_about(latency(3), 30);
        assert_about(latency(9), 30);
        /* An empty queue ends the wait. */
        assert_about(latency(0), 0);
        assert_about(latency(3), 0);
        /* A queue that nobody read may have been empty. */
        work("one@vm", 150, 100, 0);
        assert_about(latency(3), 0);
}

TEST(a_wait_without_progress_begins_with_the_last_task)
{
        begin("one@vm", 1);
        uint64_t processed = work("one@vm", LONG, 100, 2);
        ck_assert_double_gt(latency(3), 0);
        processed = work("one@vm", LONG, processed, 2);
        ck_assert_double_gt(latency(3), 0);
        work("one@vm", 90, processed, 0);
        assert_about(latency(3), 90);
        /* The time of the last begin is kept after the node that began the task has gone. */
        celery_nodes_clear(&nodes);
        begin("two@vm", 1);
        work("two@vm", 20, 100, 0);
        assert_about(latency(3), 110);
}

TEST(a_lower_counter_starts_anew)
{
        begin("one@vm", 1);
        work("one@vm", LONG, 100, 4);
        hear("one@vm", 3);
        assert_about(latency(200), -1);
        work("one@vm", LONG, 3, 4);
        assert_about(latency(200), 100);
}

TEST(after_missed_events_latencies_are_unknown)
{
        begin("one@vm", 1);
        uint64_t processed = work("one@vm", LONG, 100, 4);
        celery_nodes_missed(&nodes);
        assert_about(latency(200), -1);
        processed = work("one@vm", 2, processed, 4);
        consume("one@vm", 1);
        assert_about(latency(200), -1);
        work("one@vm", LONG, processed, 4);
        assert_about(latency(200), 100);
}

TEST(forged_counters_are_bounded)
{
        begin("one@vm", 1);
        for (unsigned i = 0; i < 50; i++) {
                now += SEC;
                hear("one@vm", i % 2 ? UINT64_MAX : UINT64_MAX / 2 + i);
        }
        latency(QUEUE_JOBS_MAX);
        ck_assert_uint_le(last.latency, CELERY_LATENCY_MAX);
        hear("one@vm", 0);
        for (uint64_t i = 1; i < 50; i++) {
                now += SEC;
                hear("one@vm", UINT64_MAX / 50 * i);
        }
        /* At most 200000 tasks in the window. */
        ck_assert_double_ge(latency(20000 * 1000), 1000);
        ck_assert_uint_le(last.latency, CELERY_LATENCY_MAX);
        ck_assert(isfinite(celery_work_rate(&find("one@vm")->work, now)));
        ck_assert_double_le(celery_work_rate(&find("one@vm")->work, now), 20000);
        /* At one moment, too. */
        ck_assert_double_lt(celery_work_rate(&(struct celery_work){.since[1] = now}, now), 0);
}

TEST(the_times_of_queues_are_bounded)
{
        char name[32];

        begin("one@vm", 1);
        work("one@vm", LONG, 100, 0);
        for (unsigned i = 0; i < 3 * CELERY_WAITS_MAX; i++) {
                struct queues queues = {0};
                int length = snprintf(name, sizeof(name), "invented-%u", i);

                ck_assert_ptr_nonnull(queues_add(&queues, name, (size_t)length));
                queues.list[0].size = 1;
                celery_waits_judge(&waits, &queues, now);
                ck_assert(!queues.list[0].latency_known);
                free(queues.list[0].name);
                free(queues.list);
                now += 1;
        }
        assert_about(latency(3), 0);
        work("one@vm", 20, 100, 0);
        assert_about(latency(3), 20);
}

TEST(workers_of_one_fleet_share_the_peak_of_running_tasks)
{
        struct celery_event event = {.type = CELERY_HEARTBEAT, .pid = 7, .has_counts = true, .active = 8};

        hear("tasks-1@vm", 0);
        hear("tasks-12@vm", 0);
        hear("other-1@vm", 0);
        memcpy(event.node, "tasks-2@vm", sizeof("tasks-2@vm"));
        ck_assert_int_eq(celery_nodes_hear(&nodes, &event, now), 0);
        event.active = 0;
        ck_assert_int_eq(celery_nodes_hear(&nodes, &event, now), 0);
        ck_assert_uint_eq(celery_nodes_peak(&nodes, find("tasks-1@vm")), 8);
        ck_assert_uint_eq(celery_nodes_peak(&nodes, find("tasks-12@vm")), 8);
        ck_assert_uint_eq(celery_nodes_peak(&nodes, find("other-1@vm")), 1);
}

TEST_MAIN("celery_latency", .each = {setup, teardown})
