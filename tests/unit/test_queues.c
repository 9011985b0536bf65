/* SPDX-License-Identifier: MIT */
/* Tests of settings/limits.h, model/queues.h and, against a real Redis, frameworks/queue_reader.h. */
#include "frameworks/framework.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "frameworks/resque/resque.h"
#include "frameworks/rq/rq.h"
#include "frameworks/sidekiq/job.h"
#include "golden.h"
#include "io/clock.h"
#include "quoting.h"
#include "redis_server.h"
#include "settings/limits.h"

struct limit_text {
        const char *text;
        enum limits_unit unit;
};

static const struct limit_text good_limits[] = {
        {"none", LIMITS_COUNT},       {"1000", LIMITS_COUNT},   {"1000 low=50000  mail=none", LIMITS_COUNT},
        {"low=5 1000", LIMITS_COUNT}, {"low=5", LIMITS_COUNT},  {"5min low=2h", LIMITS_DURATION},
        {"1h30min", LIMITS_DURATION}, {"30s", LIMITS_DURATION}, {"default=30s mailers=5min", LIMITS_DURATION},
};

TEST_LOOP(limits_are_accepted, ELEMENTSOF(good_limits))
{
        char why[256];

        ck_assert_int_eq(limits_check(good_limits[_i].text, good_limits[_i].unit, why, sizeof(why)), 0);
}

static const struct limit_text bad_limits[] = {
        {"5 6", LIMITS_COUNT},
        {"low=5 mail=6 low=none", LIMITS_COUNT},
        {"low=", LIMITS_COUNT},
        {"=5", LIMITS_COUNT},
        {"0", LIMITS_COUNT},
        {"1k", LIMITS_COUNT},
        {"60", LIMITS_DURATION},
        {"low=0s", LIMITS_DURATION},
        {"30s 60s", LIMITS_DURATION},
        {"mailers:5min", LIMITS_DURATION},
        {"a=5s a=6s", LIMITS_DURATION},
};

TEST(limits_are_checked)
{
        char why[256];

        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(bad_limits); i++) {
                ck_assert_int_lt(limits_check(bad_limits[i].text, bad_limits[i].unit, why, sizeof(why)), 0);
                golden_add(bad_limits[i].text, why);
        }
        golden_end("settings-errors", "limits");
}

TEST(a_limit_of_its_own_goes_before_that_of_all)
{
        static const char text[] = "low=50000 1000 mail=none a=b=7";

        ck_assert_uint_eq(limits_find(text, LIMITS_COUNT, "default"), 1000);
        ck_assert_uint_eq(limits_find(text, LIMITS_COUNT, "low"), 50000);
        ck_assert_uint_eq(limits_find(text, LIMITS_COUNT, "mail"), 0);
        ck_assert_uint_eq(limits_find(text, LIMITS_COUNT, "a=b"), 7);
        ck_assert_uint_eq(limits_find("low=5", LIMITS_COUNT, "default"), 0);
        ck_assert_uint_eq(limits_find("2s low=1min", LIMITS_DURATION, "low"), 60 * USEC_PER_SEC);
        ck_assert_uint_eq(limits_find("30s a:b=1min c=none", LIMITS_DURATION, "a:b"), 60 * USEC_PER_SEC);
        ck_assert_uint_eq(limits_find("30s a:b=1min c=none", LIMITS_DURATION, "a"), 30 * USEC_PER_SEC);
        ck_assert_uint_eq(limits_find("30s a:b=1min c=none", LIMITS_DURATION, "c"), 0);
        ck_assert(limits_any(text, LIMITS_COUNT));
        ck_assert(limits_any("none low=5", LIMITS_COUNT));
        ck_assert(!limits_any("none low=none", LIMITS_COUNT));
}

static const struct {
        const char *payload;
        usec_t at; /* 0: not told */
} stamps[] = {
        {"{\"jid\":\"a\",\"enqueued_at\":1795238801.5}", 1795238801500000},
        {"{\"enqueued_at\":1795238801}", 1795238801000000},
        {"{\"enqueued_at\":1795238801500}", 1795238801500000},
        {"{\"args\":[123456789012345678901234567890,\"\\u0000\"],\"enqueued_at\":1795238801.5}",
         1795238801500000},
        /* By 8.1.7. */
        {"{\"retry\":false,\"queue\":\"later\",\"args\":[1],\"class\":\"Sleep\","
         "\"jid\":\"0ee77f07241c20f5efe83638\",\"created_at\":1795261824364,\"enqueued_at\":1795261824364}",
         1795261824364000},
        {"{\"enqueued_at\":\"1795238801\"}", 0},
        {"{\"enqueued_at\":0}", 0},
        {"{\"enqueued_at\":-5}", 0},
        {"{\"enqueued_at\":1e300}", 0},
        {"{\"jid\":\"a\"}", 0},
        {"[1795238801]", 0},
        {"no JSON", 0},
        {"", 0},
};

TEST_LOOP(stamps_of_seconds_and_of_milliseconds_are_reported_apart, ELEMENTSOF(stamps))
{
        char class[JOB_CLASS_MAX];
        usec_t at = 0;

        ck_assert_int_eq(sidekiq_job_head(stamps[_i].payload, strlen(stamps[_i].payload), &at, class),
                         stamps[_i].at > 0);
        ck_assert_uint_eq(at, stamps[_i].at);
}

static char warn_size[] = "10 low=100", warn_latency[] = "1min low=none";
static struct redis_settings limits = {.queue_warn_size = warn_size, .queue_warn_latency = warn_latency};

static void add(struct queues *queues, const char *name, uint64_t size, usec_t latency)
{
        struct queue *queue = queues_add(queues, name, strlen(name));

        ck_assert_ptr_nonnull(queue);
        queue->size = size;
        queue->latency_known = true;
        queue->latency = latency;
}

static struct queues *make_queues(void)
{
        struct queues *queues = calloc(1, sizeof(*queues));

        ck_assert_ptr_nonnull(queues);
        return queues;
}

TEST(a_queue_is_reported_of_once_when_it_goes_over_and_once_when_it_is_back)
{
        char over[QUEUE_WATCH_TEXT_MAX], back[QUEUE_WATCH_TEXT_MAX];
        struct queue_watch watch = {0};
        struct queues *queues = make_queues(), *none = make_queues();

        add(queues, "default", 11, 61 * USEC_PER_SEC);
        add(queues, "low", 100, USEC_PER_HOUR);
        add(queues, "mail", 10, 60 * USEC_PER_SEC);
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        golden_expect("queues", "a queue is reported of once when it goes over and once when it is back",
                      over);
        ck_assert_str_eq(back, "");

        queues->list[0].latency = 0;
        queues->list[1].size = 101;
        queues->list[1].paused = true;
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        golden_expect("queues", "a queue is reported of once when it goes over and once when it is back, 2",
                      over);
        ck_assert_str_eq(back, "");

        queues->list[0].size = 10;
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        ck_assert_str_eq(over, "");
        ck_assert_str_eq(back, "queue 'default'");
        /* One that is no longer there is not over its limit. */
        ck_assert_int_eq(queue_watch_judge(&watch, none, &limits, over, back), 0);
        ck_assert_str_eq(back, "queue 'low'");
        ck_assert_int_eq(queue_watch_judge(&watch, none, &limits, over, back), 0);
        ck_assert_str_eq(back, "");
        queue_watch_clear(&watch);
        queues_free(queues);
        queues_free(none);
}

TEST(a_queue_is_not_back_while_its_oldest_job_is_unknown)
{
        char over[QUEUE_WATCH_TEXT_MAX], back[QUEUE_WATCH_TEXT_MAX];
        struct queue_watch watch = {0};
        struct queues *queues = make_queues();

        add(queues, "default", 5, 61 * USEC_PER_SEC);
        add(queues, "mail", 11, 0);
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        ck_assert_ptr_nonnull(strstr(over, "queue 'default' is 1min 1s behind"));
        ck_assert_ptr_nonnull(strstr(over, "queue 'mail' holds 11 jobs"));
        queues->list[0].latency = 0;
        queues->list[0].latency_known = queues->list[1].latency_known = false;
        queues->list[1].size = 10;
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
                ck_assert_str_eq(over, "");
                /* Of that one the size alone was over. */
                ck_assert_str_eq(back, i == 0 ? "queue 'mail'" : "");
        }
        queues->list[0].latency_known = true;
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        ck_assert_str_eq(back, "queue 'default'");
        /* An unknown latency is not over the limit either; an empty queue has none. */
        queues->list[0].latency_known = false;
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        ck_assert_str_eq(over, "");
        queues->list[0].latency = 61 * USEC_PER_SEC;
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        queues->list[0].size = queues->list[0].latency = 0;
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        ck_assert_str_eq(back, "queue 'default'");
        queue_watch_clear(&watch);
        queues_free(queues);
}

TEST(many_queues_are_reported_in_one_text_that_is_cut)
{
        char over[QUEUE_WATCH_TEXT_MAX], back[QUEUE_WATCH_TEXT_MAX];
        struct queue_watch watch = {0};
        struct queues *queues = make_queues();

        for (unsigned i = 0; i < 300; i++) {
                char name[200];

                memset(name, 'x', sizeof(name) - 1);
                snprintf(name + 190, sizeof(name) - 190, "%u", i);
                add(queues, name, 1000, 0);
        }
        ck_assert_int_eq(queue_watch_judge(&watch, queues, &limits, over, back), 0);
        ck_assert_uint_eq(watch.n, 300);
        ck_assert_uint_lt(strlen(over), QUEUE_WATCH_TEXT_MAX - 1);
        ck_assert_str_eq(over + strlen(over) - 5, ", ...");
        queue_watch_clear(&watch);
        queues_free(queues);
}

TEST(queues_are_watched_where_there_is_any_limit)
{
        static char none[] = "none", one[] = "none mail=5", late[] = "5min";
        const struct {
                struct redis_settings settings;
                bool wanted;
        } cases[] = {
                {{.queue_warn_size = none, .queue_warn_latency = none}, false},
                {{.queue_warn_size = one, .queue_warn_latency = none}, true},
                {{.queue_warn_size = none, .queue_warn_latency = late}, true},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                ck_assert(queue_watch_wanted(&cases[i].settings) == cases[i].wanted);
}

static struct redis *redis;
static const struct redis_format *format;
static struct queue_reader *reader;
static const char *names; /* of the queues to read, as for queue_reader_read() */
static struct queues *found;
static char failure[256];
static unsigned n_answers;

static void setup(void)
{
        loop_start();
        n_answers = 0;
        failure[0] = '\0';
        format = &sidekiq_redis_format;
        names = NULL;
        server_start(0, NULL, NULL);
        server_wait();
        redis = server_connect(SERVER_PATIENCE);
}

static void teardown(void)
{
        found = queues_free(found);
        reader = queue_reader_free(reader);
        redis = redis_free(redis);
        loop_end();
}

static void on_queues(struct queues_reading *reading, const struct error_report *error, void *userdata)
{
        ck_assert_ptr_eq(userdata, &n_answers);
        ck_assert(!reading->queues == !!error);
        n_answers++;
        found = TAKE_PTR(reading->queues);
        snprintf(failure, sizeof(failure), "%s", error_shown(error));
}

static int begin(const char *namespace)
{
        reader = queue_reader_free(reader);
        ck_assert_int_eq(queue_reader_new(redis, format->queues, namespace, on_queues, &n_answers, &reader),
                         0);
        return queue_reader_read(reader, names, false, clock_now(CLOCK_REALTIME));
}

static void read_queues(const char *namespace)
{
        found = queues_free(found);
        n_answers = 0;
        ck_assert_int_eq(begin(namespace), 0);
        ck_assert_int_eq(queue_reader_read(reader, names, false, clock_now(CLOCK_REALTIME)), -EBUSY);
        run_until(n_answers > 0);
        ck_assert_uint_eq(n_answers, 1);
}

static void expect_queues(const char *namespace, size_t n)
{
        read_queues(namespace);
        ck_assert_ptr_nonnull(found);
        ck_assert_uint_eq(found->n, n);
}

static void expect_queue(size_t i, const char *name, uint64_t size, bool paused)
{
        ck_assert_uint_gt(found->n, i);
        ck_assert_str_eq(found->list[i].name, name);
        ck_assert_uint_eq(found->list[i].size, size);
        ck_assert_int_eq(found->list[i].paused, paused);
}

TEST_FIXTURE(setup, teardown)

TEST(what_waits_is_read)
{
        usec_t now = clock_now(CLOCK_REALTIME);

        server_do("SADD queues mail default empty odd");
        server_do("SADD paused mail");
        server_do("LPUSH queue:default {\"enqueued_at\":%llu.25}",
                  (unsigned long long)(now / USEC_PER_SEC) - 100);
        server_do("LPUSH queue:default {\"enqueued_at\":%llu.5}", (unsigned long long)(now / USEC_PER_SEC));
        server_do("LPUSH queue:mail {\"enqueued_at\":%llu}",
                  (unsigned long long)(now / USEC_PER_MSEC) - 3600 * 1000);
        server_do("LPUSH queue:odd garbage");
        server_do("ZADD retry 1 a 2 b");
        server_do("ZADD schedule 1 a");
        server_do("ZADD dead 1 a 2 b 3 c");
        expect_queues("", 4);
        expect_queue(0, "default", 2, false);
        expect_queue(1, "empty", 0, false);
        expect_queue(2, "mail", 1, true);
        expect_queue(3, "odd", 1, false);
        ck_assert_uint_ge(found->list[0].latency, 98 * USEC_PER_SEC);
        ck_assert_uint_le(found->list[0].latency, 200 * USEC_PER_SEC);
        ck_assert(found->list[1].latency_known && found->list[1].latency == 0);
        ck_assert_uint_ge(found->list[2].latency, 3599 * USEC_PER_SEC);
        ck_assert_uint_le(found->list[2].latency, 3700 * USEC_PER_SEC);
        ck_assert(!found->list[3].latency_known);
        ck_assert_uint_eq(found->retry, 2);
        ck_assert_uint_eq(found->schedule, 1);
        ck_assert_uint_eq(found->dead, 3);

        server_do("SADD ns:queues own");
        server_do("LPUSH ns:queue:own x");
        expect_queues("ns", 1);
        expect_queue(0, "own", 1, false);
        ck_assert_uint_eq(found->dead, 0);
}

TEST(what_waits_for_resque_is_read)
{
        format = &resque_redis_format;
        server_do("SADD resque:queues mail default odd");
        server_do("RPUSH resque:queue:default {} {}");
        server_do("SET resque:queue:odd x");
        server_do("RPUSH resque:failed {} {} {}");
        server_do("SET resque:pause-all-workers false");
        expect_queues(NULL, 3);
        expect_queue(0, "default", 2, false);
        expect_queue(1, "mail", 0, false);
        expect_queue(2, "odd", 0, false);
        ck_assert(!found->list[0].latency_known);
        ck_assert(found->list[1].latency_known && found->list[1].latency == 0);
        ck_assert(!found->list[2].latency_known);
        ck_assert_uint_eq(found->dead, 3);

        server_do("SADD shop:queues own");
        server_do("SET shop:pause-all-workers True");
        expect_queues("shop", 1);
        expect_queue(0, "own", 0, true);
        ck_assert_uint_eq(found->dead, 0);
}

TEST(what_waits_for_rq_is_read)
{
        format = &rq_redis_format;
        server_do("SADD rq:queues rq:queue:default rq:queue:mail rq:queue: odd");
        server_do("RPUSH rq:queue:default a b");
        server_do("HSET rq:job:a enqueued_at 2026-11-22T10:45:09Z");
        server_do("ZADD rq:scheduled:default 1 c");
        server_do("ZADD rq:failed:mail 1 d 2 e");
        /* RQ knows no namespaces. */
        expect_queues("shop", 2);
        expect_queue(0, "default", 2, false);
        expect_queue(1, "mail", 0, false);
        ck_assert(found->list[0].latency_known && found->list[1].latency_known);
        ck_assert_uint_eq(found->list[1].latency, 0);
        ck_assert_uint_eq(found->schedule, 1);
        ck_assert_uint_eq(found->dead, 2);
        server_do("SET rq:suspended 1");
        server_do("DEL rq:job:a");
        read_queues(NULL);
        expect_queue(0, "default", 2, true);
        ck_assert(!found->list[0].latency_known);
}

/* A list for each priority; what else is in Redis does not count. */
TEST(what_waits_for_celery_is_read_by_name)
{
        format = &celery_redis_format;
        names = "mail\0celery\0none\0odd\0";
        server_do("LPUSH celery x x");
        server_do("LPUSH celery%s x x x", "\x06\x16"
                                          "3");
        server_do("LPUSH celery%s x", "\x06\x16"
                                      "6");
        server_do("LPUSH celery%s x", "\x06\x16"
                                      "9");
        server_do("LPUSH celery%s x", "\x06\x16"
                                      "5");
        server_do("LPUSH mail x");
        server_do("SET odd x");
        expect_queues(NULL, 4);
        expect_queue(0, "mail", 1, false);
        expect_queue(1, "celery", 7, false);
        expect_queue(2, "none", 0, false);
        expect_queue(3, "odd", 0, false);
        /* The estimate is made elsewhere. */
        ck_assert(!found->list[1].latency_known);

        server_do("LPUSH shop_mail x x");
        server_do("LPUSH shop_mail%s x", "\x06\x16"
                                         "9");
        names = "mail\0";
        expect_queues("shop_", 1);
        expect_queue(0, "mail", 3, false);
        /* The broker has no list of its queues. */
        names = NULL;
        ck_assert_int_eq(begin(NULL), -ENODATA);
}

TEST(what_waits_for_bullmq_is_read_by_name)
{
        format = &bullmq_redis_format;
        names = "mails\0more\0";
        server_do("LPUSH bull:mails:wait 3 2");
        server_do("LPUSH bull:mails:wait 1");
        server_do("HSET bull:mails:3 timestamp 1000 opts {\"delay\":60000}");
        server_do("ZADD bull:mails:prioritized 5 9");
        server_do("ZADD bull:mails:delayed 5 8");
        server_do("ZADD bull:more:failed 5 8");
        server_do("HSET bull:more:meta paused 1");
        expect_queues(NULL, 2);
        expect_queue(0, "mails", 4, false);
        expect_queue(1, "more", 0, true);
        ck_assert_uint_eq(found->schedule, 1);
        ck_assert_uint_eq(found->dead, 1);
        ck_assert(found->list[0].latency_known && found->list[1].latency_known);
        ck_assert_uint_eq(found->list[1].latency, 0);
        /* Since its creation, less the delay that the application asked for: since 61 s after 1970. */
        usec_t expected = usec_sub(clock_now(CLOCK_REALTIME), 61 * USEC_PER_SEC);
        ck_assert_uint_le(found->list[0].latency, expected);
        ck_assert_uint_gt(found->list[0].latency, usec_sub(expected, 60 * USEC_PER_SEC));
        /* Since when a job waits that was begun before is not known. */
        server_do("HSET bull:mails:3 ats 1");
        read_queues(NULL);
        ck_assert(!found->list[0].latency_known);
}

TEST(an_empty_redis_has_no_queues)
{
        expect_queues(NULL, 0);
}

TEST(a_queue_that_is_no_list_hides_no_other)
{
        server_do("SADD queues a b");
        server_do("SET queue:a x");
        server_do("LPUSH queue:b x");
        expect_queues("", 2);
        expect_queue(0, "a", 0, false);
        ck_assert(!found->list[0].latency_known);
        expect_queue(1, "b", 1, false);
}

TEST(what_redis_refuses_is_reported)
{
        server_do("SET queues x");
        read_queues("");
        ck_assert_ptr_null(found);
        ck_assert_ptr_nonnull(strstr(failure, "WRONGTYPE"));
        server_do("DEL queues");
        /* What an ACL forbids here does not end the connection, which workers need. */
        server_do("ACL SETUSER default -smembers");
        read_queues("");
        ck_assert_ptr_null(found);
        ck_assert_ptr_nonnull(strstr(failure, "NOPERM"));
        read_queues("");
        ck_assert_uint_eq(redis_connection_count(redis), 1);
}

TEST(a_redis_that_hangs_or_goes_away_ends_the_reading)
{
        redis = redis_free(redis);
        redis = server_connect(300 * USEC_PER_MSEC);
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        ck_assert_int_eq(begin(""), 0);
        run_until(n_answers > 0);
        ck_assert_ptr_null(found);
        golden_expect("queues", "a redis that hangs or goes away ends the reading", failure);
        ck_assert_int_eq(begin(""), -ENOTCONN);
}

TEST(one_that_is_freed_is_not_answered)
{
        for (int i = 0; i < 2; i++) {
                ck_assert_int_eq(begin(""), 0);
                reader = queue_reader_free(reader);
        }
        read_queues("");
        ck_assert_int_eq(begin(""), 0);
        reader = queue_reader_free(reader);
        redis = redis_free(redis);
        ck_assert_uint_eq(n_answers, 1);
}

TEST_MAIN("queues", .once = {server_directory_make, server_directory_remove}, .is_missing = server_is_missing)
