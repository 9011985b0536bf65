/* SPDX-License-Identifier: MIT */
/* Is what Redis shows of BullMQ's workers decoded and judged right? */
/* promises: P1 P5 */
#include "frameworks/bullmq/view.h"
#include "frameworks/decode.h"
#include "frameworks/framework.h"
#include "frameworks/server_heartbeat_slots.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "model/fleet.h"
#include "model/heartbeat_info.h"
#include "unit.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define SEC USEC_PER_SEC

static struct field field(const char *text)
{
        return (struct field){.text = text, .len = text ? strlen(text) : 0};
}

TEST(splits_an_identity)
{
        static const char *const others[] = {
                "",       ":",      "vm",   "vm:",        ":42",           "vm:0",
                "vm:042", "vm:42:", "vm:x", "fe80::1:42", "vm:2147483648", "vm:-1"};
        size_t len = 99;
        pid_t pid;

        ck_assert(bullmq_identity_parse("web-1.example.org:42", 20, &len, &pid));
        ck_assert_uint_eq(len, 17);
        ck_assert_int_eq(pid, 42);
        for (size_t i = 0; i < ELEMENTSOF(others); i++)
                ck_assert(!bullmq_identity_parse(others[i], strlen(others[i]), &len, &pid));
}

/* A line as Redis 7 writes it. */
#define LINE(name, flags, db)                                                                                \
        "id=4 addr=127.0.0.1:6379 laddr=127.0.0.1:1 fd=8 name=" name " age=12 idle=3 flags=" flags " db=" db \
        " sub=0 cmd=bzpopmin user=default resp=2"

static const struct {
        const char *line, *prefix;
        const char *queue;    /* NULL: no worker's connection */
        const char *identity; /* NULL: its name does not show its process */
        bool waits;
} lines[] = {
        {LINE("bull:bWFpbHM=:w:vm:896", "b", "0"), "bull", "mails", "vm:896", true},
        {LINE("bull:bWFpbHM=:w:vm:896", "bU", "0"), "bull", "mails", "vm:896", true},
        {LINE("bull:bWFpbHM=:w:vm:896", "N", "0"), "bull", "mails", "vm:896", false},
        {LINE("bull:bW9yZQ==:w:vm:896", "N", "0"), "bull", "more", "vm:896", false},
        {LINE("bull:YWJj:w:vm:896", "N", "0"), "bull", "abc", "vm:896", false},
        {LINE("a:b:YWJj:w:vm:896", "N", "0"), "a:b", "abc", "vm:896", false},
        {LINE("bull:YWJj", "N", "0"), "bull", "abc", NULL, false},
        {LINE("bull:YWJj:w:crunch", "N", "0"), "bull", "abc", NULL, false},
        {LINE("bull:YWJj:w:vm:0", "N", "0"), "bull", "abc", NULL, false},
        {LINE("bull:YWJj:w:", "N", "0"), "bull", "abc", NULL, false},
        {LINE("bull:YWJj:qe", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:YWJj:", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:YWJj:w:vm:896", "N", "1"), "bull", NULL, NULL, false},
        {LINE("bull:YWJj:w:vm:896", "N", "0"), "other", NULL, NULL, false},
        {LINE("bulls:YWJj:w:vm:896", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:YWJ", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:Y===", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:====", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:YW%j", "N", "0"), "bull", NULL, NULL, false},
        {LINE("bull:YQBj:w:vm:1", "N", "0"), "bull", NULL, NULL, false}, /* a NUL */
        {LINE("", "N", "0"), "bull", NULL, NULL, false},
        {"id=4 name=bull:YWJj:w:vm:896 age=1 idle=1 flags=N", "bull", NULL, NULL, false},
        {"name=bull:YWJj:w:vm:896 age=x idle=1 flags=N db=0", "bull", NULL, NULL, false},
        {"", "bull", NULL, NULL, false},
};

TEST_LOOP(takes_a_line_apart, ELEMENTSOF(lines))
{
        const struct field line = field(lines[_i].line);
        struct bullmq_client client;

        ck_assert_int_eq(bullmq_client_parse(&line, lines[_i].prefix, 0, &client), !!lines[_i].queue);
        if (!lines[_i].queue)
                return;
        ck_assert_str_eq(client.queue, lines[_i].queue);
        ck_assert_int_eq(client.waits, lines[_i].waits);
        ck_assert_uint_eq(client.age, 12);
        ck_assert_uint_eq(client.idle, 3);
        ck_assert_int_eq(!!client.identity.text, !!lines[_i].identity);
        if (lines[_i].identity)
                ck_assert(decode_field_is(&client.identity, lines[_i].identity));
}

TEST(a_queue_name_is_bounded)
{
        char name[1024] = "name=bull:", *end = name + strlen(name);
        struct bullmq_client client;

        memset(end, 'A', 344); /* 258 bytes */
        memcpy(end, "eHh4", 4);
        strcpy(end + 344, ":w:vm:1 age=1 idle=1 flags=N db=0");
        memset(end + 4, 'e', 340);
        const struct field line = field(name);
        ck_assert(!bullmq_client_parse(&line, "bull", 0, &client));
        memmove(end + 340, end + 344, strlen(end + 344) + 1); /* 255 bytes */
        const struct field shorter = field(name);
        ck_assert(bullmq_client_parse(&shorter, "bull", 0, &client));
        ck_assert_uint_eq(strlen(client.queue), QUEUE_NAME_MAX);
}

/* The world of a view: a process vm:7 that serves mails, seen at `now`. */
static struct bullmq_view view;
static usec_t now;

static void view_setup(void)
{
        view = (struct bullmq_view){.prefix = "bull"};
        now = 1000 * SEC;
}

static void view_teardown(void)
{
        bullmq_view_clear(&view);
}

#define MAILS "name=bull:bWFpbHM=:w:vm:7 "
#define MORE  "name=bull:bW9yZQ==:w:vm:7 "

static struct bullmq_process *see(const char *text)
{
        const struct field clients = field(text);

        ck_assert_int_eq(bullmq_view_take_clients(&view, &clients, now, now), 0);
        bullmq_view_ask(&view, "vm:7");
        return bullmq_view_find(&view, "vm:7");
}

static void job(const char *queue, const char *id, const char *worker)
{
        const struct field job[_BULLMQ_JOB_MAX] = {[BULLMQ_ID] = field(id), [BULLMQ_WORKER] = field(worker)};
        const struct bullmq_queue *served = bullmq_view_find_queue(&view, queue);

        ck_assert_int_eq(bullmq_view_take_job(&view, (size_t)(served - view.queues), false, job), 0);
}

static usec_t judged(struct bullmq_process *process)
{
        bullmq_view_judge_jobs(&view, process, now);
        bullmq_view_judge_limits(&view, process, now);
        return process->sent;
}

TEST(a_connection_that_speaks_is_a_sign_of_life)
{
        ck_assert_uint_eq(judged(see(MAILS "age=60 idle=4 flags=b db=0\n")), now - 4 * SEC);
        /* A connection that only exists is no sign of life, also if the clock of Redis is inexact. */
        for (unsigned second = 1; second <= 90; second++) {
                char text[128];

                now += SEC;
                snprintf(text, sizeof(text), MAILS "age=99 idle=%u flags=b db=0\n", 4 + second - second % 2);
                ck_assert_uint_eq(judged(see(text)), 996 * SEC);
        }
        ck_assert_uint_eq(judged(see(MAILS "age=99 idle=1 flags=b db=0\n")), now - SEC);
        /* The most recently used connection counts. */
        now += 10 * SEC;
        ck_assert_uint_eq(
                judged(see(MAILS "age=99 idle=80 flags=N db=0\n" MORE "age=99 idle=2 flags=b db=0\n")),
                now - 2 * SEC);
}

TEST(a_process_that_is_gone_is_forgotten)
{
        see(MAILS "age=60 idle=4 flags=b db=0\n");
        ck_assert_ptr_null(see("name=bull:bWFpbHM=:w:vm:8 age=60 idle=4 flags=b db=0\n"));
        ck_assert_uint_eq(view.n_processes, 1);
        ck_assert_ptr_null(see(""));
        ck_assert_uint_eq(view.n_processes, 0);
}

TEST(another_set_of_jobs_is_a_sign_of_life)
{
        static const char text[] = MAILS "age=99 idle=90 flags=N db=0\n";
        struct bullmq_process *process = see(text);
        usec_t before;

        job("mails", "1", "vm:7");
        job("mails", "2", "vm:8");
        job("mails", "3", NULL);
        before = judged(process);
        ck_assert_uint_eq(process->busy, 1);
        now += SEC;
        process = see(text);
        job("mails", "1", "vm:7");
        ck_assert_uint_eq(judged(process), before);
        process = see(text);
        job("mails", "4", "vm:7");
        ck_assert_uint_eq(judged(process), now);
        now += SEC;
        process = see(text);
        ck_assert_uint_eq(judged(process), now);
        ck_assert_uint_eq(process->busy, 0);
}

static struct bullmq_process *see_silent(unsigned idle)
{
        char text[128];

        snprintf(text, sizeof(text), MAILS "age=99 idle=%u flags=N db=0\n", idle);
        struct bullmq_process *process = see(text);
        job("mails", "1", "vm:7");
        judged(process);
        return process;
}

TEST(a_lock_that_was_renewed_is_a_sign_of_life)
{
        usec_t left = 30 * SEC, before = now - 90 * SEC;

        for (unsigned i = 0; i < 10; i++) {
                struct bullmq_process *process = see_silent(90 + i);

                ck_assert_str_eq(process->lock, "bull:mails:1:lock");
                bullmq_process_take_lock(process, left + (i % 2) * 300 * USEC_PER_MSEC, now);
                ck_assert_uint_eq(process->sent, before);
                now += SEC;
                left -= SEC;
        }
        struct bullmq_process *process = see_silent(100);
        bullmq_process_take_lock(process, 30 * SEC, now);
        ck_assert_uint_eq(process->sent, now);
}

/* The lock of another job says nothing of the first one. */
TEST(a_lock_of_another_job_is_none)
{
        static const char text[] = MAILS "age=99 idle=90 flags=N db=0\n";
        struct bullmq_process *process = see(text);

        job("mails", "1", "vm:7");
        judged(process);
        bullmq_process_take_lock(process, SEC, now);
        process = see(text);
        job("mails", "2", "vm:7");
        usec_t sent = judged(process);
        now += SEC;
        bullmq_process_take_lock(process, 30 * SEC, now);
        ck_assert_uint_eq(process->sent, sent);
}

TEST(a_reached_rate_limit_excuses_silence)
{
        struct bullmq_process *process = see(MAILS "age=99 idle=90 flags=N db=0\n");

        bullmq_view_find_queue(&view, "mails")->limited = true;
        ck_assert_uint_eq(judged(process), now);
        process = see(MAILS "age=99 idle=90 flags=b db=0\n");
        now += SEC;
        bullmq_view_find_queue(&view, "mails")->limited = true;
        ck_assert_uint_eq(judged(process), now - SEC);
}

TEST(only_connections_that_have_settled_and_do_not_wait_look_quiet)
{
        ck_assert(!bullmq_process_may_be_quiet(see(MAILS "age=99 idle=1 flags=b db=0\n")));
        ck_assert(!bullmq_process_may_be_quiet(see(MAILS "age=4 idle=1 flags=N db=0\n")));
        ck_assert(bullmq_process_may_be_quiet(see(MAILS "age=5 idle=1 flags=N db=0\n")));
        ck_assert(!bullmq_process_may_be_quiet(
                see(MAILS "age=99 idle=9 flags=N db=0\n" MORE "age=99 idle=1 flags=b db=0\n")));
        ck_assert(!bullmq_process_may_be_quiet(
                see(MAILS "age=99 idle=9 flags=N db=0\n" MORE "age=1 idle=1 flags=N db=0\n")));
}

/* A worker whose jobs cannot all be counted must never look idle. */
TEST(a_queue_that_could_not_be_read_leaves_the_process_unread)
{
        struct bullmq_process *process =
                see(MAILS "age=99 idle=9 flags=N db=0\n" MORE "age=99 idle=1 flags=N db=0\n");

        bullmq_view_find_queue(&view, "more")->failed = true;
        judged(process);
        ck_assert(process->unread);
        process = see(MAILS "age=99 idle=9 flags=N db=0\n");
        judged(process);
        ck_assert(!process->unread);
}

/* The connection of one worker is made anew while the worker runs a job. */
TEST(a_job_counts_though_the_connection_of_its_worker_is_lost)
{
        see(MAILS "age=99 idle=9 flags=N db=0\n" MORE "age=99 idle=9 flags=N db=0\n");
        struct bullmq_process *process = see(MORE "age=99 idle=9 flags=N db=0\n");

        job("mails", "1", "vm:7");
        judged(process);
        ck_assert(!process->unread);
        ck_assert_uint_eq(process->busy, 1);
}

TEST(too_many_forged_queues_leave_the_process_unread)
{
        char text[BULLMQ_QUEUES_OF_PROCESS_MAX * 80 + 80] = MAILS "age=99 idle=9 flags=N db=0\n";

        for (unsigned i = 0; i < BULLMQ_QUEUES_OF_PROCESS_MAX; i++)
                snprintf(text + strlen(text), 80, "name=bull:QUJD%04u:w:vm:7 age=9 idle=9 flags=N db=0\n",
                         1000 + i);
        struct bullmq_process *process = see(text);
        judged(process);
        ck_assert(process->unread);
        ck_assert_uint_eq(view.n_queues, 0);
        process = see(MAILS "age=99 idle=9 flags=N db=0\n");
        judged(process);
        ck_assert(!process->unread);
}

TEST(counts_what_a_process_can_run_at_once)
{
        static const char text[] = MAILS "age=99 idle=9 flags=N db=0\n" MAILS
                                         "age=99 idle=9 flags=N db=0\n" MORE "age=99 idle=1 flags=N db=0\n";
        struct bullmq_process *process = see(text);

        ck_assert_uint_eq(bullmq_view_concurrency(&view, process), 0);
        job("mails", "1", "vm:7");
        job("mails", "2", "vm:7");
        job("more", "1", "vm:7");
        judged(process);
        ck_assert_uint_eq(process->busy, 3);
        process = see(text);
        judged(process);
        ck_assert_uint_eq(bullmq_view_concurrency(&view, process), 3);

        _cleanup_free_ struct heartbeat_info *info = bullmq_process_info(process);
        ck_assert_mem_eq(info->queues, "mails\0more\0", 12);
        ck_assert_ptr_null(bullmq_process_info(see(MAILS "age=1 idle=0 flags=N db=0\n")));
}

/* The answer of the reader stays within its bounds, or sqmgr would replace the reader. */
TEST(a_list_that_repeats_an_id_is_bounded)
{
        struct bullmq_process *process = see(MAILS "age=99 idle=9 flags=N db=0\n");

        for (unsigned i = 0; i <= BULLMQ_JOBS_MAX; i++)
                job("mails", "1", "vm:7");
        ck_assert_uint_eq(process->busy, BULLMQ_JOBS_MAX);
        ck_assert_uint_eq(bullmq_view_concurrency(&view, process), BULLMQ_JOBS_MAX);
        ck_assert_uint_lt((BULLMQ_QUEUES_OF_PROCESS_MAX + 1) * BULLMQ_JOBS_MAX, 1000000);
}

TEST(a_job_of_a_list_is_decoded)
{
        const struct field texts[] = {field("17"), field("deliver"), field("1795747768392")};
        size_t len;
        _cleanup_free_ char *entry = bullmq_job_entry("mails", texts, &len);
        struct job job = {.entry = entry, .entry_len = len};

        ck_assert_int_eq(bullmq_job_decode(&job), 0);
        ck_assert_str_eq(job.queue, "mails");
        ck_assert_str_eq(job.jid, "17");
        ck_assert_str_eq(job.class, "deliver");
        ck_assert_uint_eq(job.started_usec, 1795747768392000);
        free(job.queue);
        free(job.jid);
        free(job.class);

        static const struct field odd[] = {{"mails\0", 6},
                                           {"mails\0"
                                            "17",
                                            8},
                                           {"mails\0"
                                            "17\0x\0"
                                            "1\0",
                                            13},
                                           {"", 0},
                                           {"mails\0\0x\0"
                                            "1",
                                            9}};
        for (size_t i = 0; i < ELEMENTSOF(odd); i++) {
                char copy[16] = "";
                struct job none = {.entry = copy, .entry_len = odd[i].len};

                memcpy(copy, odd[i].text, odd[i].len);
                ck_assert_int_eq(bullmq_job_decode(&none), -EINVAL);
        }
}

/* A worker that waits for its rate limit looks the same as one that was quieted. */
TEST(only_a_worker_that_was_asked_is_quiet)
{
        struct fleet_settings settings = {.traits = &bullmq_traits};
        struct fleet fleet = {.settings = &settings};
        struct worker worker = {.fleet = &fleet, .state = WORKER_ACTIVE};
        struct server_slot slot = {.base.worker = &worker};
        struct heartbeat heartbeat = {.sent_usec = 1, .quiet = true};

        server_heartbeats_amend(&slot, &heartbeat);
        ck_assert(!heartbeat.quiet);
        ck_assert_uint_eq(heartbeat.sent_usec, 1);

        worker.state = WORKER_QUIET;
        worker.orders.quiet_at = 1;
        server_heartbeats_amend(&slot, &heartbeat);
        ck_assert(!heartbeat.quiet);
        ck_assert_uint_eq(heartbeat.sent_usec, 1);

        /* The first heartbeat of another process that takes over: it was not asked, unless all were. */
        heartbeat.quiet = true;
        server_heartbeats_amend(&slot, &heartbeat);
        ck_assert(!heartbeat.quiet);
        heartbeat = (struct heartbeat){.sent_usec = 1, .quiet = true, .busy = 1};
        worker.orders.group_signaled = true;
        server_heartbeats_amend(&slot, &heartbeat);
        ck_assert(heartbeat.quiet);
        worker.orders.group_signaled = false;
        worker.heartbeat.seen = true;

        heartbeat = (struct heartbeat){.sent_usec = 1, .quiet = true, .busy = 1};
        server_heartbeats_amend(&slot, &heartbeat);
        ck_assert(heartbeat.quiet);
        ck_assert_uint_eq(heartbeat.sent_usec, 1);

        /* Once quieted and without a job, the process gives no other sign of life. */
        heartbeat.busy = 0;
        usec_t from = clock_now(CLOCK_MONOTONIC);
        server_heartbeats_amend(&slot, &heartbeat);
        ck_assert(heartbeat.quiet);
        ck_assert_uint_ge(heartbeat.sent_usec, from);
        ck_assert_uint_eq(slot.changed_at, heartbeat.sent_usec);
}

TEST(has_a_row_of_its_own)
{
        const struct framework *row = framework_of(framework_traits_find(7));

        ck_assert_str_eq(row->traits->name, "bullmq");
        ck_assert(row->traits->has_work_list && row->traits->uncaught_is_stop &&
                  row->traits->quiet_is_silent);
        ck_assert_int_eq(row->quiet_signal, SIGTSTP);
        ck_assert_int_eq(row->stop_signal, SIGTERM);
}

TEST_MAIN("bullmq", .each = {view_setup, view_teardown})
