/* SPDX-License-Identifier: MIT */
/* A worker that has not loaded its shim (traits.shim): when it counts as active, how it is quieted, and what
 * is shown of it. */
/* promises: P1 P4 P7 */
#include "advice/problem_rules.h"
#include "continuity/state.h"
#include "golden.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"
#include <signal.h>

static const struct shim shim = {.file = "node/shim.cjs",
                                 .variable = "OPTIONS",
                                 .missed = "a sealed image",
                                 .line = {"require('", "/node/shim.cjs')"},
                                 .refused = "Cannot find module"};
static const struct traits traits = {.name = "shimmed",
                                     .title = "Shimmed",
                                     .heartbeat = HEARTBEAT_FILE,
                                     .shim = &shim,
                                     .reports_busy = true,
                                     .counts_outcomes = true,
                                     .sent_usec = 5 * USEC_PER_SEC,
                                     .stale_usec = 30 * USEC_PER_SEC};

static struct worker *worker;

TEST_WORLD(1)
{
        t.fleet_settings.traits = &traits;
        t.fleet->boot_heard = false;
        worker = test_spawn(&t);
        test_process(worker)->silent = true;
}

/* Does what local_heartbeats.c does at a poll that finds no record of a running command. */
static bool polls(struct worker *of, double seconds)
{
        t.now += (usec_t)(seconds * USEC_PER_SEC);
        if (!worker_lacks_shim(of, t.now))
                return false;
        if (of->process.heartbeat_pid == 0)
                observe_heartbeat_process(of, of->process.pid, of->process.start, t.now);
        observe_heartbeat(of, &(struct heartbeat){.sent_usec = t.now, .shimless = true}, t.now);
        return true;
}

static void boots_without_shim(void)
{
        t.now = worker_boot_deadline(worker);
        ck_assert(polls(worker, 0));
        ck_assert(polls(worker, 11));
        ck_assert(worker_ready(worker, t.now));
}

static void writes_a_record(struct worker *of, double sent_at, unsigned busy, bool quiet)
{
        observe_heartbeat_process(of, of->process.pid, of->process.start, t.now);
        observe_heartbeat(
                of,
                &(struct heartbeat){.sent_usec = (usec_t)(sent_at * USEC_PER_SEC) + (UINT64_C(1) << 50),
                                    .busy = busy,
                                    .quiet = quiet,
                                    .start = of->process.start},
                t.now);
}

TEST(it_counts_as_active_from_its_boot_deadline_on)
{
        ck_assert(!polls(worker, 1));
        t.now = worker_boot_deadline(worker) - 1;
        ck_assert(!polls(worker, 0));
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        boots_without_shim();
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert(worker->process.shimless);
        ck_assert(worker_quiet_is_stop(worker));
        ck_assert(!worker_sends_heartbeats(worker));
        /* A worker without a record does not make records of the others expected. */
        ck_assert(!t.fleet->boot_heard);
        ck_assert_uint_eq(test_events(&t, EVENT_SHIM_NOT_LOADED), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 0);
        ck_assert(polls(worker, 100000));
        ck_assert(!worker->heartbeat.hung);
}

TEST(a_framework_without_a_shim_has_none_to_lack)
{
        static const struct traits without = {.name = "any", .heartbeat = HEARTBEAT_FILE};

        t.fleet_settings.traits = &without;
        t.now = worker_boot_deadline(worker);
        ck_assert(!worker_lacks_shim(worker, t.now));
}

/* A record that does not count shows that something writes one. */
TEST(a_file_that_does_not_count_is_a_problem_of_its_own)
{
        observe_heartbeat_fault(worker, HEARTBEAT_FAULT_KIND);
        t.now = worker_boot_deadline(worker);
        ck_assert(!worker_lacks_shim(worker, t.now));
}

/* P7: a release that hangs as it boots replaces no worker. P1: the new one may run jobs all the same. */
TEST(where_others_write_records_it_is_kept_and_does_not_count)
{
        t.fleet->boot_heard = true;
        t.now = worker_boot_deadline(worker);
        ck_assert(!worker_lacks_shim(worker, t.now));
        ck_assert(!worker_boot_has_failed(worker));
        observe_activity(worker, true, 1, t.now);
        ck_assert(worker_is_unseen(worker));
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 0);
        t.now += 1000 * USEC_PER_SEC;
        observe_activity(worker, true, 1, t.now);
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 0);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_SHIM_NOT_LOADED);
        writes_a_record(worker, 1, 0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

/* The settings have changed, and no worker of the new release has written one yet. */
TEST(workers_of_the_old_release_show_that_a_record_is_expected)
{
        writes_a_record(worker, 1, 1, false);
        struct worker *next = test_spawn(&t);
        test_process(next)->silent = true;
        test_restart(&t);
        next->generation = t.fleet->generation;
        t.fleet->boot_heard = false;
        t.now = worker_boot_deadline(next);
        ck_assert(!worker_lacks_shim(next, t.now));
        /* The worker was started without the shim: no record is expected. */
        next->process.shim_error = EACCES;
        ck_assert(worker_lacks_shim(next, t.now));
        next->process.shim_error = 0;
        test_exit(&t, worker, 0);
        ck_assert(worker_lacks_shim(next, t.now));
}

/* If other workers write records, a process without one is probably not a worker. */
TEST(one_that_was_found_is_left_alone_where_others_write_records)
{
        worker->process.unproven = true;
        t.now = worker_boot_deadline(worker);
        ck_assert(!worker_boot_has_failed(worker));
        ck_assert(worker_lacks_shim(worker, t.now));
        t.fleet->boot_heard = true;
        ck_assert(worker_boot_has_failed(worker));
        ck_assert(!worker_lacks_shim(worker, t.now));
}

TEST(only_a_quieted_worker_has_a_poll_that_does_not_end)
{
        struct heartbeat heartbeat = {.sent_usec = t.now, .polling_usec = 5 * USEC_PER_SEC};

        observe_heartbeat(worker, &heartbeat, t.now);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_NONE);
        observe_quieted(worker, REASON_RESTART, 0, t.now);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_POLL_DOES_NOT_END);
        worker->heartbeat.polling_usec = 0;
        ck_assert_int_ne(problem_of_worker(worker), PROBLEM_POLL_DOES_NOT_END);
}

/* The worker may hang as it boots, or be unable to write. */
TEST(one_that_has_loaded_it_and_writes_no_record_is_kept)
{
        observe_heartbeat_fault(worker, HEARTBEAT_FAULT_BEGUN);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_NONE);
        t.now = worker_boot_deadline(worker) + 1000 * USEC_PER_SEC;
        observe_activity(worker, true, 1, t.now);
        ck_assert(worker_is_unseen(worker));
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 0);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_WORKER_UNSEEN);
        ck_assert_uint_eq(test_events(&t, EVENT_BOOT_TIMEOUT), 1);
}

TEST(it_is_asked_to_exit_once_and_its_exit_is_the_proof)
{
        boots_without_shim();
        worker->orders.quiet = true;
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        ck_assert_int_eq(action_signal(&t.pass.plan.actions[0]), ACTION_SIGNAL_STOP);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        /* How many jobs run is not known. */
        ck_assert(!worker_shows_busy(worker));
        ck_assert_ptr_null(strstr(test_event_text(&t, EVENT_QUIET), "running"));
        for (unsigned i = 0; i < 100; i++) {
                ck_assert(polls(worker, 10));
                ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 0);
                ck_assert_uint_eq(test_planned(&t, ACTION_QUIET, worker), 0);
        }
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_EXIT);
        /* A record that appears as late as that changes nothing. */
        writes_a_record(worker, 1, 0, true);
        writes_a_record(worker, 3, 0, true);
        writes_a_record(worker, 5, 0, true);
        ck_assert(!worker->process.shimless);
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 0);
        test_exit(&t, worker, 0);
        ck_assert_str_ne(test_event_text(&t, EVENT_GONE), "");
        ck_assert_uint_eq(test_events(&t, EVENT_CRASHED), 0);
}

TEST(one_that_does_not_catch_its_stop_signal_is_kept)
{
        boots_without_shim();
        worker->orders.quiet = true;
        observe_quieted(worker, REASON_OPERATOR, ENOTSUP, t.now);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(test_events(&t, EVENT_SIGNAL_REFUSED), 1);
        ck_assert(polls(worker, 1));
        test_plan(&t);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_SIGNAL);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_SHIM_NOT_LOADED);
}

/* P6: a restart continues beside it, and it holds a place. */
TEST(an_outdated_one_that_does_not_catch_its_stop_signal_does_not_count)
{
        boots_without_shim();
        test_restart(&t);
        observe_quieted(worker, REASON_RESTART, ENOTSUP, t.now);
        ck_assert(worker_is_unseen(worker));
        ck_assert(!polls(worker, 1));
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert_uint_eq(test_counts(&t).outdated, 0);
        ck_assert_uint_eq(test_plans(&t, ACTION_START, NULL), 1);
        ck_assert_uint_eq(test_planned(&t, ACTION_STOP, worker), 0);
        worker->orders.forced = true;
        ck_assert_uint_eq(test_plans(&t, ACTION_STOP, worker), 1);
}

/* The shim was slow: from then on its heartbeats are the evidence. */
TEST(a_record_ends_that)
{
        boots_without_shim();
        writes_a_record(worker, 1, 2, false);
        ck_assert(!worker->process.shimless);
        ck_assert(!worker_quiet_is_stop(worker));
        ck_assert_uint_eq(worker->heartbeat.busy, 2);
        writes_a_record(worker, 3, 2, false);
        ck_assert(t.fleet->boot_heard);
        ck_assert_int_eq(problem_of_worker(worker), PROBLEM_NONE);
}

/* P4: as the state has it. */
TEST(the_next_sqmgr_knows_it)
{
        const struct state_source source = {.world = t.world, .boot_id = "boot", .now = t.now};
        struct state *state = NULL;
        uint8_t *bytes = NULL;
        size_t size = 0;

        boots_without_shim();
        ck_assert_int_eq(state_pack(&source, &bytes, &size), 0);
        ck_assert_int_eq(state_unpack(bytes, size, "boot", t.now, &state), STATE_READ);
        ck_assert(state->fleets[0].workers[0].worker.process.shimless);
        state_free(state);
        free(bytes);
}

static void crashes(const char *log_tail)
{
        struct quoted lines;
        const struct exit_status exit = {.known = true, .status = 1, .log_tail = &lines};

        quoted_set(&lines, log_tail);
        observe_exit(worker, &exit, t.now);
}

#define NOT_FOUND "Error: Cannot find module '/shims/node/shim.cjs'\nRequire stack:"

TEST(a_shim_that_node_cannot_read_is_left_out_of_the_next_start)
{
        crashes("Error: Cannot find module './app.js'");
        ck_assert_uint_eq(t.fleet->shim_refused, 0);
        worker = test_spawn(&t);
        test_restart(&t);
        worker->generation = t.fleet->generation;
        crashes(NOT_FOUND);
        ck_assert_uint_eq(t.fleet->shim_refused, t.fleet->generation);
        ck_assert_uint_eq(test_events(&t, EVENT_SHIM_NOT_LOADED), 1);
        /* The release has not failed. */
        ck_assert_uint_eq(t.fleet->rollout.failures, 0);
        ck_assert_uint_gt(t.fleet->crash.next_at, t.now);
        /* The worker was started without the shim: the application itself lacks the module. */
        worker = test_spawn(&t);
        worker->process.shim_error = ECANCELED;
        crashes(NOT_FOUND);
        ck_assert_uint_eq(t.fleet->rollout.failures, 1);
}

/* A job of it has logged that. */
TEST(a_worker_that_has_run_with_its_shim_keeps_it)
{
        writes_a_record(worker, 1, 0, false);
        t.now += USEC_PER_SEC;
        crashes(NOT_FOUND);
        ck_assert_uint_eq(t.fleet->shim_refused, 0);
}

/* By the journal. */
TEST(a_log_tail_that_arrives_later_is_that_of_the_last_failed_start)
{
        struct quoted lines;

        observe_exit(worker, &(struct exit_status){.known = true, .status = 1, .lines_token = 7}, t.now);
        quoted_set(&lines, NOT_FOUND);
        observe_log_tail(t.fleet, 6, &lines);
        ck_assert_uint_eq(t.fleet->shim_refused, 0);
        observe_log_tail(t.fleet, 7, &lines);
        ck_assert_uint_eq(t.fleet->shim_refused, t.fleet->generation);
}

static void add_text(const char *name)
{
        char why[WORKER_SHIMLESS_MAX], waits[512];

        golden_add(name, worker_shimless_text(worker, why));
        worker_waits_for(worker, t.now, waits, sizeof(waits));
        if (waits[0] != '\0')
                golden_add(name, waits);
}

TEST(what_is_shown_of_it)
{
        golden_begin();
        boots_without_shim();
        add_text("not loaded");
        worker->process.shim_error = ECANCELED;
        add_text("refused");
        worker->process.shim_error = EACCES;
        add_text("unreadable");
        worker->process.shim_error = EINVAL;
        add_text("path");
        t.fleet->generation++;
        observe_quieted(worker, REASON_RESTART, ENOTSUP, t.now);
        test_plan(&t);
        add_text("kept");
        golden_end("describe", "shimless");
}

TEST_MAIN("shimless", .each = {setup, teardown})
