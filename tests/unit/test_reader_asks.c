/* SPDX-License-Identifier: MIT */
/* Does a server answer about heartbeats, queues, jobs and itself, and also when it cannot? Run against a real
 * redis-server. */
#include "frameworks/resque/resque.h"
#include "frameworks/rq/rq.h"
#include "frameworks/sidekiq/format.h"
#include "local_reader.h"
#include "redis_server.h"

#define IDENTITY "host:77:0123456789ab"

static struct redis_settings settings;
static struct reader *reader;
static struct answer answered; /* the last one: what it owned is gone */
static size_t n_queues, n_jobs[2], n_identities;
static unsigned answers;

static void take(struct answer *answer, void *userdata _unused_)
{
        n_queues = answer->kind == QUERY_QUEUES && answer->status == ANSWER_OK ? answer->queues.queues->n : 0;
        for (size_t i = 0; i < ELEMENTSOF(n_jobs); i++)
                n_jobs[i] = answer->kind == QUERY_JOBS && answer->status == ANSWER_OK && i < answer->jobs.n
                                    ? answer->jobs.lists[i].n_jobs
                                    : 0;
        n_identities = answer->kind == QUERY_SCAN && answer->status == ANSWER_OK ? answer->scan.n : 0;
        answered = *answer;
        answers++;
}

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
        settings = (struct redis_settings){
                .url = server_url,
                .timeout = SERVER_PATIENCE,
        };
        answers = 0;
        reader = local_reader_up(&settings, sidekiq_traits.id);
}

static void teardown(void)
{
        reader = reader_free(reader);
        server_kill();
        loop_end();
}

static void send_query(enum query_kind kind, const struct field *texts, size_t n_texts)
{
        const struct query query = {.kind = kind, .texts = texts, .n_texts = n_texts};

        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
}

static void ask(enum query_kind kind, const struct field *texts, size_t n_texts)
{
        unsigned before = answers;

        send_query(kind, texts, n_texts);
        run_until(answers > before);
}

static void diagnose(void)
{
        ask(QUERY_DIAGNOSIS, NULL, 0);
        ck_assert_int_eq(answered.status, ANSWER_OK);
}

TEST(a_server_is_asked_about_itself)
{
        server_do("CONFIG SET maxmemory-policy allkeys-lru maxmemory 100mb");
        diagnose();
        ck_assert(answered.diagnosis.redis.has_info && answered.diagnosis.redis.has_limit);
        ck_assert(!answered.diagnosis.redis.is_appending);
        ck_assert_str_eq(answered.diagnosis.redis.policy, "allkeys-lru");
        ck_assert(answered.diagnosis.redis.has_save);
}

TEST(what_a_server_refuses_is_quoted)
{
        server_do("ACL SETUSER default -info -config|get");
        diagnose();
        ck_assert(!answered.diagnosis.redis.has_info && !answered.diagnosis.redis.has_save);
        ck_assert_ptr_nonnull(strstr(quoted_reveal(&answered.diagnosis.redis.info_error), "NOPERM"));
        ck_assert_ptr_nonnull(strstr(quoted_reveal(&answered.diagnosis.redis.config_error), "NOPERM"));
}

TEST(queues_are_read_one_reading_at_a_time)
{
        server_do("SADD queues mail low");
        send_query(QUERY_QUEUES, NULL, 0);
        send_query(QUERY_QUEUES, NULL, 0);
        run_until(answers == 1);
        ck_assert_int_eq(answered.status, ANSWER_REFUSED);
        run_until(answers == 2);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert_uint_eq(n_queues, 2);
}

/* A reading of named queues does not wait for one of all. */
TEST(named_queues_are_read_besides)
{
        static const char names[] = "mail\0low\0odd";
        const struct field text = {.text = names, .len = sizeof(names)};

        send_query(QUERY_QUEUES, NULL, 0);
        send_query(QUERY_QUEUES, &text, 1);
        run_until(answers == 2);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert_uint_eq(n_queues + answered.queues.done_known, 3 + 1);
}

TEST(named_queues_have_a_bound)
{
        enum { NAMES = QUEUES_READ_MAX + 10 };
        static char names[3 * NAMES + QUEUE_NAME_MAX + 4];
        char *at = names;

        at += sprintf(at, "%0*d", QUEUE_NAME_MAX + 1, 0) + 1;
        for (unsigned i = 0; i < NAMES; i++)
                at += sprintf(at, "%c%c", 'a' + i % 26, 'a' + i / 26 % 26) + 1;
        const struct field text = {.text = names, .len = (size_t)(at - names) + 1};
        ask(QUERY_QUEUES, &text, 1);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert_uint_eq(n_queues, QUEUES_READ_MAX);
}

/* Returns how many identities all pages have. */
static size_t scan(struct field *texts, size_t n_texts)
{
        static char cursor[ANSWER_CURSOR_MAX];
        size_t n = 0;

        cursor[0] = '\0';
        do {
                texts[0] = (struct field)QUERY_TEXT(cursor);
                ask(QUERY_SCAN, texts, n_texts);
                ck_assert_int_eq(answered.status, ANSWER_OK);
                n += n_identities;
                memcpy(cursor, answered.scan.cursor, sizeof(cursor));
        } while (cursor[0] != '\0');
        return n;
}

/* The last identities that workers can have, and the first ones that none has. */
TEST(identities_of_other_hosts_and_beyond_the_bounds_are_left_out)
{
        static char host[ANSWER_HOST_MAX + 2];
        struct field texts[] = {QUERY_TEXT(""), QUERY_TEXT("host")};

        memset(host, 'h', sizeof(host) - 1);
        for (unsigned i = 0; i < 100; i++)
                server_do("SADD processes host:%u:0123456789ab other:%u:0123456789ab host:1:%u:0123456789ab",
                          i + 1, i + 1, i + 1);
        server_do("SADD processes %s:1:0123456789ab %s:1:0123456789ab host:0:0123456789ab host:1:x", host,
                  host + 1);
        ck_assert_uint_eq(scan(texts, 2), 100);
        ck_assert_uint_eq(scan(texts, 1), 301);
}

TEST(a_framework_without_lists_is_refused)
{
        const struct field identity = QUERY_TEXT(IDENTITY);

        reader = reader_free(reader);
        reader = local_reader_up(&settings, rq_traits.id);
        ask(QUERY_JOBS, &identity, 1);
        ck_assert_int_eq(answered.status, ANSWER_REFUSED);
        ask(QUERY_QUEUES, NULL, 0);
        ck_assert_int_eq(answered.status, ANSWER_OK);
}

static const struct answer_heartbeat *ask_heartbeat_of(const char *identity)
{
        const struct field text = QUERY_TEXT(identity);

        ask(QUERY_HEARTBEAT, &text, 1);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        return &answered.heartbeat;
}

TEST(a_heartbeat_is_read)
{
        server_do("HSET " IDENTITY " busy 2 beat 1795238801.5 quiet false rss 29604");
        const struct answer_heartbeat *answer = ask_heartbeat_of(IDENTITY);
        ck_assert(answer->found);
        ck_assert_uint_eq(answer->heartbeat.busy, 2);
        ck_assert_uint_eq(answer->heartbeat.sent_usec, 1795238801500000);
        ck_assert_uint_eq(answer->heartbeat.rss_bytes, (uint64_t)29604 * 1024);
        ck_assert_uint_gt(reader_rtt_usec(reader), 0);
}

TEST(an_identity_without_a_heartbeat_is_not_found)
{
        ck_assert(!ask_heartbeat_of(IDENTITY)->found);
        server_do("SET " IDENTITY " text");
        ck_assert(!ask_heartbeat_of(IDENTITY)->found);
}

static const struct worker_outcomes *ask_outcomes(const char *identity, bool outcomes)
{
        const struct field text = QUERY_TEXT(identity);
        const struct query query = {
                .kind = QUERY_HEARTBEAT, .numbers = {0, 0, outcomes}, .texts = &text, .n_texts = 1};
        unsigned before = answers;

        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
        run_until(answers > before);
        ck_assert(answered.status == ANSWER_OK && answered.heartbeat.found);
        return &answered.heartbeat.heartbeat.outcomes;
}

TEST(outcomes_are_part_of_a_heartbeat_of_sidekiq)
{
        server_do("HSET " IDENTITY " busy 1 beat 1795238801.5 quiet false");
        ck_assert(!ask_outcomes(IDENTITY, true)->known);
        server_do("HSET " IDENTITY " sqmgr_processed 20 sqmgr_failed 7 sqmgr_failed_class FailJob "
                  "sqmgr_failed_class_count 6");
        const struct worker_outcomes *outcomes = ask_outcomes(IDENTITY, false);
        ck_assert(outcomes->known && outcomes->processed == 20 && outcomes->failed == 7);
        ck_assert_str_eq(outcomes->class, "FailJob");
        ck_assert_uint_eq(outcomes->class_failed, 6);
}

TEST(outcomes_of_resque_are_read_on_demand)
{
        reader = reader_free(reader);
        reader = local_reader_up(&settings, resque_traits.id);
        server_do("HSET resque:workers:heartbeat host:77:a 2026-11-22T10:45:09Z");
        server_do("MSET resque:stat:processed:host:77:a 20 resque:stat:failed:host:77:a 7");
        ck_assert(!ask_outcomes("host:77:a", false)->known);
        const struct worker_outcomes *outcomes = ask_outcomes("host:77:a", true);
        ck_assert(outcomes->known && outcomes->processed == 20 && outcomes->failed == 7);
        /* The heartbeat counts without them. */
        server_do("ACL SETUSER default -mget");
        ck_assert(!ask_outcomes("host:77:a", true)->known);
        server_do("ACL SETUSER default +mget");
        /* A query in progress ends with the server. */
        const struct field text = QUERY_TEXT("host:77:a");
        const struct query query = {
                .kind = QUERY_HEARTBEAT, .numbers = {0, 0, 1}, .texts = &text, .n_texts = 1};
        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
}

static void put_jobs(size_t size)
{
        _cleanup_free_ char *filler = calloc(1, size + 1);

        ck_assert_ptr_nonnull(filler);
        memset(filler, 'x', size);
        for (unsigned i = 0; i < 4; i++)
                server_do("HSET " IDENTITY ":work t%u {\"queue\":\"q\",\"payload\":{\"class\":\"C\",\"jid\":"
                          "\"%u\",\"args\":[\"%s\"]}}",
                          i, i, filler);
}

TEST(the_list_that_can_be_read_is_and_the_other_is_reported)
{
        const struct field identities[] = {QUERY_TEXT(IDENTITY), QUERY_TEXT("other:1:a")};

        put_jobs(10);
        server_do("SET other:1:a:work x");
        ask(QUERY_JOBS, identities, 2);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert_ptr_nonnull(strstr(quoted_reveal(&answered.error.quoted), "WRONGTYPE"));
        ck_assert_uint_eq(n_jobs[0], 4);
        ck_assert_uint_eq(n_jobs[1], 0);
}

/* The decoding of large jobs holds up no other answer. */
TEST(others_are_answered_while_jobs_are_decoded)
{
        const struct field identity = QUERY_TEXT(IDENTITY);
        const long long before = server_calls("hgetall");

        put_jobs(200000);
        send_query(QUERY_JOBS, &identity, 1);
        run_until(server_calls("hgetall") > before);
        send_query(QUERY_SIGNAL, NULL, 0);
        run_until(answers == 1);
        ck_assert_int_eq(answered.kind, QUERY_SIGNAL);
        run_until(answers == 2);
        ck_assert_uint_eq(n_jobs[0], 4);
}

TEST(one_that_ends_while_it_decodes_leaves_nothing)
{
        const struct field identity = QUERY_TEXT(IDENTITY);
        const long long before = server_calls("hgetall");

        put_jobs(200000);
        send_query(QUERY_JOBS, &identity, 1);
        send_query(QUERY_QUEUES, NULL, 0);
        run_until(server_calls("hgetall") > before);
        reader = reader_free(reader);
        ck_assert_uint_eq(answers, 2);
        ck_assert_int_eq(answered.status, ANSWER_LOST);
}

TEST_MAIN("reader_asks", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
