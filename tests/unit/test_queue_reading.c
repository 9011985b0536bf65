/* SPDX-License-Identifier: MIT */
/* Tests of the reading of queues (daemon/poll/queue_reading.h) with a real redis-server. */
#include "daemon/poll/queue_reading.h"
#include "frameworks/queue_reader.h"
#include "golden.h"
#include "quoting.h"
#include "redis_runtime.h"

static void put(const char *queue, unsigned jobs)
{
        server_do("SADD queues %s", queue);
        for (unsigned i = 0; i < jobs; i++)
                server_do("LPUSH queue:%s {\"enqueued_at\":%lld}", queue, (long long)time(NULL));
}

/* Reads all, and returns how many turns said that it was done. */
static unsigned read_all(void)
{
        unsigned done = 0;

        while (runtime.links.reads_queues) {
                done += queue_reading_tick(&runtime);
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        return done + queue_reading_tick(&runtime);
}

TEST(what_was_read_stands_in_the_link)
{
        web_start("");
        put("mail", 2);
        run_until(web_is_up());
        queue_reading_begin(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_nonnull(web()->link->queues);
        ck_assert_uint_eq(web()->link->queues->n, 1);
        ck_assert_str_eq(web()->link->queues->list[0].name, "mail");
        ck_assert_uint_eq(web()->link->queues->list[0].size, 2);
        ck_assert_str_eq(error_shown(queue_reading_error(web()->link)), "");
}

TEST(large_oldest_jobs_are_decoded_up_to_a_total_and_small_ones_always)
{
        enum { LARGE = 200 * 1024, QUEUES = 20 };
        static char padding[LARGE + 1];
        const struct queues *queues;
        unsigned known = 0, n = 0;

        web_start("");
        memset(padding, 'x', LARGE);
        for (unsigned i = 0; i < QUEUES; i++) {
                server_do("SADD queues large%u", i);
                server_do("LPUSH queue:large%u {\"enqueued_at\":%lld,\"args\":\"%s\"}", i,
                          (long long)time(NULL), padding);
                char name[16];
                snprintf(name, sizeof(name), "small%u", i);
                put(name, 1);
        }
        run_until(web_is_up());
        queue_reading_begin(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        queues = web()->link->queues;
        ck_assert_ptr_nonnull(queues);
        for (size_t i = 0; i < queues->n; i++)
                if (queues->list[i].name[0] == 's')
                        n += queues->list[i].latency_known;
                else
                        known += queues->list[i].latency_known;
        ck_assert_uint_eq(n, QUEUES);
        ck_assert_uint_ge(known, 9);
        ck_assert_uint_le(known, QUEUES_HEADS_MAX / LARGE);
}

TEST(one_reading_serves_whoever_asks_while_it_lasts)
{
        web_start("");
        put("mail", 1);
        run_until(web_is_up());
        queue_reading_begin(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        long long once = server_calls("smembers");
        ck_assert_int_gt(once, 0);
        queue_reading_begin(&runtime);
        queue_reading_begin(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_int_eq(server_calls("smembers"), 2 * once);
}

TEST(without_a_limit_nobody_looks)
{
        web_start("");
        run_until(web_is_up());
        queue_reading_poll(&runtime);
        ck_assert(!runtime.links.reads_queues);
}

TEST(a_queue_over_its_limit_is_reported_once_and_once_more_when_it_is_back)
{
        web_start("[redis]\nqueue_warn_size=2\n");
        put("mail", 3);
        run_until(web_is_up());
        for (unsigned i = 0; i < 2; i++) {
                queue_reading_poll(&runtime);
                ck_assert_uint_eq(read_all(), 1);
                ck_assert_uint_eq(runtime_world->n_events, 1);
        }
        ck_assert_int_eq(runtime_world->events[0].kind, EVENT_QUEUE_OVER);
        golden_expect_with("queues", "over its limit", runtime_world->events[0].text, server_url, "URL");
        server_do("DEL queue:mail");
        queue_reading_poll(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_uint_eq(runtime_world->n_events, 2);
        ck_assert_int_eq(runtime_world->events[1].kind, EVENT_QUEUE_BACK);
}

TEST(a_redis_that_is_away_says_so_and_holds_up_no_other)
{
        web_start("[fleet:far]\ncommand=/bin/true\nredis_url=unix:///nonexistent/s\n");
        put("mail", 1);
        const struct link *far = world_fleet(runtime_world, "far")->link;
        run_until(web_is_up() && reader_error(far->reader));
        queue_reading_begin(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_nonnull(web()->link->queues);
        ck_assert_ptr_null(far->queues);
        ck_assert(error_report_equal(queue_reading_error(far), reader_error(far->reader)));
}

TEST(what_was_over_stays_so_while_nothing_can_be_read)
{
        web_start("[redis]\nqueue_warn_size=2\n");
        put("mail", 3);
        run_until(web_is_up());
        queue_reading_poll(&runtime);
        (void)read_all();
        ck_assert_uint_eq(runtime_world->n_events, 1);
        server_kill();
        run_until(!web_is_up());
        queue_reading_poll(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_str_ne(error_shown(queue_reading_error(web()->link)), "");
        for (size_t i = 0; i < runtime_world->n_events; i++)
                ck_assert_int_ne(runtime_world->events[i].kind, EVENT_QUEUE_BACK);
}

TEST(a_server_that_refuses_is_quoted)
{
        web_start("");
        server_do("SET queues x");
        run_until(web_is_up());
        queue_reading_begin(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_null(web()->link->queues);
        ck_assert_ptr_nonnull(strstr(error_shown(queue_reading_error(web()->link)), "WRONGTYPE"));
}

TEST(a_server_that_goes_away_meanwhile_ends_the_reading)
{
        web_start("");
        run_until(web_is_up());
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        queue_reading_begin(&runtime);
        ck_assert(!queue_reading_tick(&runtime));
        server_kill();
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_null(web()->link->queues);
        ck_assert_str_ne(error_shown(queue_reading_error(web()->link)), "");
}

static bool broker_is_up(void)
{
        return reader_state(web()->queue_link->reader) == READER_STATE_CONNECTED;
}

static const struct queue *first_queue(void)
{
        queue_reading_begin(&runtime);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_str_eq(error_shown(queue_reading_error(web()->queue_link)), "");
        return web()->queue_link->queues->n > 0 ? &web()->queue_link->queues->list[0] : NULL;
}

TEST(of_a_broker_the_queues_that_workers_serve_are_read_and_their_latency_is_estimated)
{
        static const char names[] = "mail\0celery\0";
        struct heartbeat_info *info = calloc(1, sizeof(*info) + sizeof(names));
        struct heartbeat_slot slot = {.info = info};
        struct process process = {.slot = &slot};

        ck_assert_ptr_nonnull(info);
        memcpy(info->queues, names, sizeof(names));
        web_start("framework=celery\n");
        server_do("LPUSH celery x x x x");
        run_until(broker_is_up());
        ck_assert_ptr_null(first_queue());
        struct worker *worker = fleet_add_worker(
                web(), &(struct worker){.index = 1, .state = WORKER_ACTIVE, .handle = &process});
        ck_assert_ptr_nonnull(worker);
        const struct queue *queue = first_queue();
        ck_assert_ptr_nonnull(queue);
        ck_assert_uint_eq(web()->queue_link->queues->n, 2);
        ck_assert_str_eq(queue->name, "celery");
        ck_assert_uint_eq(queue->size, 4);
        ck_assert(!queue->latency_known && queue[1].latency_known && queue[1].latency == 0);
        /* Two jobs in twenty seconds. */
        usec_t now = clock_now(CLOCK_MONOTONIC);
        latency_count(&web()->work, 0, usec_sub(now, 20 * USEC_PER_SEC));
        latency_count(&web()->work, 2, now);
        queue = first_queue();
        ck_assert(queue->latency_known);
        ck_assert_uint_ge(queue->latency, 40 * USEC_PER_SEC);
        ck_assert_uint_lt(queue->latency, 80 * USEC_PER_SEC);
        /* The worker is not a child of this process. */
        worker->state = WORKER_GONE;
        worker->handle = NULL;
        free(info);
}

TEST(what_a_reload_has_added_was_not_read_yet)
{
        web_start("");
        golden_expect("queues", "what a reload has added was not read yet",
                      error_shown(queue_reading_error(web()->link)));
}

REDIS_RUNTIME_MAIN("queue_reading", redis_runtime_setup, redis_runtime_teardown)
