/* SPDX-License-Identifier: MIT */
/* Is a job of a dead process put back once, counted and parked, and never lost by what goes wrong? Run
 * against a real redis-server. */
#include "frameworks/sidekiq/job.h"
#include "frameworks/sidekiq/requeue.h"
#include "golden.h"
#include "redis_server.h"

#define IDENTITY "host:1:000000000001"
#define PAYLOAD  "{\"class\":\"Sleep\",\"jid\":\"8d42\",\"args\":[\"a b\"]}"
#define ENTRY    "{\"queue\":\"low\",\"payload\":" PAYLOAD ",\"run_at\":1}"

static struct redis *redis, *other;
static struct fleet_settings fleet;
static struct job_list list;

struct reported {
        unsigned n;
        enum rescue_outcome outcome;
        unsigned times;
        char error[256];
};
static struct reported reported, other_reported;
static struct requeue *under_way; /* what was begun last */

static void on_done(enum rescue_outcome outcome, unsigned times, const char *error, void *userdata)
{
        struct reported *to = userdata;

        to->n++;
        to->outcome = outcome;
        to->times = times;
        snprintf(to->error, sizeof(to->error), "%s", error ?: "");
}

static void setup(void)
{
        const struct field thread = {.text = "t1", .len = 2}, entry = {.text = ENTRY, .len = strlen(ENTRY)};

        loop_start();
        server_start(0, NULL, NULL);
        fleet = (struct fleet_settings){.rescue_jobs = RESCUE_JOBS_REQUEUE, .rescue_limit = 2};
        reported = other_reported = (struct reported){0};
        size_t bytes = SIZE_MAX;
        ck_assert_int_eq(job_list_add(&list, false, &thread, &entry), 0);
        ck_assert_int_eq(job_list_decode(&list, sidekiq_job_decode, &bytes), 0);
        redis = server_connect(SERVER_PATIENCE);
        other = server_connect(SERVER_PATIENCE);
}

static void teardown(void)
{
        job_list_clear(&list);
        redis = redis_free(redis);
        other = redis_free(other);
        loop_end();
}

static void begin(const char *key)
{
        server_do("HSET %s t1 %s", key, list.jobs[0].entry);
}

static int requeue(struct redis *at, const char *namespace, struct reported *to)
{
        const struct requeue_request request = {
                .redis = at,
                .namespace = namespace,
                .identity = IDENTITY,
                .job = &list.jobs[0],
                .settings = &fleet,
                .why = "was killed",
                .realtime = 1500 * USEC_PER_MSEC,
        };

        return sidekiq_requeue.begin(&request, on_done, to, &under_way);
}

static void try(const char *namespace)
{
        unsigned before = reported.n;

        ck_assert_int_eq(requeue(redis, namespace, &reported), 0);
        run_until(reported.n > before);
}

static long long number(const char *command, const char *key)
{
        redisReply *reply = server_ask("%s %s", command, key);

        ck_assert_int_eq(reply->type, REDIS_REPLY_INTEGER);
        long long value = reply->integer;
        freeReplyObject(reply);
        return value;
}

#define expect_text(text, ...)                                                                               \
        do {                                                                                                 \
                redisReply *_reply = server_ask(__VA_ARGS__);                                                \
                ck_assert_str_eq(_reply->str, text);                                                         \
                freeReplyObject(_reply);                                                                     \
        } while (0)

TEST(it_is_put_at_the_head_of_its_queue_and_taken_from_the_work_list)
{
        begin(IDENTITY ":work");
        server_do("LPUSH queue:low next");
        server_do("LPUSH queue:low last");
        try(NULL);
        ck_assert_int_eq(reported.outcome, RESCUE_REQUEUED);
        ck_assert_uint_eq(reported.times, 1);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 0);
        ck_assert_int_gt(number("TTL", "sqmgr:rescued:8d42"), 0);
        expect_text(PAYLOAD, "RPOP queue:low");
        expect_text("next", "RPOP queue:low");
        redisReply *reply = server_ask("SISMEMBER queues low");
        ck_assert_int_eq(reply->integer, 1);
        freeReplyObject(reply);
}

TEST(two_managers_put_it_back_once)
{
        begin(IDENTITY ":work");
        ck_assert_int_eq(requeue(redis, NULL, &reported), 0);
        ck_assert_int_eq(requeue(other, NULL, &other_reported), 0);
        run_until(reported.n && other_reported.n);
        ck_assert_int_ne(reported.outcome, other_reported.outcome);
        ck_assert(reported.outcome == RESCUE_LEFT || other_reported.outcome == RESCUE_LEFT);
        ck_assert(reported.outcome == RESCUE_REQUEUED || other_reported.outcome == RESCUE_REQUEUED);
        ck_assert_int_eq(number("LLEN", "queue:low"), 1);
}

TEST(another_job_of_that_thread_is_left_alone)
{
        server_do("HSET " IDENTITY ":work t1 other");
        try(NULL);
        ck_assert_int_eq(reported.outcome, RESCUE_LEFT);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

TEST(once_too_often_it_is_parked_with_the_reason)
{
        for (unsigned i = 1; i <= 2; i++) {
                begin(IDENTITY ":work");
                try(NULL);
                ck_assert_uint_eq(reported.times, i);
        }
        begin(IDENTITY ":work");
        try(NULL);
        ck_assert_int_eq(reported.outcome, RESCUE_PARKED);
        ck_assert_int_eq(number("LLEN", "queue:low"), 2);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 0);
        ck_assert_int_eq(number("EXISTS", "sqmgr:rescued:8d42"), 0);
        redisReply *reply = server_ask("ZRANGE dead 0 -1 WITHSCORES");
        ck_assert_uint_eq(reply->elements, 2);
        ck_assert_ptr_nonnull(strstr(reply->element[0]->str, "\"error_class\":\"Sqmgr::WorkerDied\""));
        const char *message = strstr(reply->element[0]->str, "\"error_message\":");
        ck_assert_ptr_nonnull(message);
        char *end = strchr(message, ',');
        ck_assert_ptr_nonnull(end);
        end[0] = '\0';
        golden_expect("events", "in the dead set", message);
        ck_assert_str_eq(reply->element[1]->str, "1.5");
        freeReplyObject(reply);
}

TEST(with_a_limit_of_none_it_is_parked_at_once)
{
        fleet.rescue_limit = 0;
        begin(IDENTITY ":work");
        try(NULL);
        ck_assert_int_eq(reported.outcome, RESCUE_PARKED);
}

TEST(to_be_reported_of_only_it_stays_where_it_is)
{
        fleet.rescue_jobs = RESCUE_JOBS_REPORT;
        begin(IDENTITY ":work");
        try(NULL);
        ck_assert_int_eq(reported.outcome, RESCUE_LOST);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

static const char *const private_keys[] = {"queue:sq|" IDENTITY "|low", IDENTITY ":super_queues",
                                           "working:queue:low:" IDENTITY};

TEST_LOOP(private_queues_are_seen, ELEMENTSOF(private_keys))
{
        begin(IDENTITY ":work");
        server_do("SET %s x", private_keys[_i]);
        try(NULL);
        ck_assert_int_eq(reported.outcome, RESCUE_PRIVATE);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

TEST(the_old_key_and_a_namespace_are_minded)
{
        list.jobs[0].old_key = true;
        begin("app:" IDENTITY ":workers");
        try("app");
        ck_assert_int_eq(reported.outcome, RESCUE_REQUEUED);
        ck_assert_int_eq(number("LLEN", "app:queue:low"), 1);
        ck_assert_int_eq(number("EXISTS", "app:sqmgr:rescued:8d42"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

TEST(a_queue_that_takes_nothing_leaves_the_job_in_the_work_list)
{
        begin(IDENTITY ":work");
        server_do("SET queue:low x");
        try(NULL);
        ck_assert_ptr_nonnull(strstr(reported.error, "WRONGTYPE"));
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "sqmgr:rescued:8d42"), 0);
        /* Nor does a full Redis. */
        server_do("DEL queue:low");
        server_do("CONFIG SET maxmemory 1");
        try(NULL);
        ck_assert_str_ne(reported.error, "");
        server_do("CONFIG SET maxmemory 0");
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        /* Tried again and again, it is put back once. */
        server_do("SET queues x");
        try(NULL);
        ck_assert_ptr_nonnull(strstr(reported.error, "WRONGTYPE"));
        ck_assert_int_eq(number("LLEN", "queue:low"), 0);
        server_do("DEL queues");
        try(NULL);
        ck_assert_int_eq(reported.outcome, RESCUE_REQUEUED);
        ck_assert_uint_eq(reported.times, 1);
}

TEST(what_an_acl_forbids_is_reported_and_costs_no_connection)
{
        begin(IDENTITY ":work");
        server_do("ACL SETUSER default -eval");
        try(NULL);
        server_do("ACL SETUSER default +eval");
        ck_assert_ptr_nonnull(strstr(reported.error, "NOPERM"));
        ck_assert_int_eq(redis_state(redis), REDIS_STATE_CONNECTED);
        ck_assert_uint_eq(redis_connection_count(redis), 1);
}

TEST(a_lost_connection_is_reported)
{
        redis = redis_free(redis);
        redis = server_connect(300 * USEC_PER_MSEC);
        begin(IDENTITY ":work");
        server_do("CLIENT PAUSE 100000 ALL");
        try(NULL);
        ck_assert_str_ne(reported.error, "");
        ck_assert_int_eq(requeue(redis, NULL, &reported), -ENOTCONN);
}

TEST(what_is_given_up_is_not_reported)
{
        begin(IDENTITY ":work");
        ck_assert_int_eq(requeue(redis, NULL, &reported), 0);
        sidekiq_requeue.free(under_way);
        /* Replies come in the order of the questions. */
        ck_assert_int_eq(requeue(redis, NULL, &other_reported), 0);
        run_until(other_reported.n);
        ck_assert_int_eq(other_reported.outcome, RESCUE_LEFT);
        ck_assert_int_eq(requeue(redis, NULL, &reported), 0);
        sidekiq_requeue.free(under_way);
        redis = redis_free(redis);
        ck_assert_uint_eq(reported.n, 0);
}

TEST_MAIN("requeue", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
