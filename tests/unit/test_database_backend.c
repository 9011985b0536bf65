/* SPDX-License-Identifier: MIT */
/* How a database is read in batches of queries, and answers them, with a driver that is the test. */
/* promises: P5 P8 */
#include "database_reader.h"
#include "fake_database.h"
#include "frameworks/database_format.h"
#include "rows.h"

#define URL "postgresql://app:secret@db/queue"

static void begin(void)
{
        database_reader_begin(URL, SOLID_QUEUE);
        run_until(fake.database);
        fake_state(DATABASE_CONNECTED, NULL);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
}

static void end(void)
{
        database_reader_end();
        event = sd_event_unref(event);
        fake = (struct fake_database){.engine = DATABASE_POSTGRESQL};
}

/* Waits for the batch, whose number is n. */
static void run_batch(unsigned n)
{
        run_until(fake.batches >= n);
        ck_assert_uint_eq(fake.batches, n);
}

static void give_worker(const char *id, const char *pid, const char *sent)
{
        ck_assert_int_eq(fake_row("last_heartbeat_at", row_of(id, "Supervisor(async)", "web-1", pid, sent,
                                                              "1795755600", "{}", "0")),
                         0);
        ck_assert_int_eq(fake_row("last_heartbeat_at",
                                  row_of(id, "Worker", "web-1", pid, sent, "1795755600",
                                         "{\"queues\":\"low,rep*\",\"thread_pool_size\":3}", "2")),
                         0);
}

static const char *parameter(const char *part, size_t i)
{
        int statement = fake_find(part);

        ck_assert_msg(statement >= 0, "no statement contains '%s'", part);
        return fake.batch.statements[statement].parameters[i] ?: "NULL";
}

TEST_FIXTURE(begin, end)

TEST(the_connection_gets_url_and_probe)
{
        ck_assert_str_eq(fake.url, URL);
        ck_assert_ptr_nonnull(strstr(fake.probe, "solid_queue_processes"));
        ck_assert_uint_eq(reader_connection_count(reader), 1);
        fake_state(DATABASE_DOWN, "no route to host");
        run_until(reader_state(reader) == READER_STATE_DOWN);
        ck_assert_str_eq(reader_error(reader)->text, "no route to host");
}

/* All queries of a poll are one batch, in which each statement runs once, and those about queues the next. */
TEST(queries_of_a_poll_are_two_batches)
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 1);
        struct answer *other = ask_text(QUERY_HEARTBEAT, "web-1:4712:8", 0);
        struct answer *gone = ask_text(QUERY_HEARTBEAT, "web-1:4713:9", 0);
        struct answer *work_list = ask_text(QUERY_WORK_LIST, "web-1:4711:7", 0);
        struct answer *scan = ask_scan_of("web-1");
        struct answer *queues = ask_queues_of("low|rep*");
        struct answer *jobs = ask_text(QUERY_JOBS, "web-1:4711:7", 1);

        run_batch(1);
        ck_assert(!fake.batch.writes);
        ck_assert_uint_eq(fake.batch.n, 3);
        ck_assert_int_eq(fake_find("TimeZone"), 0);
        ck_assert_str_eq(parameter("last_heartbeat_at", 0), "[\"web-1\"]");
        ck_assert_str_eq(parameter("JOIN solid_queue_jobs j", 0), "[\"7\"]");
        give_worker("8", "4712", "1795759200");
        give_worker("7", "4711", "1795759201.5");
        ck_assert_int_eq(fake_row("JOIN solid_queue_jobs j",
                                  row_of("web-1", "4711", "7", "17", "a-uuid", "ReportJob", "low",
                                         "1795759000", "31", "41", "{\"job_class\"")),
                         0);
        ck_assert(!is_answered(heartbeat));
        fake_done(DATABASE_DONE, NULL);

        wait_for(jobs);
        run_batch(2);
        ck_assert_str_eq(parameter("solid_queue_pauses", 0), "[\"low\"]");
        ck_assert_str_eq(parameter("solid_queue_pauses", 1), "1001");
        ck_assert_int_eq(
                fake_row("solid_queue_pauses", row_of("rep-a", "3", "1795759100", "1795759200", "0")), 0);
        ck_assert_int_eq(fake_row("solid_queue_pauses", row_of("low", "2", "1795759170", "1795759200", "1")),
                         0);
        fake_done(DATABASE_DONE, NULL);
        wait_for(queues);
        ck_assert_int_eq(heartbeat->status, ANSWER_OK);
        ck_assert(heartbeat->heartbeat.found);
        ck_assert_uint_eq(heartbeat->heartbeat.heartbeat.sent_usec, UINT64_C(1795759201500000));
        ck_assert_uint_eq(heartbeat->heartbeat.heartbeat.busy, 2);
        ck_assert_uint_eq(heartbeat->heartbeat.info->concurrency, 3);
        ck_assert(queue_names_have(heartbeat->heartbeat.info->queues, "rep*"));
        ck_assert_uint_eq(reader_rtt_usec(reader), 1234);
        ck_assert(other->heartbeat.found && !other->heartbeat.info);
        ck_assert(gone->status == ANSWER_OK && !gone->heartbeat.found);
        ck_assert(work_list->work_list.known && !work_list->work_list.empty);
        ck_assert_uint_eq(scan->scan.n, 2);
        ck_assert_str_eq(scan->scan.list[0].identity, "web-1:4711:7");
        ck_assert_int_eq(scan->scan.list[0].pid, 4711);
        ck_assert_str_eq(scan->scan.cursor, "");
        ck_assert_str_eq(queues_text(queues->queues.queues), "low=2/30p rep*=3/100");
        ck_assert_uint_eq(jobs->jobs.n, 1);
        ck_assert_uint_eq(jobs->jobs.lists[0].n_jobs, 1);
        ck_assert_str_eq(jobs->jobs.lists[0].jobs[0].class, "ReportJob");
        ck_assert_str_eq(jobs->jobs.lists[0].jobs[0].entry, "31:41:{\"job_class\"");
}

/* Rows may have been read before a query arrived: it is answered from the next batch. */
TEST(a_query_during_a_batch_waits_for_the_next)
{
        struct answer *first = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);

        run_batch(1);
        struct answer *second = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);
        struct answer *other = ask_for(&(struct query){.kind = QUERY_SCANNERS});
        wait_for(other);
        ck_assert_uint_eq(fake.batches, 1);
        give_worker("7", "4711", "1795759200");
        fake_done(DATABASE_DONE, NULL);
        wait_for(first);
        run_batch(2);
        ck_assert(!is_answered(second));
        give_worker("7", "4711", "1795759260");
        fake_done(DATABASE_DONE, NULL);
        ck_assert_uint_eq(wait_for(second)->heartbeat.heartbeat.sent_usec, UINT64_C(1795759260000000));
        ck_assert_uint_eq(first->heartbeat.heartbeat.sent_usec, UINT64_C(1795759200000000));
}

TEST(a_scan_of_all_hosts_has_no_host)
{
        struct answer *scan = ask_scan_of(NULL), *heartbeat = ask_text(QUERY_HEARTBEAT, "web-2:1:2", 0);

        run_batch(1);
        ck_assert_str_eq(parameter("last_heartbeat_at", 0), "NULL");
        give_worker("7", "4711", "1795759200");
        give_worker("7", "4711", "1795759200");
        fake_done(DATABASE_DONE, NULL);
        ck_assert_uint_eq(wait_for(scan)->scan.n, 1);
        ck_assert(!wait_for(heartbeat)->heartbeat.found);
}

/* A name that cannot be that of a host in the database asks for no host. */
TEST(impossible_identities_are_not_found)
{
        static const char *const identities[] = {"", "web-1", "web-1:4711:x", ":1:2", "\xff:4711:7"};
        struct answer *answer[ELEMENTSOF(identities)];

        for (size_t i = 0; i < ELEMENTSOF(identities); i++)
                answer[i] = ask_text(QUERY_HEARTBEAT, identities[i], 0);
        run_batch(1);
        ck_assert_str_eq(parameter("last_heartbeat_at", 0), "[]");
        fake_done(DATABASE_DONE, NULL);
        for (size_t i = 0; i < ELEMENTSOF(identities); i++) {
                wait_for(answer[i]);
                ck_assert(answer[i]->status == ANSWER_OK && !answer[i]->heartbeat.found);
        }
}

/* A list of jobs is handed out once, so the second query for it is answered by the next batch. */
TEST(two_queries_for_the_same_jobs_are_two_batches)
{
        struct answer *first = ask_text(QUERY_JOBS, "web-1:4711:7", 0);
        struct answer *other = ask_text(QUERY_JOBS, "web-1:4712:8", 0);
        struct answer *second = ask_text(QUERY_JOBS, "web-1:4711:7", 0);

        for (unsigned n = 1; n <= 2; n++) {
                run_batch(n);
                ck_assert_str_eq(parameter("JOIN solid_queue_jobs j", 0),
                                 n == 1 ? "[\"7\",\"8\"]" : "[\"7\"]");
                ck_assert_int_eq(fake_row("JOIN solid_queue_jobs j",
                                          row_of("web-1", "4711", "7", "17", "a-uuid", "ReportJob", "low",
                                                 "1795759000", "31", "41", "{\"job_class\"")),
                                 0);
                fake_done(DATABASE_DONE, NULL);
        }
        wait_for(second);
        ck_assert_uint_eq(first->jobs.lists[0].n_jobs, 1);
        ck_assert_uint_eq(second->jobs.lists[0].n_jobs, 1);
        ck_assert_uint_eq(other->jobs.lists[0].n_jobs, 0);
}

/* A list that may be incomplete would show workers as gone, or idle. */
TEST(a_list_without_end_is_no_list)
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);
        int r = 0;

        run_batch(1);
        give_worker("7", "4711", "1795759200");
        for (size_t i = 3; i < DATABASE_LIST_MAX && r == 0; i++)
                r = fake_row("last_heartbeat_at", row_of("1"));
        ck_assert_int_eq(r, 0);
        ck_assert_int_eq(fake_row("last_heartbeat_at", row_of("1")), -E2BIG);
        fake_done(DATABASE_LOST, "too many rows");
        ck_assert_int_eq(wait_for(heartbeat)->status, ANSWER_LOST);
}

TEST(all_queues_are_bounded_and_counted)
{
        struct answer *queues = ask_queues_of(NULL);

        run_batch(1);
        ck_assert_str_eq(parameter("solid_queue_pauses", 0), "[]");
        for (size_t i = 0; i < QUEUES_READ_MAX + 1; i++) {
                char name[16];

                snprintf(name, sizeof(name), "q%05zu", QUEUES_READ_MAX - i);
                ck_assert_int_eq(fake_row("solid_queue_pauses", row_of(name, "1", NULL, "1", "0")), 0);
        }
        ck_assert_int_eq(fake_row("solid_queue_failed_executions", row_of("17", "18")), 0);
        fake_done(DATABASE_DONE, NULL);
        const struct queues *read = wait_for(queues)->queues.queues;
        ck_assert_uint_eq(read->n, QUEUES_READ_MAX);
        ck_assert_uint_eq(read->left_out, 1);
        ck_assert_str_eq(read->list[0].name, "q00000");
        ck_assert_uint_eq(read->schedule, 17);
        ck_assert_uint_eq(read->dead, 18);
}

/* Without a pattern, only the named queues are read. */
TEST(named_queues_are_read_alone)
{
        struct answer *queues = ask_queues_of("low|none");

        run_batch(1);
        ck_assert_str_eq(parameter("solid_queue_pauses", 0), "[\"low\",\"none\"]");
        ck_assert_str_eq(parameter("solid_queue_pauses", 1), "0");
        ck_assert_int_eq(fake_find("solid_queue_failed_executions"), -1);
        ck_assert_int_eq(fake_row("solid_queue_pauses", row_of("low", "2", NULL, "1795759200", "0")), 0);
        fake_done(DATABASE_DONE, NULL);
        ck_assert_str_eq(queues_text(wait_for(queues)->queues.queues), "low=2/? none=0/?");
}

TEST(doctor_gets_facts)
{
        struct answer *diagnosis = ask_text(QUERY_DIAGNOSIS, "web-1", 0);

        run_batch(1);
        ck_assert_str_eq(parameter("pg_is_in_recovery", 0), "[\"web-1\"]");
        ck_assert_int_eq(fake_row("pg_is_in_recovery", row_of("15.18", "0", "2", "1", "1", "3", "0", "4")),
                         0);
        fake_done(DATABASE_DONE, NULL);
        wait_for(diagnosis);
        ck_assert_str_eq(diagnosis->diagnosis.database.version, "15.18");
        ck_assert_uint_eq(diagnosis->diagnosis.database.forking, 2);
}

TEST(released_jobs_are_asked_for_with_their_claims)
{
        static const char *const entries[] = {"31:41:{\"a\"", "no job", "32:42:"}, *const none[] = {"no job"};
        struct answer *released = ask_released_of(entries, 3), *other = ask_released_of(none, 1);

        run_batch(1);
        ck_assert_str_eq(parameter("c.id <>", 0), "[[\"31\",\"41\"],[\"32\",\"42\"]]");
        ck_assert_int_eq(fake_row("c.id <>", row_of("1")), 0);
        fake_done(DATABASE_DONE, NULL);
        ck_assert_uint_eq(wait_for(released)->released.n, 1);
        run_batch(2);
        ck_assert_str_eq(parameter("c.id <>", 0), "[]");
        ck_assert_int_eq(fake_row("c.id <>", row_of("1001")), 0); /* more than can be: nothing is known */
        fake_done(DATABASE_DONE, NULL);
        ck_assert_uint_eq(wait_for(other)->released.n, 0);
}

static const enum database_result failures[] = {DATABASE_LOST, DATABASE_REFUSED};

/* Rows of a batch that fails are dropped. A database that refuses to show processes is down. */
TEST_LOOP(a_failed_batch_answers_nothing, ELEMENTSOF(failures))
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);
        struct answer *scan = ask_scan_of("web-1");

        run_batch(1);
        give_worker("7", "4711", "1795759200");
        fake_done(failures[_i], "no reply in time");
        wait_for(scan);
        ck_assert_int_eq(heartbeat->status, ANSWER_LOST);
        ck_assert_int_eq(scan->status, ANSWER_LOST);
        ck_assert_str_eq(scan->error.text, "no reply in time");
        ck_assert_int_eq(reader_state(reader) == READER_STATE_DOWN, failures[_i] == DATABASE_REFUSED);
        fake_state(DATABASE_CONNECTED, NULL);
        struct answer *next = ask_scan_of("web-1");
        run_batch(2);
        fake_done(DATABASE_DONE, NULL);
        ck_assert_uint_eq(wait_for(next)->scan.n, 0);
}

/* A statement about queues may take too long: what is refused with it is not what shows processes. */
TEST(queues_are_read_in_a_batch_of_their_own)
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);
        struct answer *queues = ask_for(&(struct query){.kind = QUERY_QUEUES, .numbers = {1}});

        run_batch(1);
        ck_assert_int_lt(fake_find("queue_name"), 0);
        fake_done(DATABASE_DONE, NULL);
        ck_assert_int_eq(wait_for(heartbeat)->status, ANSWER_OK);
        run_batch(2);
        ck_assert_int_lt(fake_find("last_heartbeat_at"), 0);
        fake_done(DATABASE_REFUSED, "statement timeout");
        ck_assert_int_eq(wait_for(queues)->status, ANSWER_REFUSED);
        ck_assert_int_eq(reader_state(reader), READER_STATE_CONNECTED);
}

static const int errors[] = {-ENOTCONN, -ENOMEM, -EBUSY};

TEST_LOOP(a_batch_that_cannot_be_sent_is_lost, ELEMENTSOF(errors))
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);
        struct answer *requeue = ask_requeue_of("web-1:4711:7", "17", "31:41:{\"a\"", true, 3);

        fake.refuses = errors[_i];
        wait_for(requeue);
        ck_assert_int_eq(heartbeat->status, ANSWER_LOST);
        ck_assert_int_eq(requeue->status, ANSWER_LOST);
        ck_assert_uint_eq(fake.batches, 0);
}

/* While the database is away, sqmgr's own end refuses queries; one that was sent before is lost. */
TEST(a_query_without_a_connection_is_lost)
{
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);

        fake_state(DATABASE_DOWN, "gone");
        wait_for(heartbeat);
        ck_assert_int_eq(heartbeat->status, ANSWER_LOST);
        ck_assert_uint_eq(fake.batches, 0);
}

TEST(the_end_of_the_server_loses_its_queries)
{
        struct answer *running = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);

        run_batch(1);
        struct answer *waiting = ask_requeue_of("web-1:4711:7", "17", "31:41:{\"a\"", true, 3);
        reader = reader_free(reader);
        ck_assert_int_eq(running->status, ANSWER_LOST);
        ck_assert_int_eq(waiting->status, ANSWER_LOST);
        ck_assert_ptr_null(fake.database);
}

static void free_at_answer(struct answer *answer _unused_, void *userdata)
{
        ++*(unsigned *)userdata;
        reader = reader_free(reader);
}

/* Queries of the same batch, and queries that wait for the next batch, are lost. */
TEST_LOOP(an_answer_may_free_the_server, 2)
{
        const struct field identity = QUERY_TEXT("web-1:4711:7");
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = &identity, .n_texts = 1};
        unsigned n = 0;

        for (unsigned i = 0; i < 2; i++)
                ck_assert_int_eq(reader_ask(reader, &query, free_at_answer, &n), 0);
        run_batch(1);
        ck_assert_int_eq(reader_ask(reader, &query, free_at_answer, &n), 0);
        give_worker("7", "4711", "1795759200");
        fake_done(_i == 0 ? DATABASE_DONE : DATABASE_LOST, _i == 0 ? NULL : "gone");
        ck_assert_uint_eq(n, 3);
        ck_assert_ptr_null(fake.database);
}

TEST(a_query_for_redis_is_refused)
{
        struct answer *answer = wait_for(ask_text(QUERY_SIGNAL, "a", 0));

        ck_assert_int_eq(answer->status, ANSWER_REFUSED);
}

/* A scan costs the database no more than a poll, so no permit is needed. */
TEST(hosts_that_scan_are_not_counted)
{
        struct answer *scanners = wait_for(ask_for(&(struct query){.kind = QUERY_SCANNERS, .numbers = {1}}));

        ck_assert(scanners->status == ANSWER_OK && scanners->scanners.blind);
        ck_assert(!scanners->scanners.members_known);
        ck_assert_int_eq(wait_for(ask_for(&(struct query){.kind = QUERY_SCAN_LEAVE}))->status, ANSWER_OK);
        ck_assert_uint_eq(fake.batches, 0);
}

static const struct {
        const char *entry;
        bool puts_back;
        uint64_t limit;
        const char *row; /* of the check; NULL: none */
        bool writes;
        enum rescue_outcome outcome;
        unsigned times;
} rescues[] = {
        {"31:41:{\"a\"", true, 3, "1", true, RESCUE_REQUEUED, 1},
        {"31:41:{\"sqmgr_rescues\":2,", true, 3, "1", true, RESCUE_REQUEUED, 3},
        {"31:41:{\"sqmgr_rescues\":3,", true, 3, "1", false, RESCUE_PARKED, 0},
        {"31:41:{\"sqmgr_rescues\":3,", true, 3, NULL, false, RESCUE_LEFT, 0},
        {"31:41:{\"a\"", true, 3, NULL, true, RESCUE_LEFT, 0},
        {"31:41:{\"a\"", true, 3, "0", true, RESCUE_LOST, 0},
        {"31:41:{\"a\"", false, 3, "1", false, RESCUE_LOST, 0},
        {"31:41:{\"a\"", false, 3, NULL, false, RESCUE_LEFT, 0},
        {"31:41:{\"a\"", true, 0, "1", false, RESCUE_PARKED, 0},
};

/* Only a rescue writes, in a batch of its own. */
TEST_LOOP(a_rescue_is_a_batch_of_its_own, ELEMENTSOF(rescues))
{
        struct answer *requeue = ask_requeue_of("web-1:4711:7", "17", rescues[_i].entry,
                                                rescues[_i].puts_back, rescues[_i].limit);
        struct answer *heartbeat = ask_text(QUERY_HEARTBEAT, "web-1:4711:7", 0);

        run_batch(1);
        ck_assert(fake.batch.writes == rescues[_i].writes);
        ck_assert_uint_eq(fake.batch.n, 2);
        ck_assert_str_eq(parameter("CASE WHEN", DATABASE_RESCUE_HOST), "web-1");
        ck_assert_str_eq(parameter("CASE WHEN", DATABASE_RESCUE_PID), "4711");
        ck_assert_str_eq(parameter("CASE WHEN", DATABASE_RESCUE_UNIT), "7");
        ck_assert_str_eq(parameter("CASE WHEN", DATABASE_RESCUE_THREAD), "17");
        ck_assert_str_eq(parameter("CASE WHEN", DATABASE_RESCUE_CLAIM), "31");
        ck_assert_str_eq(parameter("CASE WHEN", DATABASE_RESCUE_JOB), "41");
        ck_assert((fake_find("FOR UPDATE") >= 0) == rescues[_i].writes);
        ck_assert((fake_find("DELETE") >= 0) == rescues[_i].writes);
        ck_assert_int_eq(fake_find("DELETE FROM solid_queue_processes"), -1);
        if (rescues[_i].row)
                ck_assert_int_eq(fake_row("CASE WHEN", row_of(rescues[_i].row)), 0);
        fake_done(DATABASE_DONE, NULL);
        wait_for(requeue);
        ck_assert_int_eq(requeue->status, ANSWER_OK);
        ck_assert_int_eq(requeue->requeue.outcome, rescues[_i].outcome);
        ck_assert_uint_eq(requeue->requeue.times, rescues[_i].times);
        ck_assert(!is_answered(heartbeat));
        run_batch(2);
        ck_assert(!fake.batch.writes);
        fake_done(DATABASE_DONE, NULL);
        wait_for(heartbeat);
}

static const struct {
        const char *identity, *entry;
} impossible[] = {{"web-1:4711:7", "nonsense"}, {"web-1:4711", "31:41:{\"a\""}, {"web-1:4711:7", "31:41:[]"}};

TEST_LOOP(what_is_no_job_is_not_put_back, ELEMENTSOF(impossible))
{
        struct answer *requeue =
                wait_for(ask_requeue_of(impossible[_i].identity, "17", impossible[_i].entry, true, 3));

        ck_assert_int_eq(requeue->status, ANSWER_REFUSED);
        ck_assert_uint_eq(fake.batches, 0);
}

/* Rows beyond what an answer may have are dropped. */
TEST(a_lost_rescue_may_have_been_carried_out)
{
        struct answer *requeue = ask_requeue_of("web-1:4711:7", "17", "31:41:{\"a\"", true, 3);

        run_batch(1);
        ck_assert_int_eq(fake_row("CASE WHEN", row_of("1")), 0);
        fake_done(DATABASE_LOST, "connection lost");
        ck_assert_int_eq(wait_for(requeue)->status, ANSWER_LOST);
}

static void nothing(void)
{
}

TEST_FIXTURE(nothing, end)

static const struct {
        const char *url;
        unsigned framework;
} unusable[] = {{"sqlite3:/srv/queue.sqlite3", GOOD_JOB},
                {"mysql2://db/queue", SOLID_QUEUE},
                {"postgresql://db/queue", 1}};

TEST_LOOP(an_unusable_configuration_is_refused, ELEMENTSOF(unusable))
{
        database_reader_begin(unusable[_i].url, unusable[_i].framework);
        run_until(reader_state(reader) == READER_STATE_DOWN);
        ck_assert_ptr_null(fake.database);
}

TEST(good_job_has_no_rescue)
{
        database_reader_begin(URL, GOOD_JOB);
        run_until(fake.database);
        ck_assert_ptr_nonnull(strstr(fake.probe, "good_job_processes"));
        fake_state(DATABASE_CONNECTED, NULL);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        ck_assert_int_eq(wait_for(ask_requeue_of("web-1:4711:7", "17", "31:41:{\"a\"", true, 3))->status,
                         ANSWER_REFUSED);
}

TEST_MAIN("database_backend")
