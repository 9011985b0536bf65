/* SPDX-License-Identifier: MIT */
/* Tests of the reading of queues (daemon/poll/queue_reading.h) with a real redis-server. */
#include "daemon/poll/queue_reading.h"
#include "runtime.h"

#include "redis_server.h" /* last: its variable "event" is a parameter's name above */

static void start(const char *redis_lines, const char *more)
{
        char text[1024];

        snprintf(text, sizeof(text), "[redis]\nurl=%s\n%s[fleet:web]\ncommand=/bin/true\n%s", server_url,
                 redis_lines, more);
        runtime_start(event, text);
}

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
}

static void teardown(void)
{
        server_kill(); /* which the crew would wait for, as for any child */
        runtime_end();
        loop_end();
}

static struct link *web(void)
{
        return world_fleet(runtime_world, "web")->link;
}

static bool is_up(void)
{
        return world_fleet(runtime_world, "web")->redis_up;
}

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
                done += queue_reading_tick(&runtime.links);
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        return done + queue_reading_tick(&runtime.links);
}

static long long calls(const char *command)
{
        redisReply *reply = server_ask("INFO commandstats");
        char name[48];

        ck_assert_ptr_nonnull(reply);
        snprintf(name, sizeof(name), "cmdstat_%s:calls=", command);
        const char *line = strstr(reply->str, name);
        long long n = line ? strtoll(line + strlen(name), NULL, 10) : 0;
        freeReplyObject(reply);
        return n;
}

TEST(what_was_read_stands_in_the_link)
{
        start("", "");
        put("mail", 2);
        run_until(is_up());
        queue_reading_begin(&runtime.links);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_nonnull(web()->queues);
        ck_assert_uint_eq(web()->queues->n, 1);
        ck_assert_str_eq(web()->queues->list[0].name, "mail");
        ck_assert_uint_eq(web()->queues->list[0].size, 2);
        ck_assert_str_eq(queue_reading_error(web()), "");
}

TEST(one_reading_serves_whoever_asks_while_it_lasts)
{
        start("", "");
        put("mail", 1);
        run_until(is_up());
        queue_reading_begin(&runtime.links);
        ck_assert_uint_eq(read_all(), 1);
        long long once = calls("smembers");
        ck_assert_int_gt(once, 0);
        queue_reading_begin(&runtime.links);
        queue_reading_begin(&runtime.links);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_int_eq(calls("smembers"), 2 * once);
}

TEST(without_a_limit_nobody_looks)
{
        start("", "");
        run_until(is_up());
        queue_reading_poll(&runtime.links);
        ck_assert(!runtime.links.reads_queues);
}

TEST(a_queue_over_its_limit_is_reported_once_and_once_more_when_it_is_back)
{
        start("queue_warn_size=2\n", "");
        put("mail", 3);
        run_until(is_up());
        for (unsigned i = 0; i < 2; i++) {
                queue_reading_poll(&runtime.links);
                ck_assert_uint_eq(read_all(), 1);
                ck_assert_uint_eq(runtime_world->n_events, 1);
        }
        ck_assert(runtime_reported("queue 'mail' holds 3 jobs, over queue_warn_size 2"));
        ck_assert_int_eq(runtime_world->events[0].kind, EVENT_QUEUE_OVER);
        server_do("DEL queue:mail");
        queue_reading_poll(&runtime.links);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_uint_eq(runtime_world->n_events, 2);
        ck_assert_int_eq(runtime_world->events[1].kind, EVENT_QUEUE_BACK);
}

TEST(a_redis_that_is_away_says_so_and_holds_up_no_other)
{
        start("", "[fleet:far]\ncommand=/bin/true\nredis_url=unix:///nonexistent/s\n");
        put("mail", 1);
        const struct link *far = world_fleet(runtime_world, "far")->link;
        run_until(is_up() && redis_error(far->redis));
        queue_reading_begin(&runtime.links);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_nonnull(web()->queues);
        ck_assert_ptr_null(far->queues);
        ck_assert_str_eq(queue_reading_error(far), redis_error(far->redis));
}

TEST(what_was_over_stays_so_while_nothing_can_be_read)
{
        start("queue_warn_size=2\n", "");
        put("mail", 3);
        run_until(is_up());
        queue_reading_poll(&runtime.links);
        (void)read_all();
        ck_assert_uint_eq(runtime_world->n_events, 1);
        server_kill();
        run_until(!is_up());
        queue_reading_poll(&runtime.links);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_str_ne(queue_reading_error(web()), "");
        for (size_t i = 0; i < runtime_world->n_events; i++)
                ck_assert_int_ne(runtime_world->events[i].kind, EVENT_QUEUE_BACK);
}

TEST(a_server_that_refuses_is_quoted)
{
        start("", "");
        server_do("SET queues x");
        run_until(is_up());
        queue_reading_begin(&runtime.links);
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_null(web()->queues);
        ck_assert_ptr_nonnull(strstr(queue_reading_error(web()), "WRONGTYPE"));
}

TEST(a_server_that_goes_away_meanwhile_ends_the_reading)
{
        start("", "");
        run_until(is_up());
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        queue_reading_begin(&runtime.links);
        ck_assert(!queue_reading_tick(&runtime.links));
        server_kill();
        ck_assert_uint_eq(read_all(), 1);
        ck_assert_ptr_null(web()->queues);
        ck_assert_str_ne(queue_reading_error(web()), "");
}

TEST(what_a_reload_has_added_was_not_read_yet)
{
        start("", "");
        ck_assert_str_eq(queue_reading_error(web()), "it was not read yet");
}

TEST_MAIN("queue_reading", .each = {setup, teardown},
          .once = {server_directory_make, server_directory_remove}, .is_missing = server_is_missing)
