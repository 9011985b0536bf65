/* SPDX-License-Identifier: MIT */
/* Are Resque's forms, 1.27 to 3, read right, and is garbage never taken for one? */
/* promises: P1 P5 */
#include "daemon/workers/execute.h"
#include "frameworks/redis_format.h"
#include "frameworks/resque/resque.h"
#include "frameworks/table.h"
#include "redis/redis_command.h"
#include "unit.h"

static const struct {
        const char *text;
        size_t host_len; /* 0: that is no identity */
        pid_t pid;
} identities[] = {
        {"vm:42:work", 2, 42},
        {"vm:42:high,low", 2, 42},
        {"vm:42:*", 2, 42},
        {"vm:42:a:b", 2, 42},
        {"web-1.example.org:2147483647:mail er", 17, 2147483647},
        {"", 0, 0},
        {":", 0, 0},
        {"::", 0, 0},
        {"vm", 0, 0},
        {"vm:42", 0, 0},
        {"vm:42:", 0, 0},
        {":42:work", 0, 0},
        {"vm::work", 0, 0},
        {"vm:0:work", 0, 0},
        {"vm:-1:work", 0, 0},
        {"vm:042:work", 0, 0},
        {"vm:42 :work", 0, 0},
        {"vm:x:work", 0, 0},
        {"vm:2147483648:work", 0, 0},
        {"vm:99999999999999999999:work", 0, 0},
};

TEST_LOOP(takes_identities_apart, ELEMENTSOF(identities))
{
        size_t host_len = 0;
        pid_t pid = 0;

        ck_assert_int_eq(
                resque_identity_parse(identities[_i].text, strlen(identities[_i].text), &host_len, &pid),
                identities[_i].host_len > 0);
        ck_assert_uint_eq(host_len, identities[_i].host_len);
        ck_assert_int_eq(pid, identities[_i].pid);
}

TEST(refuses_an_identity_with_a_nul_or_too_long)
{
        static char host[512], queues[5000] = "vm:42:";
        size_t len;
        pid_t pid;

        memset(host, 'h', 256);
        strcat(host, ":42:work");
        memset(queues + strlen(queues), 'q', sizeof(queues) - strlen(queues) - 1);
        ck_assert(!resque_identity_parse(host, strlen(host), &len, &pid));
        ck_assert(resque_identity_parse(host + 1, strlen(host) - 1, &len, &pid));
        ck_assert(!resque_identity_parse(queues, strlen(queues), &len, &pid));
        ck_assert(!resque_identity_parse("vm:42:wo\0rk", 11, &len, &pid));
}

TEST(a_heartbeat_is_a_time_and_no_more)
{
        struct heartbeat heartbeat = {.busy = 99};
        struct field at = {"2026-11-22T11:45:09+01:00", 25};

        ck_assert(!resque_heartbeat_decode(&(struct field){0}, &heartbeat));
        ck_assert(!resque_heartbeat_decode(&(struct field){"lately", 6}, &heartbeat));
        ck_assert_uint_eq(heartbeat.busy, 99);
        ck_assert(resque_heartbeat_decode(&at, &heartbeat));
        ck_assert_uint_eq(heartbeat.sent_usec, 1795344309000000);
        ck_assert_uint_eq(heartbeat.concurrency, 1);
        ck_assert(heartbeat.busy == 0 && !heartbeat.quiet && !heartbeat.work_list_known);
}

enum { NO_TITLE, WAITS, PAUSED, FORKED, PROCESSES };

static const struct {
        const char *title;
        int is;
        const char *version;
} titles[] = {
        {"resque-1.27.4: Waiting for work,high", WAITS, "1.27.4"},
        {"resque-3.0.0: Waiting for *", WAITS, "3.0.0"},
        {"resque-2.6.0: Paused", PAUSED, "2.6.0"},
        {"resque-2.0.0.pre.1: Forked 4711 at 1795344309", FORKED, "2.0.0.pre.1"},
        {"resque-2.6.0: Processing work since 1795344309 [Nap]", PROCESSES, "2.6.0"},
        {"shop: resque-2.6.0: Paused", PAUSED, "2.6.0"},
        {"resque-shop resque-2.6.0: Paused", PAUSED, "2.6.0"},
        /* A queue may be called anything. */
        {"resque-2.6.0: Waiting for resque-2.6.0: Paused", WAITS, "2.6.0"},
        {"resque-2.6.0: Paused ", NO_TITLE, NULL},
        {"resque-2.6.0: Starting", NO_TITLE, NULL},
        {"resque: Starting", NO_TITLE, NULL},
        {"resque-2.6.0: ", NO_TITLE, NULL},
        {"resque-2.6.0:Paused", NO_TITLE, NULL},
        {"resque-2.6.0 Paused", NO_TITLE, NULL},
        {"resque-: Paused", NO_TITLE, NULL},
        {"resque-x: Paused", NO_TITLE, NULL},
        {"resque-2.66666666666666666666666666666666666666666: Paused", NO_TITLE, NULL},
        {"resque-", NO_TITLE, NULL},
        {"resque-2", NO_TITLE, NULL},
        {"rake resque:work", NO_TITLE, NULL},
        {"", NO_TITLE, NULL},
};

TEST_LOOP(knows_a_worker_and_its_child_by_their_titles, ELEMENTSOF(titles))
{
        int is = titles[_i].is;
        struct title title;

        ck_assert_int_eq(resque_title_parse(titles[_i].title, &title), is != NO_TITLE);
        if (is == NO_TITLE)
                return;
        ck_assert_int_eq(title.quiet, is == PAUSED);
        ck_assert_int_eq(title.maybe_child, is == PROCESSES);
        ck_assert_uint_eq(title.busy, is == FORKED || is == PROCESSES);
        ck_assert_uint_eq(title.concurrency, 1);
        ck_assert_str_eq(title.version, titles[_i].version);
}

static const struct {
        const char *entry;
        const char *class, *jid, *queue; /* class NULL: that is no job */
        uint64_t started_usec;
} jobs[] = {
        {"{\"queue\":\"work\",\"run_at\":\"2026-11-22T10:45:09Z\",\"payload\":{\"class\":\"Nap\",\"args\":[6]"
         "}}",
         "Nap", "-", "work", 1795344309000000},
        {"{\"queue\":\"work\",\"payload\":{\"class\":\"Nap\",\"args\":[1e30,123456789012345678901234567890]}"
         "}",
         "Nap", "-", "work", 0},
        {"{\"queue\":\"work\",\"run_at\":1795344309,\"payload\":{\"class\":\"Nap\"}}", "Nap", "-", "work", 0},
        {"{\"queue\":\"mail\",\"run_at\":\"2026-11-22T10:45:09Z\",\"payload\":{\"class\":"
         "\"ActiveJob::QueueAdapters::ResqueAdapter::JobWrapper\",\"args\":[{\"job_class\":\"MailJob\","
         "\"job_id\":\"6f0f\",\"arguments\":[]}]}}",
         "MailJob", "6f0f", "mail", 1795344309000000},
        {"{\"queue\":\"work\",\"payload\":{\"class\":\"Nap\",\"args\":[{\"job_class\":\"MailJob\"}]}}", "Nap",
         "-", "work", 0},
        {"{\"queue\":\"work\",\"payload\":{\"class\":\"N\\u0000ap\"}}", NULL, NULL, NULL, 0},
        {"{\"queue\":7,\"payload\":{\"class\":\"Nap\"}}", NULL, NULL, NULL, 0},
        {"{\"queue\":\"work\",\"payload\":{\"class\":[]}}", NULL, NULL, NULL, 0},
        {"{\"queue\":\"work\",\"payload\":\"Nap\"}", NULL, NULL, NULL, 0},
        {"{\"queue\":\"work\"}", NULL, NULL, NULL, 0},
        {"{}", NULL, NULL, NULL, 0},
        {"[]", NULL, NULL, NULL, 0},
        {"garbage", NULL, NULL, NULL, 0},
        {"", NULL, NULL, NULL, 0},
};

TEST_LOOP(decodes_jobs, ELEMENTSOF(jobs))
{
        const struct field thread = {"", 0}, entry = {jobs[_i].entry, strlen(jobs[_i].entry)};
        struct job_list list = {0};
        size_t bytes = 100000;

        ck_assert_int_eq(job_list_add(&list, false, &thread, &entry), 0);
        ck_assert_int_eq(job_list_decode(&list, resque_job_decode, &bytes), 0);
        ck_assert_uint_eq(list.n_jobs, !!jobs[_i].class);
        ck_assert_uint_eq(list.n_unreadable, !jobs[_i].class);
        if (jobs[_i].class) {
                ck_assert_str_eq(list.jobs[0].class, jobs[_i].class);
                ck_assert_str_eq(list.jobs[0].jid, jobs[_i].jid);
                ck_assert_str_eq(list.jobs[0].queue, jobs[_i].queue);
                ck_assert_uint_eq(list.jobs[0].started_usec, jobs[_i].started_usec);
        }
        job_list_clear(&list);
}

TEST(a_job_is_unknown_from_the_first_byte_too_many)
{
        const struct field thread = {"", 0};
        struct job_list list = {0};
        size_t bytes = SIZE_MAX;

        for (size_t extra = 0; extra < 2; extra++) {
                size_t size = JOB_ENTRY_MAX + extra;
                _cleanup_free_ char *text = malloc(size + 1);

                ck_assert_ptr_nonnull(text);
                snprintf(text, size + 1, "%-*s}", (int)size - 1,
                         "{\"queue\":\"work\",\"payload\":{\"class\":\"Nap\"}");
                const struct field entry = {text, size};
                ck_assert_int_eq(job_list_add(&list, false, &thread, &entry), 0);
                ck_assert_int_eq(job_list_decode(&list, resque_job_decode, &bytes), 0);
                ck_assert_uint_eq(list.n_jobs, 1);
                ck_assert_uint_eq(list.n_oversized, extra);
        }
        job_list_clear(&list);
}

static void expect_words(struct redis_command *command, const char *words)
{
        char all[256] = "";

        for (int i = 0; i < command->argc; i++) {
                strcat(all, command->argv[i]);
                strcat(all, " ");
        }
        ck_assert_str_eq(all, words);
        for (size_t i = 0; i < ELEMENTSOF(command->keys); i++)
                free(command->keys[i]);
}

TEST(a_namespace_stands_in_place_of_its_own)
{
        static const struct {
                const char *namespace, *set, *heartbeat, *work_list, *outcomes;
        } names[] = {
                {NULL, "resque:workers", "HGET resque:workers:heartbeat vm:42:a:b ",
                 "EXISTS resque:worker:vm:42:a:b ",
                 "MGET resque:stat:processed:vm:42:a:b resque:stat:failed:vm:42:a:b "},
                {"", "resque:workers", "HGET resque:workers:heartbeat vm:42:a:b ",
                 "EXISTS resque:worker:vm:42:a:b ",
                 "MGET resque:stat:processed:vm:42:a:b resque:stat:failed:vm:42:a:b "},
                {"shop", "shop:workers", "HGET shop:workers:heartbeat vm:42:a:b ",
                 "EXISTS shop:worker:vm:42:a:b ",
                 "MGET shop:stat:processed:vm:42:a:b shop:stat:failed:vm:42:a:b "},
        };
        struct redis_command command;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_free_ char *set =
                        resque_key(names[i].namespace, resque_redis_format.heartbeats->set, NULL);

                ck_assert_str_eq(set, names[i].set);
                ck_assert_int_eq(resque_redis_format.heartbeats->ask_heartbeat(names[i].namespace,
                                                                               "vm:42:a:b", false, &command),
                                 0);
                expect_words(&command, names[i].heartbeat);
                ck_assert_int_eq(resque_redis_format.heartbeats->ask_work_list(names[i].namespace,
                                                                               "vm:42:a:b", &command),
                                 0);
                expect_words(&command, names[i].work_list);
                ck_assert_int_eq(resque_redis_format.heartbeats->ask_outcomes(names[i].namespace, "vm:42:a:b",
                                                                              &command),
                                 0);
                expect_words(&command, names[i].outcomes);
        }
}

TEST(takes_replies)
{
        const redisReply time = {
                .type = REDIS_REPLY_STRING, .str = (char *)"2026-11-22T10:45:09Z", .len = 20};
        const redisReply nil = {.type = REDIS_REPLY_NIL}, one = {.type = REDIS_REPLY_INTEGER, .integer = 1};
        struct heartbeat heartbeat;
        struct heartbeat_info *info = NULL;

        ck_assert(!resque_redis_format.heartbeats->take_heartbeat(&nil, &heartbeat, &info));
        ck_assert(!resque_redis_format.heartbeats->take_heartbeat(&one, &heartbeat, &info));
        ck_assert(resque_redis_format.heartbeats->take_heartbeat(&time, &heartbeat, &info));
        ck_assert_ptr_null(info);
}

static struct worker_outcomes take_outcomes(const char *processed, const char *failed)
{
        redisReply each[2] = {{.type = REDIS_REPLY_NIL}, {.type = REDIS_REPLY_NIL}};
        redisReply *list[2] = {&each[0], &each[1]};
        const redisReply reply = {.type = REDIS_REPLY_ARRAY, .elements = 2, .element = list};
        const char *const texts[2] = {processed, failed};

        for (size_t i = 0; i < 2; i++)
                if (texts[i])
                        each[i] = (redisReply){
                                .type = REDIS_REPLY_STRING, .str = (char *)texts[i], .len = strlen(texts[i])};
        return resque_redis_format.heartbeats->take_outcomes(&reply);
}

TEST(reads_counts_of_jobs)
{
        static const redisReply error = {.type = REDIS_REPLY_ERROR, .str = (char *)"NOPERM", .len = 6};
        struct worker_outcomes outcomes = take_outcomes("20", "7");

        ck_assert(outcomes.known && outcomes.processed == 20 && outcomes.failed == 7);
        outcomes = take_outcomes(NULL, NULL);
        ck_assert(outcomes.known && outcomes.processed == 0 && outcomes.failed == 0);
        ck_assert(take_outcomes("20", NULL).known);
        ck_assert(!take_outcomes(NULL, "1").known);
        ck_assert(!take_outcomes("-20", "-21").known);
        ck_assert(!take_outcomes("1125899906842625", "1").known);
        ck_assert(!take_outcomes("", "").known);
        ck_assert(!resque_redis_format.heartbeats->take_outcomes(&error).known);
}

TEST(has_a_row_of_its_own)
{
        const struct framework *row = framework_of(framework_traits_find(4));

        ck_assert_str_eq(row->traits->name, "resque");
        ck_assert(row->traits->stand_in && row->traits->memory_of_tree && row->traits->has_work_list);
        /* Resque itself fails the jobs of a worker that it finds dead: put back they would be there twice. */
        ck_assert(!row->traits->can_rescue);
        ck_assert_int_eq(row->quiet_signal, SIGUSR2);
        ck_assert_int_eq(row->stop_signal, SIGQUIT);
        ck_assert_int_eq(row->cut_off_signal, SIGTERM);
        ck_assert_int_eq(row->wake_signal, 0);
        ck_assert_ptr_nonnull(resque_redis_format.running_jobs);
}

/* The doctor names this signal to operators: it must not end jobs. */
TEST(the_signal_for_operators_lets_jobs_finish)
{
        struct fleet_settings settings = {.traits = &resque_traits};
        struct fleet fleet = {.settings = &settings};
        const struct worker worker = {.fleet = &fleet, .heartbeat.busy = 1};

        ck_assert_int_eq(execute_stop_signal(&worker), SIGQUIT);
}

TEST_MAIN("resque")
