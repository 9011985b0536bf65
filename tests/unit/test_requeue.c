/* SPDX-License-Identifier: MIT */
/* Is a job of a dead process put back once, counted and parked, and never lost by what goes wrong? Run
 * against a real redis-server. */
#include "frameworks/sidekiq/format.h"
#include "golden.h"
#include "local_reader.h"
#include "quoting.h"
#include "redis_server.h"

#define IDENTITY "host:1:000000000001"
#define PAYLOAD  "{\"class\":\"Sleep\",\"jid\":\"8d42\",\"args\":[\"a b\"]}"
#define ENTRY    "{\"queue\":\"low\",\"payload\":" PAYLOAD ",\"run_at\":1}"

static struct redis_settings settings;
static struct reader *reader, *other;
static bool old_key, puts_back;
static unsigned limit;

struct reported {
        unsigned n;
        struct answer_requeue answer;
        char error[sizeof(struct error_report)];
};
static struct reported reported, other_reported;

static void on_done(struct answer *answer, void *userdata)
{
        struct reported *to = userdata;

        to->n++;
        to->answer = answer->requeue;
        snprintf(to->error, sizeof(to->error), "%s", error_shown(&answer->error));
}

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
        old_key = false;
        puts_back = true;
        limit = 2;
        reported = other_reported = (struct reported){0};
        settings = (struct redis_settings){
                .url = server_url,
                .timeout = SERVER_PATIENCE,
        };
        reader = local_reader_up(&settings, sidekiq_traits.id);
}

static void teardown(void)
{
        reader = reader_free(reader);
        other = reader_free(other);
        loop_end();
}

static void begin(const char *key)
{
        server_do("HSET %s t1 %s", key, ENTRY);
}

static int requeue_entry(struct reader *at, const char *entry, struct reported *to)
{
        const struct field texts[] = {QUERY_TEXT(IDENTITY), QUERY_TEXT("t1"), QUERY_TEXT(entry),
                                      QUERY_TEXT("was killed")};
        const struct query query = {
                .kind = QUERY_REQUEUE,
                .numbers = {old_key, puts_back, limit, 1500 * USEC_PER_MSEC},
                .texts = texts,
                .n_texts = ELEMENTSOF(texts),
        };

        return reader_ask(at, &query, on_done, to);
}

static int requeue(struct reader *at, struct reported *to)
{
        return requeue_entry(at, ENTRY, to);
}

static void try(void)
{
        unsigned before = reported.n;

        ck_assert_int_eq(requeue(reader, &reported), 0);
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
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_REQUEUED);
        ck_assert_uint_eq(reported.answer.times, 1);
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
        other = local_reader_up(&settings, sidekiq_traits.id);
        begin(IDENTITY ":work");
        ck_assert_int_eq(requeue(reader, &reported), 0);
        ck_assert_int_eq(requeue(other, &other_reported), 0);
        run_until(reported.n && other_reported.n);
        ck_assert_int_ne(reported.answer.outcome, other_reported.answer.outcome);
        ck_assert(reported.answer.outcome == RESCUE_LEFT || other_reported.answer.outcome == RESCUE_LEFT);
        ck_assert(reported.answer.outcome == RESCUE_REQUEUED ||
                  other_reported.answer.outcome == RESCUE_REQUEUED);
        ck_assert_int_eq(number("LLEN", "queue:low"), 1);
}

TEST(another_job_of_that_thread_is_left_alone)
{
        server_do("HSET " IDENTITY ":work t1 other");
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_LEFT);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

TEST(once_too_often_it_is_parked_with_the_reason)
{
        for (unsigned i = 1; i <= 2; i++) {
                begin(IDENTITY ":work");
                try();
                ck_assert_uint_eq(reported.answer.times, i);
        }
        begin(IDENTITY ":work");
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_PARKED);
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
        limit = 0;
        begin(IDENTITY ":work");
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_PARKED);
}

TEST(to_be_reported_of_only_it_stays_where_it_is)
{
        puts_back = false;
        begin(IDENTITY ":work");
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_LOST);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

static const char *const private_keys[] = {"queue:sq|" IDENTITY "|low", IDENTITY ":super_queues",
                                           "working:queue:low:" IDENTITY};

TEST_LOOP(private_queues_are_seen, ELEMENTSOF(private_keys))
{
        begin(IDENTITY ":work");
        server_do("SET %s x", private_keys[_i]);
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_PRIVATE);
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

TEST(the_old_key_and_a_namespace_are_minded)
{
        static char namespace[] = "app";

        reader_free(reader);
        settings.namespace = namespace;
        reader = local_reader_up(&settings, sidekiq_traits.id);
        old_key = true;
        begin("app:" IDENTITY ":workers");
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_REQUEUED);
        ck_assert_int_eq(number("LLEN", "app:queue:low"), 1);
        ck_assert_int_eq(number("EXISTS", "app:sqmgr:rescued:8d42"), 1);
        ck_assert_int_eq(number("EXISTS", "queue:low"), 0);
}

TEST(a_queue_that_takes_nothing_leaves_the_job_in_the_work_list)
{
        begin(IDENTITY ":work");
        server_do("SET queue:low x");
        try();
        ck_assert_ptr_nonnull(strstr(reported.error, "WRONGTYPE"));
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        ck_assert_int_eq(number("EXISTS", "sqmgr:rescued:8d42"), 0);
        /* Nor does a full Redis. */
        server_do("DEL queue:low");
        server_do("CONFIG SET maxmemory 1");
        try();
        ck_assert_str_ne(reported.error, "");
        server_do("CONFIG SET maxmemory 0");
        ck_assert_int_eq(number("EXISTS", IDENTITY ":work"), 1);
        /* Tried again and again, it is put back once. */
        server_do("SET queues x");
        try();
        ck_assert_ptr_nonnull(strstr(reported.error, "WRONGTYPE"));
        ck_assert_int_eq(number("LLEN", "queue:low"), 0);
        server_do("DEL queues");
        try();
        ck_assert_int_eq(reported.answer.outcome, RESCUE_REQUEUED);
        ck_assert_uint_eq(reported.answer.times, 1);
}

TEST(what_an_acl_forbids_is_reported_and_costs_no_connection)
{
        begin(IDENTITY ":work");
        server_do("ACL SETUSER default -eval");
        try();
        server_do("ACL SETUSER default +eval");
        ck_assert_ptr_nonnull(strstr(reported.error, "NOPERM"));
        ck_assert_int_eq(reader_state(reader), READER_STATE_CONNECTED);
        ck_assert_uint_eq(reader_connection_count(reader), 1);
}

TEST(a_lost_connection_is_reported)
{
        reader_free(reader);
        settings.timeout = 300 * USEC_PER_MSEC;
        reader = local_reader_up(&settings, sidekiq_traits.id);
        begin(IDENTITY ":work");
        server_do("CLIENT PAUSE 100000 ALL");
        try();
        ck_assert_str_ne(reported.error, "");
        ck_assert_int_eq(requeue(reader, &reported), -ENOTCONN);
}

TEST(an_entry_that_is_no_job_is_refused)
{
        ck_assert_int_eq(requeue_entry(reader, "{\"queue\":1}", &reported), 0);
        run_until(reported.n);
        ck_assert_str_ne(reported.error, "");
}

TEST(what_is_given_up_is_not_reported)
{
        begin(IDENTITY ":work");
        ck_assert_int_eq(requeue(reader, &reported), 0);
        reader_forget(reader, &reported);
        /* Replies come in the order of the questions. */
        ck_assert_int_eq(requeue(reader, &other_reported), 0);
        run_until(other_reported.n);
        ck_assert_int_eq(other_reported.answer.outcome, RESCUE_LEFT);
        ck_assert_int_eq(requeue(reader, &reported), 0);
        reader_forget(reader, &reported);
        reader = reader_free(reader);
        ck_assert_uint_eq(reported.n, 0);
}

TEST_MAIN("requeue", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
