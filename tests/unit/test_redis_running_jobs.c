/* SPDX-License-Identifier: MIT */
/* Are work lists read in one round trip, and is a reading that fails told, and one that is given up not? Run
 * against a real redis-server. */
#include "frameworks/redis_format.h"
#include "frameworks/redis_running_jobs.h"
#include "frameworks/sidekiq/format.h"
#include "quoting.h"
#include "redis_server.h"

static struct redis *redis;
static unsigned n_done;
static size_t n_jobs[2], n_unreadable[2], n_oversized[2];
static bool has_entry, has_payload; /* the first job of the last list */
static bool with_entries;
static char last_error[256], last_class[32];
static const char *const identities[] = {"host:1:000000000001", "host:2:000000000002"};

static void on_done(struct job_list *lists, const struct error_report *error, void *userdata)
{
        ck_assert_ptr_eq(userdata, n_jobs);
        n_done++;
        snprintf(last_error, sizeof(last_error), "%s", error_shown(error));
        for (size_t i = 0; i < 2; i++) {
                n_jobs[i] = lists[i].n_jobs;
                n_unreadable[i] = lists[i].n_unreadable;
                n_oversized[i] = lists[i].n_oversized;
                ck_assert_ptr_null(lists[i].space);
                if (lists[i].n_jobs == 0)
                        continue;
                snprintf(last_class, sizeof(last_class), "%s", lists[i].jobs[0].class);
                has_entry = lists[i].jobs[0].entry;
                has_payload = lists[i].jobs[0].payload;
        }
        job_lists_free(lists, 2);
}

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        n_done = 0;
        with_entries = false;
        redis = server_connect(SERVER_PATIENCE);
}

static void teardown(void)
{
        redis = redis_free(redis);
        loop_end();
}

static void put(const char *prefix, unsigned i, const char *suffix, const char *class)
{
        server_do("HSET %s%s:%s t1 {\"queue\":\"q\",\"payload\":{\"class\":\"%s\",\"jid\":\"1\"}}", prefix,
                  identities[i], suffix, class);
        server_do("HSET %s%s:%s t2 garbage", prefix, identities[i], suffix);
}

static int read_all(const char *namespace, struct redis_running_jobs **ret)
{
        const struct running_jobs_request request = {
                .event = event,
                .redis = redis,
                .namespace = namespace,
                .identities = identities,
                .n = 2,
                .with_entries = with_entries,
        };

        return redis_running_jobs_read(sidekiq_redis_format.running_jobs, &request, on_done, n_jobs, ret);
}

TEST(lists_of_both_names_are_read)
{
        struct redis_running_jobs *running_jobs;

        put("", 0, "work", "New");
        put("", 1, "workers", "Old");
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        run_until(n_done);
        ck_assert_str_eq(last_error, "");
        ck_assert_uint_eq(n_jobs[0], 1);
        ck_assert_uint_eq(n_jobs[1], 1);
        ck_assert_uint_eq(n_unreadable[0], 1);
        ck_assert_uint_eq(n_unreadable[1], 1);
        ck_assert_str_eq(last_class, "Old");
        ck_assert(!has_entry && !has_payload);
        with_entries = true;
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        run_until(n_done == 2);
        ck_assert(has_entry && !has_payload);
}

TEST(a_namespace_is_before_the_keys)
{
        struct redis_running_jobs *running_jobs;

        put("app:", 0, "work", "Mine");
        put("", 1, "work", "Other");
        ck_assert_int_eq(read_all("app", &running_jobs), 0);
        run_until(n_done);
        ck_assert_uint_eq(n_jobs[0], 1);
        ck_assert_uint_eq(n_jobs[1], 0);
}

TEST(an_error_of_the_server_is_reported_and_hides_no_other_list)
{
        struct redis_running_jobs *running_jobs;

        put("", 0, "work", "New");
        server_do("SET %s:work x", identities[1]);
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        run_until(n_done);
        ck_assert_ptr_nonnull(strstr(last_error, "WRONGTYPE"));
        ck_assert_uint_eq(n_jobs[0], 1);
        ck_assert_uint_eq(n_jobs[1], 0);
}

TEST(a_server_that_hangs_is_reported_and_then_refused)
{
        struct redis_running_jobs *running_jobs;

        redis = redis_free(redis);
        redis = server_connect(300 * USEC_PER_MSEC);
        server_do("CLIENT PAUSE 100000 ALL");
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        run_until(n_done);
        ck_assert_str_ne(last_error, "");
        ck_assert_int_eq(read_all(NULL, &running_jobs), -ENOTCONN);
        ck_assert_uint_eq(n_done, 1);
}

TEST(what_is_given_up_is_not_reported)
{
        struct redis_running_jobs *running_jobs;

        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        redis_running_jobs_free(running_jobs);
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        run_until(n_done);
        ck_assert_uint_eq(n_done, 1);
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        redis_running_jobs_free(running_jobs);
        redis = redis_free(redis);
        ck_assert_uint_eq(n_done, 1);
}

static void on_answered(struct redis *of _unused_, const struct redisReply *reply _unused_, void *userdata)
{
        *(bool *)userdata = true;
}

static int on_timer(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        *(unsigned *)userdata = n_done;
        return 0;
}

/* Replies come in the order of their commands: when this returns the lists are there, and none is decoded. */
static struct redis_running_jobs *read_large_lists(void)
{
        static const char *const argv[] = {"PING"};
        static char large[200000];
        struct redis_running_jobs *running_jobs;
        bool answered = false;

        memset(large, 'x', sizeof(large) - 1);
        for (unsigned i = 0; i < 8; i++)
                server_do("HSET %s:work t%u {\"queue\":\"q\",\"payload\":{\"class\":\"Large\",\"jid\":\"1\","
                          "\"args\":[\"%s\"]}}",
                          identities[i / 4], i, large);
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        ck_assert_int_eq(redis_command(redis, on_answered, &answered, 1, argv, NULL), 0);
        run_until(answered);
        ck_assert_uint_eq(n_done, 0);
        return running_jobs;
}

TEST(the_loop_goes_on_while_large_jobs_are_decoded)
{
        sd_event_source *source;
        unsigned turns = 0, done_at_timer = 1;

        read_large_lists();
        ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
        ck_assert_int_ge(
                sd_event_add_time_relative(event, &source, CLOCK_MONOTONIC, 0, 1, on_timer, &done_at_timer),
                0);
        for (; n_done == 0; turns++)
                ck_assert_int_ge(sd_event_run(event, UINT64_MAX), 0);
        sd_event_source_disable_unref(source);
        /* One of 8 entries before, and the timer. */
        ck_assert_uint_ge(turns, 8);
        ck_assert_uint_eq(done_at_timer, 0);
        ck_assert_uint_eq(n_jobs[0], 4);
        ck_assert_uint_eq(n_jobs[1], 4);
        ck_assert_str_eq(last_class, "Large");
}

TEST(what_is_given_up_half_decoded_is_not_reported)
{
        struct redis_running_jobs *running_jobs = read_large_lists();

        ck_assert_int_ge(sd_event_run(event, 0), 0);
        redis_running_jobs_free(running_jobs);
        read_large_lists();
        run_until(n_done);
        ck_assert_uint_eq(n_done, 1);
}

/* However many jobs the lists have, together they take a bounded part of memory. */
TEST(all_lists_have_a_bound_together)
{
        enum { LARGE = 200000, JOBS = 90 };
        static char large[LARGE + 1];
        struct redis_running_jobs *running_jobs;

        static_assert((size_t)LARGE * JOBS > JOBS_BYTES_MAX && LARGE < JOB_ENTRY_MAX,
                      "the bound is that of all");
        memset(large, 'x', LARGE);
        for (unsigned i = 0; i < JOBS; i++)
                server_do("HSET %s:work t%u "
                          "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\",\"x\":\"%s\"}}",
                          identities[i % 2], i, large);
        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        run_until(n_done);
        ck_assert_uint_eq(n_jobs[0], JOBS / 2);
        ck_assert_uint_eq(n_jobs[0] + n_jobs[1], JOBS_BYTES_MAX / LARGE);
        ck_assert_uint_eq(n_jobs[1] + n_oversized[1], JOBS / 2);
}

TEST(redis_may_be_freed_meanwhile)
{
        struct redis_running_jobs *running_jobs;

        ck_assert_int_eq(read_all(NULL, &running_jobs), 0);
        redis = redis_free(redis);
        run_until(n_done);
        ck_assert_str_ne(last_error, "");
}

TEST_MAIN("works", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
