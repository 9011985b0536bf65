/* SPDX-License-Identifier: MIT */
/* A quieted worker is stopped while it runs jobs only if all of them are proven interruptible. Each doubt
 * denies that. */
/* promises: P1 P5 */
#include "decide/command.h"
#include "model/describe.h"
#include "model/idle_proof.h"
#include "model/names.h"
#include "observe/observe.h"
#include "world.h"

#define CLASSES_MAX 3

static struct worker *worker;
/* The time of the last heartbeat in seconds, by the worker's clock. */
static double sent_at;

TEST_WORLD(1)
{
        t.fleet_settings.interruptible = (char *)"ImportJob ExportJob";
        sent_at = 200;
}

/* The content of a work list. */
struct reading {
        const char *classes[CLASSES_MAX];
        size_t n_unreadable, n_oversized;
};

static const struct reading imports = {.classes = {"ImportJob"}};
static const struct reading mails = {.classes = {"MailJob"}};

static void read_jobs(const struct reading *reading)
{
        struct job jobs[CLASSES_MAX] = {0};
        struct job_list list = {
                .jobs = jobs, .n_unreadable = reading->n_unreadable, .n_oversized = reading->n_oversized};

        for (; list.n_jobs < CLASSES_MAX && reading->classes[list.n_jobs]; list.n_jobs++)
                jobs[list.n_jobs].class = (char *)reading->classes[list.n_jobs];
        t.now += USEC_PER_SEC;
        observe_jobs(worker, &list, 0, t.now);
}

static void send_heartbeat(unsigned busy, bool quiet)
{
        t.now += 4 * USEC_PER_SEC;
        sent_at += 5;
        test_heartbeat(&t, worker, sent_at, busy, quiet);
}

/* A heartbeat, and the work list with it. Returns whether the worker is stopped then. */
static bool stops_after(unsigned busy, const struct reading *reading)
{
        send_heartbeat(busy, true);
        read_jobs(reading);
        return test_stops(&t, worker);
}

static void expect_proof_after(unsigned heartbeats)
{
        for (unsigned i = 1; i < heartbeats; i++)
                ck_assert_msg(!stops_after(1, &imports), "stopped after %u heartbeats", i);
        ck_assert(stops_after(1, &imports));
}

static const struct {
        const char *interruptible;
        struct reading reading;
        unsigned busy;
        bool stops;
} lists[] = {
        {"ImportJob", {.classes = {"ImportJob"}}, 1, .stops = true},
        {"ImportJob ExportJob", {.classes = {"ExportJob", "ImportJob"}}, 2, .stops = true},
        {" \tExportJob\t  ImportJob ", {.classes = {"ImportJob", "ImportJob"}}, 2, .stops = true},
        /* The list and the heartbeat differ. */
        {"ImportJob", {.classes = {"ImportJob"}}, 2, .stops = false},
        {"ImportJob", {.classes = {"ImportJob", "ImportJob"}}, 1, .stops = false},
        {"ImportJob", {.classes = {NULL}}, 1, .stops = false},
        /* Entries that may be of any class. */
        {"ImportJob", {.classes = {"ImportJob"}, .n_unreadable = 1}, 2, .stops = false},
        {"ImportJob", {.classes = {"ImportJob"}, .n_unreadable = 1}, 1, .stops = false},
        {"ImportJob", {.classes = {"ImportJob"}, .n_oversized = 1}, 1, .stops = false},
        {"ImportJob", {.classes = {""}}, 1, .stops = false},
        /* Other classes. */
        {"ImportJob ExportJob", {.classes = {"MailJob"}}, 1, .stops = false},
        {"ImportJob ExportJob", {.classes = {"MailJob", "ImportJob"}}, 2, .stops = false},
        {"ImportJob ExportJob", {.classes = {"ImportJob", "ExportJob", "MailJob"}}, 3, .stops = false},
        {"ImportJob ExportJob", {.classes = {"ImportJob ExportJob"}}, 1, .stops = false},
        {"ImportJob ExportJob", {.classes = {"Import"}}, 1, .stops = false},
        {"ImportJob ExportJob", {.classes = {"ImportJobs"}}, 1, .stops = false},
        {"ImportJob ExportJob", {.classes = {"ExportJobs"}}, 1, .stops = false},
        {"ImportJob ExportJob", {.classes = {"Job"}}, 1, .stops = false},
        {"ImportJob ExportJob", {.classes = {"importjob"}}, 1, .stops = false},
        {"ImportJob::Part", {.classes = {"ImportJob"}}, 1, .stops = false},
        {" ", {.classes = {"ImportJob"}}, 1, .stops = false},
        {NULL, {.classes = {"ImportJob"}}, 1, .stops = false},
};

TEST_LOOP(every_job_must_be_known_and_of_a_listed_class, ELEMENTSOF(lists))
{
        t.fleet_settings.interruptible = (char *)lists[_i].interruptible;
        worker = test_spawn_quiet(&t);
        ck_assert(!stops_after(lists[_i].busy, &lists[_i].reading));
        for (unsigned i = 0; i < 5; i++)
                ck_assert(stops_after(lists[_i].busy, &lists[_i].reading) == lists[_i].stops);
        if (!lists[_i].stops)
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_JOBS);
}

TEST(an_idle_worker_needs_the_proof_that_it_is_idle)
{
        worker = test_spawn_ready(&t);
        observe_threads(worker, 1);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        for (unsigned i = 0; i < 3; i++)
                ck_assert(!stops_after(0, &(struct reading){0}));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_THREADS);
}

TEST(two_readings_of_one_heartbeat_count_once)
{
        worker = test_spawn_quiet(&t);
        ck_assert(!stops_after(1, &imports));
        for (unsigned i = 0; i < 5; i++) {
                test_heartbeat(&t, worker, sent_at, 1, true);
                read_jobs(&imports);
                ck_assert(!test_stops(&t, worker));
        }
        ck_assert(stops_after(1, &imports));
}

TEST(what_a_quieted_worker_waits_for_is_shown)
{
        char text[200];

        worker = test_spawn_quiet(&t);
        ck_assert(!stops_after(1, &mails));
        ck_assert_str_eq(worker_waits_for(worker, t.now, text, sizeof(text)),
                         "waits for 1 running job to finish");
        ck_assert(!stops_after(1, &imports));
        ck_assert_str_eq(worker_waits_for(worker, t.now, text, sizeof(text)),
                         "exits after 1 more heartbeat: its 1 running job is interruptible");
}

TEST(heartbeats_without_a_reading_count_for_nothing)
{
        worker = test_spawn_quiet(&t);
        ck_assert(!stops_after(1, &imports));
        for (unsigned i = 0; i < 5; i++) {
                send_heartbeat(1, true);
                ck_assert(!test_stops(&t, worker));
        }
        read_jobs(&imports);
        ck_assert(test_stops(&t, worker));
}

TEST(a_doubt_between_two_heartbeats_begins_the_proof_anew)
{
        worker = test_spawn_quiet(&t);
        ck_assert(!stops_after(1, &imports));
        ck_assert(!stops_after(1, &mails));
        expect_proof_after(2);
        /* Also once it was complete. */
        ck_assert(!stops_after(1, &mails));
        expect_proof_after(2);
}

TEST(what_was_read_before_the_quiet_counts_for_nothing)
{
        worker = test_spawn_ready(&t);
        for (unsigned i = 0; i < 4; i++) {
                send_heartbeat(1, false);
                read_jobs(&imports);
                ck_assert(!test_stops(&t, worker));
                ck_assert(!worker_proven_interruptible(worker));
        }
        t.now += USEC_PER_SEC;
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        ck_assert(!test_stops(&t, worker));
        /* A further reading of the last heartbeat before the quiet. */
        read_jobs(&imports);
        ck_assert(!test_stops(&t, worker));
        /* The first new heartbeat may have been written before the quiet, too. */
        expect_proof_after(3);
}

TEST(heartbeats_that_do_not_say_quiet_prove_nothing)
{
        worker = test_spawn_quiet(&t);
        for (unsigned i = 0; i < 2; i++) {
                send_heartbeat(1, false);
                read_jobs(&imports);
                ck_assert(!test_stops(&t, worker));
        }
        expect_proof_after(2);
}

TEST_LOOP(another_process_of_the_worker_has_its_own_proof, 2)
{
        const struct exit_status status = {.known = true};

        worker = test_spawn_quiet(&t);
        expect_proof_after(2);
        observe_left_behind(worker, &status, 900, 6300, t.now);
        ck_assert(!worker_proven_interruptible(worker));
        t.now += USEC_PER_SEC;
        observe_heartbeat_process(worker, 900, 6300, t.now);
        send_heartbeat(1, _i == 1);
        ck_assert(!test_stops(&t, worker));
        if (_i == 0) {
                /* The process accepts jobs. */
                ck_assert_int_eq(worker->state, WORKER_ACTIVE);
                read_jobs(&imports);
                t.now += USEC_PER_SEC;
                observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        }
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert(!worker_proven_interruptible(worker));
        expect_proof_after(_i == 0 ? 3 : 2);
}

static const struct {
        bool known, quiet;
        unsigned busy;
        bool stops;
} titles[] = {
        {.known = false, .quiet = false, .busy = 3, .stops = true}, /* what is unknown denies nothing */
        {.known = true, .quiet = true, .busy = 1, .stops = true},
        {.known = true, .quiet = true, .busy = 0, .stops = true},
        {.known = true, .quiet = true, .busy = 2, .stops = false},
        {.known = true, .quiet = false, .busy = 1, .stops = false},
        {.known = true, .quiet = false, .busy = 0, .stops = false},
};

TEST_LOOP(a_title_of_another_state_or_of_more_jobs_denies, ELEMENTSOF(titles))
{
        worker = test_spawn_quiet(&t);
        observe_title(worker, titles[_i].known, titles[_i].busy, titles[_i].quiet);
        ck_assert(!stops_after(1, &imports));
        for (unsigned i = 0; i < 5; i++) {
                ck_assert(stops_after(1, &imports) == titles[_i].stops);
                observe_title(worker, titles[_i].known, titles[_i].busy, titles[_i].quiet);
        }
        observe_title(worker, true, 1, true);
        ck_assert(test_stops(&t, worker));
}

/* The stop was denied for a while, and the next heartbeat says that the worker accepts jobs. */
TEST(the_proof_is_that_of_the_last_heartbeat)
{
        worker = test_spawn_quiet(&t);
        ck_assert(!stops_after(1, &imports));
        observe_title(worker, true, 2, true);
        ck_assert(!stops_after(1, &imports));
        send_heartbeat(1, false);
        observe_title(worker, true, 1, true);
        ck_assert(!test_stops(&t, worker));
        /* The same for a heartbeat with other jobs, whose list was not read yet. */
        ck_assert(stops_after(1, &imports));
        observe_title(worker, true, 3, true);
        send_heartbeat(3, true);
        ck_assert(!test_stops(&t, worker));
}

TEST(a_worker_known_by_its_title_alone_is_not_proven)
{
        worker = test_spawn_quiet(&t);
        expect_proof_after(2);
        worker->process.elsewhere = true;
        ck_assert(!worker_proven_interruptible(worker));
        ck_assert(!test_stops(&t, worker));
}

TEST(while_redis_is_down_and_until_a_fresh_heartbeat_nothing_is_stopped)
{
        worker = test_spawn_quiet(&t);
        expect_proof_after(2);
        test_redis(&t, false);
        t.now += USEC_PER_SEC;
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_REDIS);
        test_redis(&t, true);
        t.now += USEC_PER_SEC;
        ck_assert(!test_stops(&t, worker));
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_FRESH_HEARTBEAT);
        /* The first one is only the baseline. */
        ck_assert(!stops_after(1, &imports));
        ck_assert(stops_after(1, &imports));
}

TEST(the_event_of_the_stop_names_no_loss)
{
        worker = test_spawn_quiet(&t);
        expect_proof_after(2);
        test_execute(&t);
        ck_assert_int_eq(worker->state, WORKER_STOPPING);
        ck_assert_uint_eq(test_events(&t, EVENT_STOPPING), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_DRAIN_CUT), 0);
        for (enum cut_word word = 0; word < ELEMENTSOF(t.fleet->totals.jobs_cut_off); word++)
                ck_assert_uint_eq(t.fleet->totals.jobs_cut_off[word], 0);
}

TEST_MAIN("interruptible", .each = {setup, teardown})
