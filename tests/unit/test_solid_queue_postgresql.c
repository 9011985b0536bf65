/* SPDX-License-Identifier: MIT */
/* A reader of Solid Queue's real tables in PostgreSQL: its answers, and rescues of jobs that Solid Queue
 * fails or finishes at the same time. */
/* promises: P1 P5 */
#include "frameworks/database_format.h"
#include "postgresql_locks.h"
#include "tables.h"
#include <pthread.h>

#define AGO "(now() - %.*s * interval '1 second')"

static char database_url[160];

/* As Rails does, whatever the time zone of the role. */
static char *value_of_sql(const char *sql)
{
        char *text;

        ck_assert_int_ge(asprintf(&text, "SET client_min_messages = warning; SET timezone = 'UTC'; %s", sql),
                         0);
        char *got = postgresql_execute(text);
        free(text);
        return got;
}

static void execute_sql(const char *sql)
{
        free(value_of_sql(sql));
}

static void begin_database(void)
{
        char *tables = tables_read("solid_queue/postgresql.sql");

        postgresql_start();
        snprintf(database_url, sizeof(database_url), "%s", postgresql_url);
        execute_sql("DROP SCHEMA public CASCADE; CREATE SCHEMA public;"
                    " ALTER ROLE postgres SET timezone = 'Asia/Tokyo'");
        execute_sql(tables);
        free(tables);
}

static void end_database(void)
{
        postgresql_kill();
}

#include "solid_queue_cases.h"

/* Tests are sorted by their lines, whatever the file. */
TEST_FIXTURE(begin_cases, end_cases)

static void *commit_later(void *connection)
{
        (void)usleep(300000);
        PQclear(PQexec(connection, "COMMIT"));
        return NULL;
}

#define LOCK_CLAIM "SELECT id FROM solid_queue_claimed_executions WHERE id = 1 FOR UPDATE;"
static const char *const rivals[] = {LOCK_CLAIM FAIL_CLAIM, LOCK_CLAIM FINISH_CLAIM};

/* Solid Queue fails or finishes the job in a transaction that is under way: the rescue waits, and leaves the
 * job. */
TEST_LOOP(a_rescue_behind_solid_queue_leaves_the_job, ELEMENTSOF(rivals))
{
        const char *entry = entry_of_job();
        PGconn *connection = PQconnectdb(postgresql_url);
        pthread_t thread;

        PQclear(PQexec(connection, "SET timezone = 'UTC'; BEGIN"));
        char *text = timed(rivals[_i]);
        PGresult *result = PQexec(connection, text);
        ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(connection));
        PQclear(result);
        free(text);
        struct answer *requeue = ask_requeue_of(UNIT, WORKER, entry, true, 2);
        ck_assert_int_eq(pthread_create(&thread, NULL, commit_later, connection), 0);
        assert_rescue(requeue, RESCUE_LEFT, 0);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        PQfinish(connection);
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1", "0");
        assert_value("SELECT arguments FROM solid_queue_jobs WHERE id = 1",
                     "{\"job_class\":\"ReportJob\",\"arguments\":[1]}");
}

/* app/models/solid_queue/claimed_execution.rb:118: the claim is locked, or is gone. */
static void *fail_claim(void *unused _unused_)
{
        PGconn *connection = PQconnectdb(postgresql_url);

        PQclear(PQexec(connection, "SET timezone = 'UTC'; BEGIN"));
        PGresult *result = PQexec(connection, LOCK_CLAIM);
        char *text = timed(FAIL_CLAIM);
        if (PQntuples(result) == 1)
                PQclear(PQexec(connection, text));
        free(text);
        PQclear(result);
        PQclear(PQexec(connection, "COMMIT"));
        PQfinish(connection);
        return NULL;
}

#define RACES 40

/* A job is either failed by Solid Queue or made ready by the rescue: never both, never neither. */
TEST(a_race_has_one_winner)
{
        unsigned ready = 0, failed = 0;

        execute("DELETE FROM solid_queue_failed_executions");
        for (unsigned i = 0; i < RACES; i++) {
                const char *entry = entry_of_job();
                pthread_t thread;

                ck_assert_int_eq(pthread_create(&thread, NULL, fail_claim, NULL), 0);
                (void)usleep(i % 20 * 300);
                struct answer *requeue = wait_for(ask_requeue_of(UNIT, WORKER, entry, true, 1000));
                ck_assert_int_eq(pthread_join(thread, NULL), 0);
                ck_assert_int_eq(requeue->status, ANSWER_OK);
                bool won = requeue->requeue.outcome == RESCUE_REQUEUED;
                ck_assert(won || requeue->requeue.outcome == RESCUE_LEFT);
                *(won ? &ready : &failed) += 1;
                assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1",
                             won ? "1" : "0");
                assert_value("SELECT count(*) FROM solid_queue_failed_executions WHERE job_id = 1",
                             won ? "0" : "1");
                assert_value("SELECT count(*) FROM solid_queue_claimed_executions WHERE job_id = 1", "0");
                execute("DELETE FROM solid_queue_failed_executions");
                claim_again();
                database_reader_forget_answers();
        }
        printf("of %d races, the rescue won %u\n", RACES, ready);
        ck_assert_uint_eq(ready + failed, RACES);
}

/* Another host removes the supervisor's row in the middle of the rescue: the job is made ready, and does not
 * stay claimed beside that. */
TEST(a_supervisor_that_vanishes_leaves_no_job_claimed_and_ready)
{
        const char *entry = entry_of_job();
        PGconn *connection = PQconnectdb(postgresql_url);
        pthread_t thread;

        PQclear(PQexec(connection, "BEGIN"));
        /* The rescue waits for this when it counts. */
        PGresult *result = PQexec(connection, "UPDATE solid_queue_jobs SET priority = priority WHERE id = 1;"
                                              " DELETE FROM solid_queue_processes WHERE id = 1");
        ck_assert_msg(PQresultStatus(result) == PGRES_COMMAND_OK, "%s", PQerrorMessage(connection));
        PQclear(result);
        struct answer *requeue = ask_requeue_of(UNIT, WORKER, entry, true, 2);
        ck_assert_int_eq(pthread_create(&thread, NULL, commit_later, connection), 0);
        assert_rescue(requeue, RESCUE_REQUEUED, 1);
        ck_assert_int_eq(pthread_join(thread, NULL), 0);
        PQfinish(connection);
        assert_value("SELECT count(*) FROM solid_queue_claimed_executions WHERE job_id = 1", "0");
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1", "1");
        assert_value("SELECT arguments FROM solid_queue_jobs WHERE id = 1",
                     "{\"sqmgr_rescues\":1,\"job_class\":\"ReportJob\",\"arguments\":[1]}");
}

/* Two hosts, or a repeated request, at once: one of them puts the job back. */
TEST(two_rescues_put_a_job_back_once)
{
        const char *entry = entry_of_job();
        struct answer *first = ask_requeue_of(UNIT, WORKER, entry, true, 2);
        struct answer *second = ask_requeue_of(UNIT, WORKER, entry, true, 2);

        assert_rescue(first, RESCUE_REQUEUED, 1);
        assert_rescue(second, RESCUE_LEFT, 0);
        assert_value("SELECT count(*) FROM solid_queue_ready_executions WHERE job_id = 1", "1");
}

/* A claim that stays locked does not hold up the reader beyond its time limit, and the job stays claimed. */
TEST(a_locked_claim_is_given_up)
{
        const char *entry = entry_of_job();
        PGconn *connection = PQconnectdb(postgresql_url);

        PQclear(PQexec(connection, "SET timezone = 'UTC'; BEGIN"));
        PQclear(PQexec(connection, LOCK_CLAIM));
        struct answer *requeue = wait_for(ask_requeue_of(UNIT, WORKER, entry, true, 2));
        ck_assert_int_ne(requeue->status, ANSWER_OK);
        PQfinish(connection);
        assert_unchanged();
        /* Once the lock is gone, the request succeeds. */
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        assert_rescue(ask_requeue_of(UNIT, WORKER, entry, true, 2), RESCUE_REQUEUED, 1);
}

/* A migration locks a table: heartbeats that are not shown are not missing. */
TEST(a_locked_table_shows_that_the_database_is_away)
{
        PGconn *connection = PQconnectdb(postgresql_url);

        PQclear(PQexec(connection, "BEGIN; LOCK TABLE solid_queue_claimed_executions"));
        ck_assert_int_eq(wait_for(ask_text(QUERY_HEARTBEAT, UNIT, 0))->status, ANSWER_LOST);
        ck_assert_int_eq(reader_state(reader), READER_STATE_DOWN);
        PQfinish(connection);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        ck_assert_int_eq(wait_for(ask_text(QUERY_HEARTBEAT, UNIT, 0))->status, ANSWER_OK);
}

TEST(reading_locks_nothing)
{
        check_locks(database_format_of(SOLID_QUEUE)->engines[DATABASE_POSTGRESQL], "[\"1\"]");
}

TEST_MAIN("solid_queue_postgresql", .once = {postgresql_make, postgresql_remove},
          .is_missing = postgresql_is_missing)
