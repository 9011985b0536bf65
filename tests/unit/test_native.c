/* SPDX-License-Identifier: MIT */
/* Are the records of sqmgr-heartbeat(7) read right, and is garbage never taken for one? Redis is a real
 * redis-server. */
/* promises: P1 P5 */
#include "base/text.h"
#include "frameworks/table.h"
#include "heartbeats_bench.h"
#include "io/status_dir.h"
#include "model/heartbeat_info.h"
#include "model/queues.h"

static const struct {
        const char *identity, *host;
        pid_t pid;
} identities[] = {
        {"vm:15756", "vm", 15756},
        {"fe80::1:42", "fe80::1", 42},
        {"a:2147483647", "a", 2147483647},
        {"", NULL, 0},
        {"vm", NULL, 0},
        {":15756", NULL, 0},
        {"vm:", NULL, 0},
        {"vm:0", NULL, 0},
        {"vm:01", NULL, 0},
        {"vm:-1", NULL, 0},
        {"vm: 1", NULL, 0},
        {"vm:1 ", NULL, 0},
        {"vm:2147483648", NULL, 0},
        {"vm:99999999999999999999", NULL, 0},
};

TEST_LOOP(takes_identities_apart_from_the_right, ELEMENTSOF(identities))
{
        const char *text = identities[_i].identity;
        size_t host_len = 0;
        pid_t pid = 0;

        ck_assert_int_eq(native_identity_parse(text, strlen(text), &host_len, &pid), !!identities[_i].host);
        ck_assert_int_eq(pid, identities[_i].pid);
        if (identities[_i].host)
                ck_assert_int_eq(strncmp(text, identities[_i].host, host_len), 0);
        ck_assert_uint_eq(host_len, identities[_i].host ? strlen(identities[_i].host) : 0);
}

#define S13       "1234567890123"
#define S65       S13 S13 S13 S13 S13
#define HEARTBEAT "v=1\nbeat=1795341600.25\n"

static const struct {
        const char *text;
        struct heartbeat expect; /* sent_usec 0: none */
} records[] = {
        {HEARTBEAT "busy=2\nquiet=0\n", {.sent_usec = 1795341600250000, .busy = 2}},
        {"quiet=1\nbusy=0\nbeat=7\nv=1\n", {.sent_usec = 7000000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nstart=182736\nconcurrency=5\nversion=1.0\ntag=a=b\nother=\n\xff=\x01\n",
         {.sent_usec = 1795341600250000, .quiet = true, .start = 182736, .concurrency = 5}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=USR1\nresume_sig=USR2\nstop_sig=INT\n",
         {.sent_usec = 1795341600250000, .quiet = true, .quiet_signal = SIGUSR1, .stop_signal = SIGINT}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=WINCH\nresume_sig=\nstop_sig=QUIT\n",
         {.sent_usec = 1795341600250000, .quiet = true, .quiet_signal = SIGWINCH, .stop_signal = SIGQUIT}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=TERM\nstop_sig=TERM\n",
         {.sent_usec = 1795341600250000, .quiet = true, .quiet_signal = SIGTERM, .stop_signal = SIGTERM}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=20\nfailed=7\n",
         {.sent_usec = 1795341600250000, .quiet = true, .outcomes = {true, 20, 7}}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=1125899906842624\nfailed=0\n",
         {.sent_usec = 1795341600250000, .quiet = true, .outcomes = {true, UINT64_C(1) << 50, 0}}},
        /* Outcomes that no worker writes are unknown, and the rest counts. */
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=20\n", {.sent_usec = 1795341600250000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nfailed=7\n", {.sent_usec = 1795341600250000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=7\nfailed=8\n",
         {.sent_usec = 1795341600250000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=-1\nfailed=-1\n",
         {.sent_usec = 1795341600250000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=\nfailed=\n", {.sent_usec = 1795341600250000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=many\nfailed=0\n",
         {.sent_usec = 1795341600250000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=1125899906842625\nfailed=0\n",
         {.sent_usec = 1795341600250000, .quiet = true}},
        {HEARTBEAT "busy=0\nquiet=1\nprocessed=18446744073709551617\nfailed=1\n",
         {.sent_usec = 1795341600250000, .quiet = true}},
        {"", {0}},
        {"\n", {0}},
        {"v=1\n", {0}},
        {"beat=7\nbusy=0\nquiet=0\n", {0}}, /* each that is required */
        {"v=1\nbusy=0\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nbusy=0\n", {0}},
        {"v=2\nbeat=7\nbusy=0\nquiet=0\n", {0}}, /* of another version */
        {"v=\nbeat=7\nbusy=0\nquiet=0\n", {0}},
        {"v=1.0\nbeat=7\nbusy=0\nquiet=0\n", {0}},
        {"v=1\r\nbeat=7\r\nbusy=0\r\nquiet=0\r\n", {0}}, /* of another form */
        {"v=1\nbeat=7\nbusy=0\nquiet=0", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\n\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nwords\n", {0}},
        {"v = 1\nbeat=7\nbusy=0\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nbusy=0\n", {0}},
        {"v=1\nv=1\nbeat=7\nbusy=0\nquiet=0\n", {0}},
        {"v=1\nbeat=0\nbusy=0\nquiet=0\n", {0}}, /* numbers */
        {"v=1\nbeat=-7\nbusy=0\nquiet=0\n", {0}},
        {"v=1\nbeat=1e9\nbusy=0\nquiet=0\n", {0}},
        {"v=1\nbeat=999999999999\nbusy=0\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nbusy=-1\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nbusy=1000001\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nbusy=18446744073709551616\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nbusy=\nquiet=0\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=2\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=true\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nstart=0\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nstart=\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nstart=x\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nconcurrency=many\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nlooked=0.25\n",
         {.sent_usec = 1795341600250000, .quiet = true, .looked_usec = 250000}},
        {HEARTBEAT "busy=0\nquiet=1\nlooked=0\npolling=61\n",
         {.sent_usec = 1795341600250000, .quiet = true, .looked_usec = 1, .polling_usec = 61000000}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nlooked=\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nlooked=-1\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\npolling=1.\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nlooked=1\nlooked=1\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=\n", {0}}, /* jobs and queues of another form */
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1 7\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob= 7 class\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1  7 class\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1 0 class\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1 -7 class\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1 now class\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j\t1 7 class\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1 7 a\njob=j2\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=" S65 " 7 class\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\njob=j1 7 " S65 S65 "\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nqueue=\n", {0}},
        {"v=1\nbeat=7\nbusy=0\nquiet=0\nqueue=a\nqueue=" S65 S65 S65 S65 "\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=KILL\n", {0}}, /* signals */
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=STOP\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=ABRT\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=SIGTSTP\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=tstp\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nquiet_sig=20\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nresume_sig=KILL\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nstop_sig=KILL\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nstop_sig=STOP\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nstop_sig=TSTP\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nstop_sig=CONT\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nstop_sig=\n", {0}},
        {HEARTBEAT "busy=0\nquiet=1\nstop_sig=TERMINATE\n", {0}},
};

static void expect_heartbeat(const struct heartbeat *heartbeat, const struct heartbeat *expect)
{
        ck_assert_uint_eq(heartbeat->sent_usec, expect->sent_usec);
        ck_assert_uint_eq(heartbeat->busy, expect->busy);
        ck_assert_int_eq(heartbeat->quiet, expect->quiet);
        ck_assert_uint_eq(heartbeat->start, expect->start);
        ck_assert_uint_eq(heartbeat->concurrency, expect->concurrency);
        ck_assert_uint_eq(heartbeat->looked_usec, expect->looked_usec);
        ck_assert_uint_eq(heartbeat->polling_usec, expect->polling_usec);
        ck_assert_int_eq(heartbeat->quiet_signal, expect->quiet_signal);
        ck_assert_int_eq(heartbeat->stop_signal, expect->stop_signal);
        ck_assert(!heartbeat->work_list_known);
        ck_assert_int_eq(heartbeat->outcomes.known, expect->outcomes.known);
        ck_assert_uint_eq(heartbeat->outcomes.processed, expect->outcomes.processed);
        ck_assert_uint_eq(heartbeat->outcomes.failed, expect->outcomes.failed);
        ck_assert_str_eq(heartbeat->outcomes.class, "");
}

/* A copy that ends where the text does: who reads beyond is found out. */
static int take(const char *record, size_t len, struct heartbeat_record *ret)
{
        _cleanup_free_ char *text = malloc(MAX(len, 1U));

        memcpy(text, record, len);
        *ret = (struct heartbeat_record){0};
        int r = native_take_record(text, len, ret);
        ck_assert(r == 0 || r == -EINVAL);
        return r;
}

TEST_LOOP(takes_a_record_or_leaves_it, ELEMENTSOF(records))
{
        struct heartbeat_record record;

        int r = take(records[_i].text, strlen(records[_i].text), &record);
        ck_assert_int_eq(r == 0, records[_i].expect.sent_usec != 0);
        expect_heartbeat(&record.heartbeat, &records[_i].expect);
        ck_assert_uint_eq(record.jobs.n_jobs, 0);
        ck_assert_ptr_null(record.info);
}

TEST(takes_no_value_with_a_nul)
{
        static const char text[] = "v=1\nbeat=7\nbusy=0\0\nquiet=0\n";
        struct heartbeat_record record;

        ck_assert_int_eq(take(text, sizeof(text) - 1, &record), -EINVAL);
}

static void expect_job(const struct job *job, const char *id, uint64_t started_usec, const char *class)
{
        ck_assert_str_eq(job->jid, id);
        ck_assert_uint_eq(job->started_usec, started_usec);
        ck_assert_str_eq(job->class, class);
        ck_assert_str_eq(job->queue, "");
        ck_assert_str_eq(job->thread, "");
}

TEST(takes_jobs_and_queues)
{
        static const char text[] = "queue=default\njob=a-1 1795341600.25 app.tasks.send mail\n" HEARTBEAT
                                   "busy=3\nconcurrency=4\nquiet=0\njob=\xff"
                                   "2 1795341601 \x1b[1m\0\xc3\xa4\n"
                                   "queue=b=\x01\nqueue=default\njob=a-1 7 \n";
        struct heartbeat_record record;

        ck_assert_int_eq(take(text, sizeof(text) - 1, &record), 0);
        ck_assert_uint_eq(record.heartbeat.busy, 3);
        ck_assert_uint_eq(record.jobs.n_jobs, 3);
        ck_assert_uint_eq(job_list_unknown(&record.jobs), 0);
        expect_job(&record.jobs.jobs[0], "a-1", 1795341600250000, "app.tasks.send mail");
        expect_job(&record.jobs.jobs[1], "?2", 1795341601000000, "?[1m?\xc3\xa4");
        expect_job(&record.jobs.jobs[2], "a-1", 7000000, "");
        ck_assert_uint_eq(record.info->concurrency, 4);
        ck_assert_mem_eq(record.info->queues, "default\0b=?\0", sizeof("default\0b=?\0"));
        heartbeat_record_clear(&record);
}

/* As many as are allowed, each as long as it may be, fit into a file. */
static int take_items(unsigned n_jobs, unsigned n_queues, struct heartbeat_record *ret)
{
        char text[STATUS_FILE_MAX_BYTES * 2] = HEARTBEAT "busy=64\nquiet=0\n";

        for (unsigned i = 0; i < n_jobs; i++)
                text_append(text, sizeof(text), "job=%064u 1795341600.123456 %0128u\n", i, i);
        for (unsigned i = 0; i < n_queues; i++)
                text_append(text, sizeof(text), "queue=%02u" S13 S13 "\n", i);
        return take(text, strlen(text), ret);
}

TEST(takes_no_more_than_64_jobs_and_queues)
{
        struct heartbeat_record record;

        ck_assert_int_eq(take_items(64, 64, &record), 0);
        ck_assert_uint_eq(record.jobs.n_jobs, 64);
        ck_assert_uint_eq(strlen(record.jobs.jobs[63].jid), 64);
        ck_assert_uint_eq(strlen(record.jobs.jobs[63].class), 128);
        ck_assert_uint_eq(queue_names_length(record.info->queues), 64 * 29);
        heartbeat_record_clear(&record);
        ck_assert_int_eq(take_items(65, 0, &record), -EINVAL);
        ck_assert_int_eq(take_items(0, 65, &record), -EINVAL);
}

TEST(has_its_row)
{
        const struct framework *native = framework_of(&native_traits);

        ck_assert_uint_eq(native_traits.id, 2); /* as all state files have it */
        ck_assert_int_eq(native->quiet_signal, SIGTSTP);
        ck_assert_int_eq(native->stop_signal, SIGTERM);
        /* CONT would make it active again. */
        ck_assert_int_eq(native->wake_signal, 0);
        ck_assert_uint_eq(native_traits.stale_usec, 30 * USEC_PER_SEC);
        ck_assert(native_traits.uncaught_is_stop && native_traits.memory_of_tree);
}

static const struct fleet_settings native_settings = {.traits = &native_traits};
static struct fleet native_fleet = {.world = &world, .settings = &native_settings};

static void setup_native(void)
{
        memset(reported, 0, sizeof(reported));
        setup_server((char *)"app", &native_framework);
        workers[0] = (struct worker){.fleet = &native_fleet,
                                     .process.pid = 5000000,
                                     .process.start = 77,
                                     .spawned_at = clock_now(CLOCK_MONOTONIC)};
        ck_assert_int_eq(heartbeats_add(heartbeats, &workers[0], &slots[0]), 0);
}

static void send_heartbeat(const char *at, const char *more)
{
        server_do("SADD app:sqmgr:workers " HOST ":5000000 other:1 " HOST ":0 x");
        server_do("HSET app:sqmgr:worker:" HOST ":5000000 v 1 busy 2 quiet 0 beat %s", at);
        if (more)
                server_do("HSET app:sqmgr:worker:" HOST ":5000000 start %s", more);
}

static void poll_until_reported(void)
{
        while (reported[0].heartbeats == 0)
                (void)look(1, POLL_HEARTBEAT);
}

TEST_FIXTURE(setup_native, teardown)

TEST(reads_a_worker_in_redis)
{
        send_heartbeat("100.5", NULL);
        server_do("HSET app:sqmgr:worker:" HOST ":5000000 stop_sig USR2 concurrency 3 processed 20 failed 7");
        (void)look(1, POLL_HEARTBEAT);
        /* The record may have been there before the worker. */
        ck_assert_uint_eq(reported[0].heartbeats, 0);
        send_heartbeat("105.5", NULL);
        poll_until_reported();
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000");
        expect_heartbeat(&reported[0].heartbeat, &(struct heartbeat){.sent_usec = 105500000,
                                                                     .busy = 2,
                                                                     .concurrency = 3,
                                                                     .stop_signal = SIGUSR2,
                                                                     .outcomes = {true, 20, 7}});
        /* One that names what is not to be sent does not count. */
        reported[0].heartbeats = 0;
        server_do("HSET app:sqmgr:worker:" HOST ":5000000 stop_sig KILL beat 106");
        (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].heartbeats, 0);
        server_do("HDEL app:sqmgr:worker:" HOST ":5000000 stop_sig");
        poll_until_reported();
        ck_assert_int_eq(reported[0].heartbeat.stop_signal, 0);
}

/* Another container of this host name has a worker of the same pid: both write one hash. */
TEST(takes_no_record_that_says_it_is_of_another_process)
{
        (void)look(1, POLL_HEARTBEAT);
        send_heartbeat("100.5", "78");
        for (unsigned i = 0; i < 5; i++)
                (void)look(1, POLL_HEARTBEAT);
        send_heartbeat("105.5", "78");
        for (unsigned i = 0; i < 5; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].heartbeats, 0);
        ck_assert_ptr_null(slots[0]->identity);

        send_heartbeat("104.25", "77");
        poll_until_reported();
        ck_assert_uint_eq(reported[0].heartbeat.start, 77);
}

TEST(takes_keys_of_another_kind_for_none)
{
        server_do("SET app:sqmgr:worker:" HOST ":5000000 x");
        server_do("SADD app:sqmgr:workers " HOST ":5000000");
        for (unsigned i = 0; i < 3; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].heartbeats, 0);
        server_do("DEL app:sqmgr:worker:" HOST ":5000000");
        send_heartbeat("100.5", NULL);
        (void)look(1, POLL_HEARTBEAT);
        send_heartbeat("105.5", NULL);
        poll_until_reported();
}

TEST_MAIN("native", .once = {server_directory_make, server_directory_remove}, .is_missing = server_is_missing)
