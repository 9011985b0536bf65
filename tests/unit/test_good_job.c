/* SPDX-License-Identifier: MIT */
/* A reader of GoodJob's real tables in PostgreSQL: workers, leftovers of dead ones, jobs, queues. */
/* promises: P1 P5 */
#include "database_program.h"
#include "database_reader.h"
#include "frameworks/database_format.h"
#include "io/clock.h"
#include "postgresql_locks.h"
#include "tables.h"

#define LIVE "0f8fad5b-d9cb-469f-a165-70867728950e"
#define DEAD "7c9e6679-7425-40de-944b-e07fc1f90ae7"
#define FREE "16fd2706-8baf-433b-82eb-8c7fada847da" /* takes no lock */

static PGconn *worker; /* holds the lock of LIVE */

static void execute_sql(const char *sql)
{
        char *text;

        ck_assert_int_ge(asprintf(&text, "SET client_min_messages = warning; SET timezone = 'UTC'; %s", sql),
                         0);
        free(postgresql_execute(text));
        free(text);
}

static void fill(void)
{
        /* lib/good_job/scheduler.rb:209, app/models/good_job/process.rb:111. */
        execute_sql("INSERT INTO good_job_processes (id, created_at, updated_at, state, lock_type) SELECT"
                    " CAST(v.id AS uuid), now() - interval '1 h', now() - v.age * interval '1 s',"
                    " jsonb_build_object('hostname', 'web-1', 'pid', v.pid, 'schedulers', jsonb_build_array("
                    "  jsonb_build_object('queues', '+b,a', 'max_threads', 3),"
                    "  jsonb_build_object('queues', '-a', 'max_threads', 2))), v.lock"
                    " FROM (VALUES ('" LIVE "', 10, 4711, 0), ('" DEAD "', 20, 4712, 0),"
                    "  ('" FREE "', 30, 4713, NULL)) v (id, age, pid, lock)");
        execute_sql(
                "INSERT INTO good_job_processes (created_at, updated_at, state) VALUES (now(), now(), NULL),"
                " (now(), now(), '[]'), (now(), now(), '{\"hostname\": {}, \"pid\": -1}')");
        execute_sql("INSERT INTO good_jobs (id, active_job_id, queue_name, job_class, created_at, updated_at,"
                    " scheduled_at, locked_by_id, locked_at, performed_at, finished_at, error)"
                    " SELECT gen_random_uuid(), CAST(v.job AS uuid), v.queue, 'ReportJob', now(), now(),"
                    " now() - v.age * interval '1 s', CAST(v.worker AS uuid), now(), v.performed, "
                    "v.finished, v.error"
                    " FROM (VALUES (NULL, 'a', 100, NULL, NULL::timestamp, NULL::timestamp, NULL),"
                    "  (NULL, 'a', 50, NULL, NULL, NULL, NULL), (NULL, 'b', 70, NULL, now(), NULL, NULL),"
                    "  (NULL, 'b', -70, NULL, NULL, NULL, NULL), (NULL, 'c', 90, NULL, NULL, NULL, NULL),"
                    "  ('" FREE "', 'b', 500, '" LIVE "', now(), NULL, NULL),"
                    "  (NULL, 'done', 500, NULL, now(), now(), NULL), (NULL, 'done', 500, NULL, now(), "
                    "now(), 'E'))"
                    " v (job, queue, age, worker, performed, finished, error)");
        /* app/models/good_job/setting.rb:62, pause(). */
        execute_sql("INSERT INTO good_job_settings (created_at, updated_at, key, value) VALUES (now(), "
                    "now(), 'pauses',"
                    " '{\"queues\": [\"c\"], \"job_classes\": [], \"labels\": []}')");
}

static void begin(void)
{
        char *tables = tables_read("good_job/postgresql.sql");

        postgresql_start();
        execute_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
                    " ALTER ROLE postgres SET timezone = 'Asia/Tokyo'");
        execute_sql(tables);
        free(tables);
        fill();
        worker = PQconnectdb(postgresql_url);
        /* app/models/concerns/good_job/advisory_lockable.rb:578. */
        PQclear(PQexec(worker, "SELECT pg_advisory_lock(('x' || substr(md5('good_job_processes-" LIVE
                               "'), 1, 16))::bit(64)::bigint)"));
        begin_programs();
        reader_starter = &helpers.starter;
        database_reader_begin(postgresql_url, GOOD_JOB);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
}

static void end(void)
{
        database_reader_end();
        end_programs();
        PQfinish(worker);
        postgresql_kill();
}

TEST_FIXTURE(begin, end)

TEST(a_poll_reads_workers_jobs_and_queues)
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:" LIVE, 1);
        struct answer *dead = ask_text(QUERY_HEARTBEAT, "web-1:4712:" DEAD, 1);
        struct answer *scan = ask_scan_of("web-1"), *others = ask_scan_of("web-2");
        struct answer *jobs = ask_text(QUERY_JOBS, "web-1:4711:" LIVE, 0);
        struct answer *queues = ask_queues_of("a|-a|*|none"), *all = ask_queues_of(NULL);
        struct answer *diagnosis = ask_text(QUERY_DIAGNOSIS, "web-1", 0);

        wait_for(diagnosis);
        ck_assert_msg(heartbeat->status == ANSWER_OK, "%s: %s", heartbeat->error.text,
                      quoted_reveal(&heartbeat->error.quoted));
        ck_assert(heartbeat->heartbeat.found && !dead->heartbeat.found);
        ck_assert_uint_eq(heartbeat->heartbeat.heartbeat.busy, 1);
        ck_assert_uint_eq(heartbeat->heartbeat.heartbeat.concurrency, 5);
        ck_assert(queue_names_have(heartbeat->heartbeat.info->queues, "b"));
        ck_assert(queue_names_have(heartbeat->heartbeat.info->queues, "-a"));
        usec_t age = usec_sub(clock_now(CLOCK_REALTIME), heartbeat->heartbeat.heartbeat.sent_usec);
        ck_assert_uint_ge(age, 10 * USEC_PER_SEC - 5 * USEC_PER_MSEC);
        ck_assert_uint_lt(age, 30 * USEC_PER_SEC);
        ck_assert_uint_eq(scan->scan.n, 2);
        ck_assert_str_eq(scan->scan.list[0].identity, "web-1:4711:" LIVE);
        ck_assert_str_eq(scan->scan.list[1].identity, "web-1:4713:" FREE);
        ck_assert_uint_eq(others->scan.n, 0);
        ck_assert_uint_eq(jobs->jobs.lists[0].n_jobs, 1);
        ck_assert_str_eq(jobs->jobs.lists[0].jobs[0].jid, FREE);
        ck_assert_str_eq(jobs->jobs.lists[0].jobs[0].class, "ReportJob");
        const struct queue *list = queues->queues.queues->list;
        ck_assert_uint_eq(queues->queues.queues->n, 4);
        ck_assert_uint_eq(list[0].size, 2);
        ck_assert(list[0].latency >= 100 * USEC_PER_SEC && list[0].latency < 130 * USEC_PER_SEC);
        ck_assert_uint_eq(list[1].size, 1);
        ck_assert(list[1].latency >= 70 * USEC_PER_SEC && list[1].latency < 100 * USEC_PER_SEC);
        ck_assert_uint_eq(list[2].size, 3);
        ck_assert_uint_eq(list[3].size, 0);
        const struct queues *read = all->queues.queues;
        ck_assert_uint_eq(read->n, 4);
        ck_assert(strcmp(read->list[2].name, "c") == 0 && read->list[2].paused && read->list[2].size == 1);
        ck_assert_uint_eq(read->schedule, 1);
        ck_assert_uint_eq(read->dead, 1);
        ck_assert_uint_eq(diagnosis->diagnosis.database.paused_queues, 1);
        ck_assert(!diagnosis->diagnosis.database.has_roles);
}

/* Returns once the process of the old connection has released its locks. */
static void reconnect_worker(void)
{
        char left[96];

        snprintf(left, sizeof(left), "SELECT count(*) FROM pg_locks WHERE pid = %d", PQbackendPID(worker));
        PQreset(worker);
        for (bool released = false; !released;) {
                char *n = postgresql_execute(left);
                released = strcmp(n, "0") == 0;
                free(n);
        }
}

/* PostgreSQL itself shows the death of a process: the lock falls with its connection. */
TEST(a_process_without_its_lock_is_a_leftover)
{
        ck_assert(wait_for(ask_text(QUERY_HEARTBEAT, "web-1:4711:" LIVE, 0))->heartbeat.found);
        reconnect_worker();
        ck_assert(!wait_for(ask_text(QUERY_HEARTBEAT, "web-1:4711:" LIVE, 0))->heartbeat.found);
        PQclear(PQexec(worker, "SELECT pg_advisory_lock(hashtext('good_job_processes-" LIVE "')::bigint)"));
        ck_assert(wait_for(ask_text(QUERY_HEARTBEAT, "web-1:4711:" LIVE, 0))->heartbeat.found);
        /* The lock of another database is another one. */
        reconnect_worker();
        free(postgresql_execute("CREATE DATABASE other"));
        char url[200];
        snprintf(url, sizeof(url), "postgresql://postgres@/other?host=%s", postgresql_folder);
        PGconn *other = PQconnectdb(url);
        PQclear(PQexec(other, "SELECT pg_advisory_lock(('x' || substr(md5('good_job_processes-" LIVE
                              "'), 1, 16))::bit(64)::bigint)"));
        ck_assert(!wait_for(ask_text(QUERY_HEARTBEAT, "web-1:4711:" LIVE, 0))->heartbeat.found);
        PQfinish(other);
        free(postgresql_execute("DROP DATABASE other"));
}

TEST(reading_locks_nothing)
{
        check_locks(database_format_of(GOOD_JOB)->engines[DATABASE_POSTGRESQL], "[\"" LIVE "\"]");
}

TEST_MAIN("good_job", .once = {postgresql_make, postgresql_remove}, .is_missing = postgresql_is_missing)
