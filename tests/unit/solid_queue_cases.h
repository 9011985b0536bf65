/* SPDX-License-Identifier: MIT */
/* A reader of Solid Queue's real tables on either engine: its answers, and rescues of jobs. The file that
 * includes this one defines:
 *
 * - database_url; begin_database(): makes a database of the tables, and sets it; end_database()
 * - execute_sql(): executes statements, as an application does
 * - value_of_sql(): returns the first value that a statement gives, which the caller frees
 * - AGO: a time in SQL, of which %.*s is how many seconds ago it was */
#pragma once

#include "database_program.h"
#include "database_reader.h"
#include "io/clock.h"

#define UNIT   "web-1:4711:1"
#define WORKER "2"

/* Statements of Solid Queue, as its version 1.5 executes them. */
/* app/models/solid_queue/claimed_execution.rb:118, the lock; :107, failed_with(): the failure, and destroy!.
 */
#define FAIL_CLAIM                                                                                           \
        "INSERT INTO solid_queue_failed_executions (job_id, error, created_at) SELECT c.job_id,"             \
        " '{\"exception_class\":\"SolidQueue::Processes::ProcessPrunedError\"}', @0"                         \
        " FROM solid_queue_claimed_executions c WHERE c.id = 1;"                                             \
        "DELETE FROM solid_queue_claimed_executions WHERE id = 1;"
/* :103, finished(): the job is finished, and the claim destroyed. */
#define FINISH_CLAIM                                                                                         \
        "UPDATE solid_queue_jobs SET finished_at = @0 WHERE id IN"                                           \
        " (SELECT job_id FROM solid_queue_claimed_executions WHERE id = 1);"                                 \
        "DELETE FROM solid_queue_claimed_executions WHERE id = 1;"

/* Replaces each `@N` by the time N seconds ago. Returns the statements, which the caller frees. */
static char *timed(const char *sql)
{
        char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        ck_assert_ptr_nonnull(out);
        for (; *sql != '\0'; sql++) {
                int n = *sql == '@' ? (int)strspn(sql + 1, "-0123456789") : 0;

                if (n > 0)
                        (void)fprintf(out, AGO, n, sql + 1);
                else
                        (void)fputc(*sql, out);
                sql += n;
        }
        ck_assert_int_eq(fclose(out), 0);
        return text;
}

static void execute(const char *sql)
{
        char *text = timed(sql);

        execute_sql(text);
        free(text);
}

static void assert_value(const char *sql, const char *expected)
{
        char *text = timed(sql), *got = value_of_sql(text);

        ck_assert_msg(got && strcmp(got, expected) == 0, "%s: %s, not %s", sql, got ?: "nothing", expected);
        free(got);
        free(text);
}

/* A host with a supervisor of two threads, which runs job 1; a supervisor that forks; and another host. */
static void fill(void)
{
        execute("INSERT INTO solid_queue_processes"
                " (id, kind, last_heartbeat_at, supervisor_id, pid, hostname, metadata, created_at, name)"
                " VALUES (1, 'Supervisor(async)', @30, NULL, 4711, 'web-1', '{}', @3600, 's1'),"
                " (2, 'Worker', @20, 1, 4711, 'web-1', '{\"polling_interval\":0.1,"
                "\"queues\":\"low,rep*\",\"thread_pool_size\":2}', @3600, 'w2'),"
                " (3, 'Dispatcher', @10, 1, 4711, 'web-1', '{}', @3600, 'd3'),"
                " (4, 'Supervisor(async)', @30, NULL, 4712, 'web-2', NULL, @3600, 's4'),"
                " (5, 'Supervisor(fork)', @30, NULL, 4713, 'web-1', '{}', @3600, 's5'),"
                " (6, 'Worker', @30, 5, 4714, 'web-1', 'damaged', @3600, 'w6')");
        execute("INSERT INTO solid_queue_jobs"
                " (id, queue_name, class_name, arguments, priority, active_job_id, created_at, updated_at)"
                " VALUES (1, 'low', 'ReportJob', '{\"job_class\":\"ReportJob\",\"arguments\":[1]}', 5,"
                "  'uuid-1', @100, @100),"
                " (2, 'low', 'ReportJob', '{\"job_class\":\"ReportJob\"}', 0, 'uuid-2', @90, @90),"
                " (3, 'rep-a', 'ReportJob', '{\"job_class\":\"ReportJob\"}', 0, NULL, @80, @80),"
                " (4, 'rep-b', 'ReportJob', '{\"job_class\":\"ReportJob\"}', 0, 'uuid-4', @70, @70),"
                " (5, 'rep-b', 'ReportJob', NULL, 7, 'uuid-5', @60, @60),"
                " (6, 'quiet', 'ReportJob', NULL, 7, 'uuid-6', @60, @60)");
        execute("INSERT INTO solid_queue_claimed_executions (id, job_id, process_id, created_at)"
                " VALUES (1, 1, 2, @50), (2, 2, 6, @50)");
        execute("INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at)"
                " VALUES (3, 'rep-a', 0, @80), (4, 'rep-b', 0, @70), (5, 'rep-b', 7, @600)");
        execute("INSERT INTO solid_queue_scheduled_executions"
                " (job_id, queue_name, priority, scheduled_at, created_at)"
                " VALUES (6, 'quiet', 7, @-60, @60)");
        execute("INSERT INTO solid_queue_pauses (queue_name, created_at) VALUES ('rep-a', @5)");
        execute("INSERT INTO solid_queue_semaphores (key, value, expires_at, created_at, updated_at)"
                " VALUES ('ReportJob/1', 0, @-60, @60, @60)");
        execute("INSERT INTO solid_queue_failed_executions (job_id, error, created_at) VALUES (2,"
                " '{\"exception_class\":\"SolidQueue::Processes::ProcessPrunedError\"}', @60)");
}

static void begin_cases(void)
{
        begin_database();
        fill();
        begin_programs();
        reader_starter = &helpers.starter;
        database_reader_begin(database_url, SOLID_QUEUE);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
}

static void end_cases(void)
{
        database_reader_end();
        end_programs();
        end_database();
}

TEST_FIXTURE(begin_cases, end_cases)

TEST(a_poll_reads_workers_jobs_and_queues)
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, UNIT, 1);
        struct answer *forked = ask_text(QUERY_HEARTBEAT, "web-1:4713:5", 1);
        struct answer *scan = ask_scan_of("web-1"), *work_list = ask_text(QUERY_WORK_LIST, UNIT, 0);
        struct answer *jobs = ask_text(QUERY_JOBS, UNIT, 1), *queues = ask_queues_of("low|rep*|rep-b|*");
        struct answer *diagnosis = ask_text(QUERY_DIAGNOSIS, "web-1", 0);

        wait_for(diagnosis);
        ck_assert_msg(heartbeat->status == ANSWER_OK, "%s: %s", heartbeat->error.text,
                      quoted_reveal(&heartbeat->error.quoted));
        ck_assert(heartbeat->heartbeat.found && !forked->heartbeat.found);
        ck_assert_uint_eq(heartbeat->heartbeat.heartbeat.busy, 1);
        ck_assert_uint_eq(heartbeat->heartbeat.heartbeat.concurrency, 2);
        ck_assert(queue_names_have(heartbeat->heartbeat.info->queues, "rep*"));
        /* The newest heartbeat of supervisor and workers: 20 s ago; it was born an hour ago. */
        usec_t now = clock_now(CLOCK_REALTIME), sent = heartbeat->heartbeat.heartbeat.sent_usec;
        ck_assert_uint_le(usec_sub(now, sent), 29 * USEC_PER_SEC);
        ck_assert_uint_ge(usec_sub(now, sent), 20 * USEC_PER_SEC - 5 * USEC_PER_MSEC);
        ck_assert_uint_ge(usec_sub(now, heartbeat->heartbeat.heartbeat.born_usec), 3599 * USEC_PER_SEC);
        ck_assert_uint_eq(scan->scan.n, 1);
        ck_assert_str_eq(scan->scan.list[0].identity, UNIT);
        ck_assert(work_list->work_list.known && !work_list->work_list.empty);
        ck_assert_uint_eq(jobs->jobs.lists[0].n_jobs, 1);
        const struct job *job = &jobs->jobs.lists[0].jobs[0];
        ck_assert_str_eq(job->jid, "uuid-1");
        ck_assert_str_eq(job->queue, "low");
        ck_assert_str_eq(job->thread, WORKER);
        ck_assert_str_eq(job->entry, "1:1:{\"job_class\":\"ReportJob\",\"arguments\":[1]");
        const struct queues *read = queues->queues.queues;
        ck_assert_uint_eq(read->n, 4);
        ck_assert(read->list[0].size == 0 && read->list[0].latency == 0 && !read->list[0].paused);
        /* Without rep-a, which is paused. */
        ck_assert_uint_eq(read->list[1].size, 2);
        ck_assert_uint_ge(read->list[1].latency, 599 * USEC_PER_SEC);
        ck_assert_uint_lt(read->list[1].latency, 650 * USEC_PER_SEC);
        ck_assert_uint_eq(read->list[2].size, 2);
        ck_assert_uint_eq(read->list[3].size, 2);
        ck_assert_uint_eq(diagnosis->diagnosis.database.forking, 1);
        ck_assert_uint_eq(diagnosis->diagnosis.database.dispatchers, 1);
        ck_assert_uint_eq(diagnosis->diagnosis.database.schedulers, 0);
        ck_assert_uint_eq(diagnosis->diagnosis.database.paused_queues, 1);
        ck_assert_uint_eq(diagnosis->diagnosis.database.failed, 1);
        ck_assert_str_ne(diagnosis->diagnosis.database.version, "");
        ck_assert(!diagnosis->diagnosis.database.read_only);
}

TEST(all_queues_and_all_hosts)
{
        struct answer *queues = ask_queues_of(NULL), *scan = ask_scan_of(NULL);

        wait_for(scan);
        ck_assert_uint_eq(scan->scan.n, 2);
        ck_assert_str_eq(scan->scan.list[1].identity, "web-2:4712:4");
        const struct queues *read = queues->queues.queues;
        ck_assert_uint_eq(read->n, 4);
        ck_assert_str_eq(read->list[0].name, "low");
        ck_assert_str_eq(read->list[1].name, "quiet");
        ck_assert(strcmp(read->list[2].name, "rep-a") == 0 && read->list[2].paused);
        ck_assert_uint_eq(read->list[2].size, 1);
        ck_assert(!read->list[3].paused && read->list[3].size == 2);
        ck_assert_uint_eq(read->schedule, 1);
        ck_assert_uint_eq(read->dead, 1);
}

/* The number of waiting jobs is exact as long as their table is small, whatever is read of each queue. */
TEST(many_jobs_are_counted)
{
        execute("INSERT INTO solid_queue_jobs (id, queue_name, class_name, created_at, updated_at)"
                " SELECT i + 1000, CASE WHEN i % 10 = 0 THEN 'big' ELSE 'bigger' END, 'A', @1, @1 FROM (WITH "
                "RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 "
                "FROM n WHERE i < 5000)"
                " SELECT i FROM n) x");
        execute("INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at)"
                " SELECT id, queue_name, 0, @1 FROM solid_queue_jobs WHERE id > 1000");
        struct answer *queues = wait_for(ask_queues_of("big|bigger|bigg*|*"));
        const struct queues *read = queues->queues.queues;
        ck_assert_uint_eq(read->list[0].size, 500);
        ck_assert_uint_eq(read->list[1].size, 4500);
        ck_assert_uint_eq(read->list[2].size, 4500);
        ck_assert_uint_eq(read->list[3].size, 5002);
}

/* A writer to the database can make queues without end. Those that are asked for are read in any case. */
TEST(queues_without_end_are_bounded)
{
        execute("INSERT INTO solid_queue_jobs (id, queue_name, class_name, created_at, updated_at)"
                " SELECT i + 1000, 'a' || i, 'A', @1, @1 FROM"
                " (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < "
                "3000)"
                " SELECT i FROM n) x");
        struct answer *all = ask_queues_of(NULL), *named = ask_queues_of("rep-b|zz");
        const struct queues *read = wait_for(all)->queues.queues;
        ck_assert_uint_eq(read->n, QUEUES_READ_MAX);
        ck_assert_uint_ge(read->left_out, 1);
        ck_assert_uint_eq(wait_for(named)->queues.queues->list[0].size, 2);
        ck_assert_uint_eq(named->queues.queues->n, 2);
}

/* Takes the entry of the job that UNIT runs. */
static const char *entry_of_job(void)
{
        static char text[256];
        struct answer *jobs = wait_for(ask_text(QUERY_JOBS, UNIT, 1));

        ck_assert_uint_eq(jobs->jobs.lists[0].n_jobs, 1);
        snprintf(text, sizeof(text), "%s", jobs->jobs.lists[0].jobs[0].entry);
        return text;
}

static void assert_rescue(struct answer *requeue, enum rescue_outcome outcome, unsigned times)
{
        wait_for(requeue);
        ck_assert_msg(requeue->status == ANSWER_OK, "%s: %s", requeue->error.text,
                      quoted_reveal(&requeue->error.quoted));
        ck_assert_int_eq(requeue->requeue.outcome, outcome);
        ck_assert_uint_eq(requeue->requeue.times, times);
}

static void assert_unchanged(void)
{
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions WHERE id = 1", "1");
        assert_value("SELECT count(*) FROM solid_queue_ready_executions", "3");
        assert_value("SELECT arguments FROM solid_queue_jobs WHERE id = 1",
                     "{\"job_class\":\"ReportJob\",\"arguments\":[1]}");
}

/* The worker takes the job again. */
static void claim_again(void)
{
        execute("DELETE FROM solid_queue_ready_executions WHERE job_id = 1");
        execute("INSERT INTO solid_queue_claimed_executions (id, job_id, process_id, created_at) VALUES (1, "
                "1, 2, @1)");
}

TEST(a_rescue_makes_the_job_ready_and_counts)
{
        const char *entry = entry_of_job();

        assert_rescue(ask_requeue_of(UNIT, WORKER, entry, true, 2), RESCUE_REQUEUED, 1);
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions WHERE id = 1", "0");
        assert_value("SELECT queue_name || priority FROM solid_queue_ready_executions WHERE job_id = 1",
                     "low5");
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1 AND created_at > "
                     "@30 AND created_at <= @0",
                     "1");
        assert_value("SELECT arguments FROM solid_queue_jobs WHERE id = 1",
                     "{\"sqmgr_rescues\":1,\"job_class\":\"ReportJob\",\"arguments\":[1]}");
        assert_value("SELECT count(*) FROM solid_queue_processes", "6");
        assert_value("SELECT value FROM solid_queue_semaphores", "0");

        /* The same request again, whose answer was lost. */
        assert_rescue(ask_requeue_of(UNIT, WORKER, entry, true, 2), RESCUE_LEFT, 0);
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1", "1");
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions", "1");

        claim_again();
        assert_rescue(ask_requeue_of(UNIT, WORKER, entry_of_job(), true, 2), RESCUE_REQUEUED, 2);
        assert_value("SELECT arguments FROM solid_queue_jobs WHERE id = 1",
                     "{\"sqmgr_rescues\":2,\"job_class\":\"ReportJob\",\"arguments\":[1]}");
        claim_again();
        assert_rescue(ask_requeue_of(UNIT, WORKER, entry_of_job(), true, 2), RESCUE_PARKED, 0);
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions WHERE id = 1", "1");
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1", "0");
}

/* app/models/solid_queue/claimed_execution.rb:75, release(). */
#define RELEASE_CLAIM                                                                                        \
        "INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at)"                \
        " VALUES (1, 'low', 5, @0);"                                                                         \
        "DELETE FROM solid_queue_claimed_executions WHERE id = 1;"

static void assert_released(const char *entry, size_t n)
{
        /* Job 3 waits, and is none of those that the process ran. */
        const char *const entries[] = {entry, "1", "1:", "x:1:", "99999999999999999999:1:", "8:9:{\""};
        struct answer *released = wait_for(ask_released_of(entries, ELEMENTSOF(entries)));

        ck_assert_msg(released->status == ANSWER_OK, "%s: %s", released->error.text,
                      quoted_reveal(&released->error.quoted));
        ck_assert_uint_eq(released->released.n, n);
}

TEST(released_jobs_are_counted)
{
        const char *entry = entry_of_job();

        assert_released(entry, 0); /* the claim is still there */
        execute(RELEASE_CLAIM);
        assert_released(entry, 1);
        execute("DELETE FROM solid_queue_ready_executions WHERE job_id = 1;"
                "INSERT INTO solid_queue_claimed_executions (id, job_id, process_id, created_at)"
                " VALUES (7, 1, 6, @0)");
        assert_released(entry, 1); /* another process has taken it */
}

/* A job that has ended, or has failed, was not released. */
TEST_LOOP(ended_jobs_are_not_counted, 2)
{
        static const char *const ends[] = {FINISH_CLAIM, FAIL_CLAIM};
        const char *entry = entry_of_job();

        execute(ends[_i]);
        assert_released(entry, 0);
}

/* Queries of two workers are two batches: each gets its own number. */
TEST(two_workers_are_counted_by_themselves)
{
        static const char *const first[] = {"8:3:{\"a\""}, *const second[] = {"8:4:", "8:5:{\"a\"", "8:6:"};
        struct answer *one = ask_released_of(first, 1), *other = ask_released_of(second, 3);

        ck_assert_uint_eq(wait_for(other)->released.n, 2);
        ck_assert_uint_eq(wait_for(one)->released.n, 1);
}

/* The count in the request is older than that in the database: nothing is written. */
TEST(an_old_request_changes_nothing)
{
        const char *entry = entry_of_job();

        execute("UPDATE solid_queue_jobs SET arguments = '[]' WHERE id = 1");
        assert_rescue(ask_requeue_of(UNIT, WORKER, entry, true, 2), RESCUE_LOST, 0);
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions WHERE id = 1", "1");
        assert_value("SELECT count(*) FROM solid_queue_ready_executions", "3");
        assert_value("SELECT arguments FROM solid_queue_jobs WHERE id = 1", "[]");
}

TEST(a_report_writes_nothing)
{
        assert_rescue(ask_requeue_of(UNIT, WORKER, entry_of_job(), false, 2), RESCUE_LOST, 0);
        assert_unchanged();
}

static const struct {
        const char *identity, *thread, *entry;
} others[] = {
        {"web-2:4711:1", WORKER, "1:1:{\"job_class\":"},
        {"web-1:4712:1", WORKER, "1:1:{\"job_class\":"},
        {"web-1:4711:4", WORKER, "1:1:{\"job_class\":"},
        {UNIT, "6", "1:1:{\"job_class\":"},
        {UNIT, "", "1:1:{\"job_class\":"},
        {UNIT, "2 OR 1", "1:1:{\"job_class\":"},
        {UNIT, WORKER, "2:1:{\"job_class\":"},
        {UNIT, WORKER, "1:2:{\"job_class\":"},
        {UNIT, WORKER, "9:9:{\"job_class\":"},
};

/* Host, process, supervisor, worker, claim and job must all be as they were read. */
TEST_LOOP(another_process_or_claim_is_left, ELEMENTSOF(others))
{
        assert_rescue(ask_requeue_of(others[_i].identity, others[_i].thread, others[_i].entry, true, 2),
                      RESCUE_LEFT, 0);
        assert_unchanged();
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions", "2");
}

/* A job that is ready already, as after a release that was cut off, keeps one execution. */
TEST(a_ready_job_stays_ready_once)
{
        execute("INSERT INTO solid_queue_ready_executions (job_id, queue_name, priority, created_at) VALUES "
                "(1, 'low', 5,"
                " @3)");
        assert_rescue(ask_requeue_of(UNIT, WORKER, entry_of_job(), true, 2), RESCUE_REQUEUED, 1);
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1", "1");
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions WHERE id = 1", "0");
}
