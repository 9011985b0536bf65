/* SPDX-License-Identifier: MIT */
/* Framework plain: what its settings mean, what becomes of a worker that tells nothing of its jobs, and what
 * is shown of it. */
/* promises: P1 P4 P7 */
#include "advice/problem_rules.h"
#include "continuity/state.h"
#include "daemon/api/status.h"
#include "daemon/runtime/subsystem.h"
#include "decide/command.h"
#include "frameworks/plain/plain.h"
#include "frameworks/rq/rq.h"
#include "golden.h"
#include "model/deadlines.h"
#include "model/world.h"
#include "observe/observe.h"
#include "settings_text.h"
#include "world.h"
#include <signal.h>

#define FLEET "[fleet:a]\ncommand=run\nframework=plain\n"

static const struct {
        const char *key, *value;
} useless[] = {
        {"heartbeat", "redis"},   {"preload", "yes"},      {"redis_url", "redis://h"},
        {"hang_after", "1min"},   {"hang_action", "kill"}, {"rescue_jobs", "requeue"},
        {"job_warn_after", "1h"},
};

TEST(what_would_do_nothing_is_refused)
{
        char text[256];

        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(useless); i++) {
                snprintf(text, sizeof(text), FLEET "%s=%s\n", useless[i].key, useless[i].value);
                add_refused_settings(&root_surroundings, text, useless[i].key);
        }
        golden_end("settings-errors", "plain");
}

TEST(what_all_fleets_are_given_is_for_the_others)
{
        char text[1024] = "[fleet]\npreset=huey\nstop_signal=USR1\nstop_timeout=40s\n";

        for (size_t i = 0; i < ELEMENTSOF(useless); i++)
                snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s=%s\n", useless[i].key,
                         useless[i].value);
        strcat(text, FLEET "[fleet:b]\ncommand=run\n");
        _cleanup_settings_ struct settings *settings = read_good(text);

        ck_assert(!fleet_settings_need_redis(settings->fleets[0]));
        ck_assert(fleet_settings_need_redis(settings->fleets[1]));
        ck_assert_int_eq(fleet_settings_stop_signal(settings->fleets[0]), SIGUSR1);
        ck_assert_int_eq(fleet_settings_stop_signal(settings->fleets[1]), 0);
        ck_assert(!settings->fleets[0]->stop_bounded);
        ck_assert(!settings->fleets[1]->stop_bounded);
        ck_assert_uint_eq(settings->fleets[1]->stop_timeout, 40 * USEC_PER_SEC);
}

/* stop: in seconds. */
static const struct {
        const char *all, *own;
        int signal;
        unsigned stop;
        bool bounded;
} stops[] = {
        {"", "", 0, 60, false},
        {"", "stop_timeout=2s", 0, 2, true},
        {"stop_timeout=2s", "", 0, 2, false},
        {"", "preset=celery", SIGTERM, 60, false},
        {"stop_timeout=2s", "preset=celery", SIGTERM, 2, false},
        {"", "preset=huey", SIGINT, 60, false},
        {"", "preset=huey\nstop_signal=QUIT", SIGQUIT, 60, false},
        {"", "preset=dramatiq", SIGTERM, 660, true},
        {"stop_timeout=2s", "preset=dramatiq", SIGTERM, 660, true},
        {"stop_timeout=2s\nstop_signal=INT", "preset=dramatiq\nstop_timeout=5s", SIGINT, 5, true},
        {"preset=dramatiq", "", SIGTERM, 660, true},
};

TEST_LOOP(its_own_section_says_how_it_is_stopped_then_the_preset, ELEMENTSOF(stops))
{
        char text[256];

        snprintf(text, sizeof(text), "[fleet]\n%s\n" FLEET "%s\n", stops[_i].all, stops[_i].own);
        _cleanup_settings_ struct settings *settings = read_good(text);
        const struct fleet_settings *fleet = settings->fleets[0];

        ck_assert_int_eq(fleet_settings_stop_signal(fleet), stops[_i].signal);
        ck_assert_uint_eq(fleet->stop_timeout, stops[_i].stop * USEC_PER_SEC);
        ck_assert_int_eq(fleet->stop_bounded, stops[_i].bounded);
}

TEST(a_reload_says_anew_how_it_is_stopped)
{
        _cleanup_settings_ struct settings *old = read_good(FLEET "preset=huey"), *merged = NULL;
        _cleanup_settings_ struct settings *new = read_good(FLEET "stop_signal=QUIT\nstop_timeout=3s");

        ck_assert_int_eq(settings_merge(old, new, &merged), 0);
        ck_assert_int_eq(fleet_settings_stop_signal(merged->fleets[0]), SIGQUIT);
        ck_assert_uint_eq(merged->fleets[0]->stop_timeout, 3 * USEC_PER_SEC);
        ck_assert(merged->fleets[0]->stop_bounded);
}

TEST(until_its_framework_is_another_it_is_stopped_as_before)
{
        _cleanup_settings_ struct settings *plain = read_good(FLEET "preset=huey\nstop_timeout=2s");
        _cleanup_settings_ struct settings *sidekiq = read_good("[fleet:a]\ncommand=run\n");
        _cleanup_settings_ struct settings *there = NULL, *back = NULL;

        ck_assert_int_eq(settings_merge(sidekiq, plain, &there), 0);
        ck_assert(!there->fleets[0]->stop_bounded);
        ck_assert_uint_eq(there->fleets[0]->stop_timeout, 60 * USEC_PER_SEC);
        ck_assert_int_eq(settings_merge(plain, sidekiq, &back), 0);
        ck_assert_int_eq(fleet_settings_stop_signal(back->fleets[0]), SIGINT);
        ck_assert_uint_eq(back->fleets[0]->stop_timeout, 2 * USEC_PER_SEC);
}

static struct worker *worker;

TEST_WORLD(1)
{
        t.fleet_settings.traits = &plain_traits;
        t.fleet_settings.heartbeat = HEARTBEAT_UNSET;
        worker = test_spawn_ready(&t);
}

/* Its process runs, seconds later: that is all that is ever seen of it. */
static void runs(unsigned seconds)
{
        t.now += seconds * USEC_PER_SEC;
        observe_heartbeat(worker, &(struct heartbeat){.sent_usec = t.now}, t.now);
}

/* What the next plan has for the worker, which is carried out; -1: nothing. */
static int done(enum action_signal *ret_signal)
{
        const struct plan *plan = &t.pass.plan;

        test_plan(&t);
        for (size_t i = 0; i < plan->n_actions; i++) {
                const struct action *action = &plan->actions[i];

                if (action->worker != worker)
                        continue;
                *ret_signal = action_signal(action);
                if (action->kind == ACTION_QUIET)
                        observe_quieted(worker, action->reason, 0, t.now);
                else if (action->kind == ACTION_STOP)
                        observe_stopped(worker, action->reason, 0, t.now);
                else
                        observe_killed(worker, 0, t.now);
                return (int)action->kind;
        }
        return -1;
}

static void report(void)
{
        enum action_signal signal;

        command_quiet_worker(worker, NULL, t.now);
        ck_assert_int_eq(done(&signal), ACTION_QUIET);
        ck_assert_int_eq(signal, ACTION_SIGNAL_STOP);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
}

static void ended(void)
{
        enum action_signal signal;

        ck_assert_int_eq(done(&signal), ACTION_STOP);
        ck_assert_int_eq(signal, ACTION_SIGNAL_NONE);
        ck_assert_int_eq(done(&signal), ACTION_KILL);
        ck_assert_int_eq(signal, ACTION_SIGNAL_KILL);
}

TEST_FIXTURE(setup, teardown)

TEST(its_story_speaks_of_no_heartbeats_and_no_jobs)
{
        ck_assert_uint_eq(test_event(&t, EVENT_ACTIVE)->index, 1);
        report();
        ck_assert_int_eq(test_event(&t, EVENT_QUIET)->reason, REASON_OPERATOR);
        test_exit(&t, worker, 0);
        struct worker *next = test_spawn(&t);
        test_plan(&t);
        ck_assert_int_eq(next->verdict.waits_for, WAIT_FIRST_HEARTBEAT);
        t.now += USEC_PER_SEC;
        test_exit(&t, next, 3);
        ck_assert_uint_eq(test_event(&t, EVENT_CRASHED)->index, 2);
        next = test_spawn(&t);
        observe_stopped(next, REASON_BOOT, 0, t.now);
        ck_assert_uint_eq(test_event(&t, EVENT_BOOT_TIMEOUT)->index, next->index);
}

TEST(one_that_was_reported_is_left_alone_for_ever)
{
        enum action_signal signal;

        report();
        for (unsigned i = 0; i < 24; i++) {
                runs(3600);
                ck_assert_int_eq(done(&signal), -1);
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_EXIT);
        }
        ck_assert_int_eq(worker->state, WORKER_QUIET);
}

TEST(within_its_own_stop_timeout_it_must_exit)
{
        enum action_signal signal;

        t.fleet_settings.stop_bounded = true;
        t.fleet_settings.stop_timeout = 20 * USEC_PER_SEC;
        report();
        runs(5);
        ck_assert_int_eq(done(&signal), -1);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_EXIT);
        runs(15);
        ended();
        ck_assert_uint_eq(worker->orders.killed_at - worker_stop_sent_at(worker), 20 * USEC_PER_SEC);
}

/* The next sqmgr would send a second stop signal, which ends jobs. */
TEST(without_a_ledger_a_worker_is_stopped_by_orders_alone)
{
        enum action_signal signal;

        observe_ledger(t.world, false);
        worker->generation = 0;
        t.fleet->rollout.state = ROLLOUT_RUNNING;
        t.fleet_settings.active_process_count = 0;
        runs(1);
        ck_assert_int_eq(done(&signal), -1);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_LEDGER);
        observe_ledger(t.world, true);
        ck_assert_int_eq(done(&signal), ACTION_QUIET);
        ck_assert_int_eq(signal, ACTION_SIGNAL_STOP);
}

/* Its jobs fail, and leave at once with a ledger. */
TEST(without_a_ledger_a_release_given_up_waits)
{
        enum action_signal signal;
        struct worker *old = test_spawn(&t);

        old->state = WORKER_ACTIVE;
        t.fleet->rollout.before = t.fleet->generation;
        t.fleet->rollout.state = ROLLOUT_HALTED;
        t.fleet->rollout.returned = true;
        worker->generation = t.fleet->newest_generation = t.fleet->generation + 1;
        observe_ledger(t.world, false);
        ck_assert_int_eq(done(&signal), -1);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_LEDGER);
        observe_ledger(t.world, true);
        ck_assert_int_eq(done(&signal), ACTION_QUIET);
}

TEST(without_a_ledger_an_order_is_carried_out)
{
        observe_ledger(t.world, false);
        report();
}

/* The sqmgr before was killed as it sent the signal. */
TEST(one_that_may_have_received_no_signal_gets_no_second_one)
{
        enum action_signal signal;

        report();
        worker->orders.unconfirmed = true;
        for (unsigned i = 0; i < 24; i++) {
                runs(3600);
                ck_assert_int_eq(done(&signal), -1);
                ck_assert_int_eq(worker->verdict.waits_for, WAIT_UNCONFIRMED);
        }
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert(worker->orders.unconfirmed);
}

/* RQ writes into its record that it was asked to exit. */
TEST_LOOP(heartbeats_show_whether_the_signal_was_received, 2)
{
        enum action_signal signal;

        t.fleet_settings.traits = &rq_traits;
        report();
        worker->orders.unconfirmed = true;
        for (unsigned i = 0; i < WORKER_NOT_QUIET_HEARTBEATS; i++) {
                ck_assert_int_eq(worker->state, WORKER_QUIET);
                t.now += USEC_PER_SEC;
                observe_heartbeat(
                        worker, &(struct heartbeat){.sent_usec = t.now, .busy = 1, .quiet = _i == 0}, t.now);
        }
        ck_assert(!worker->orders.unconfirmed);
        ck_assert_int_eq(worker->state, _i == 0 ? WORKER_QUIET : WORKER_ACTIVE);
        if (_i == 0)
                ck_assert_int_eq(done(&signal), -1);
}

/* Of drain_timeout and stop_timeout; seconds. */
static const struct {
        unsigned drain, stop, ends;
} both[] = {{10, 20, 20}, {30, 20, 30}};

TEST_LOOP(the_longer_of_both_times_counts, ELEMENTSOF(both))
{
        enum action_signal signal;

        t.fleet_settings.stop_bounded = true;
        t.fleet_settings.drain_timeout = both[_i].drain * USEC_PER_SEC;
        t.fleet_settings.stop_timeout = both[_i].stop * USEC_PER_SEC;
        report();
        ck_assert_int_eq(done(&signal), -1);
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_EXIT);
        runs(both[_i].ends - 1);
        (void)done(&signal);
        ck_assert_int_eq(done(&signal), -1);
        runs(1);
        while (done(&signal) == ACTION_STOP)
                ck_assert_int_eq(signal, ACTION_SIGNAL_NONE);
        ck_assert_uint_eq(test_events(&t, EVENT_KILLED), 1);
}

TEST(at_a_shutdown_it_is_reported_once_and_has_its_time)
{
        enum action_signal signal;

        t.fleet_settings.stop_bounded = true;
        t.fleet_settings.stop_timeout = 90 * USEC_PER_SEC;
        command_shutdown(t.world, t.now);
        ck_assert_int_eq(done(&signal), ACTION_QUIET);
        ck_assert_int_eq(signal, ACTION_SIGNAL_STOP);
        runs(60); /* shutdown_timeout */
        ck_assert_int_eq(done(&signal), ACTION_STOP);
        ck_assert_int_eq(signal, ACTION_SIGNAL_NONE);
        runs(29);
        ck_assert_int_eq(done(&signal), -1);
        runs(1);
        ck_assert_int_eq(done(&signal), ACTION_KILL);
}

/* With all that it had started, while its command was not seen to run: that it does then is no sign of
 * another one, which had not been told. */
TEST(one_that_was_reported_before_it_ran_is_not_reported_again)
{
        enum action_signal signal;

        worker = test_spawn(&t);
        t.now += t.fleet_settings.boot_timeout;
        observe_stopped(worker, REASON_BOOT, 0, t.now);
        for (unsigned i = 0; i < 10; i++) {
                runs(5);
                ck_assert_int_eq(worker->state, WORKER_STOPPING);
                ck_assert_int_eq(done(&signal), -1);
        }
}

/* It is beyond doubt from its first moment on: there is no Redis that could be away. */
TEST(a_release_that_dies_young_halts_its_restart)
{
        t.newborn.boot_usec = 0;
        t.newborn.die_usec = 2 * USEC_PER_SEC;
        test_restart_to(&t, 60, ROLLOUT_HALTED);
        ck_assert_uint_eq(t.quiets, 0);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_ge(test_events(&t, EVENT_CRASHED), 3);
}

TEST(one_that_dies_young_is_started_again_later_and_later)
{
        t.newborn.boot_usec = 0;
        t.newborn.die_usec = 2 * USEC_PER_SEC;
        test_exit(&t, worker, 1);
        test_run(&t, 60);
        ck_assert_uint_ge(t.fleet->crash.count, FLEET_CRASH_LOOP);
        ck_assert_uint_lt(t.starts, 20);
        ck_assert_uint_ge(test_events(&t, EVENT_CRASH_LOOP), 1);
        t.newborn.die_usec = USEC_INFINITY;
        t.now = t.fleet->crash.next_at;
        test_settle(&t);
}

/* What the state has of the worker, whose process lives, in the place of the world's own. */
static void adopt(void)
{
        const struct state_source source = {.world = t.world, .boot_id = "boot", .now = t.now};
        struct state *state = NULL;
        uint8_t *bytes = NULL;
        size_t size;

        ck_assert_int_eq(state_pack(&source, &bytes, &size), 0);
        ck_assert_int_eq(state_unpack(bytes, size, "boot", t.now, &state), STATE_READ);
        const struct worker *known = &state->fleets[0].workers[0].worker;
        test_exit(&t, worker, 0);
        fleet_reap(t.fleet, test_process_free);
        worker = observe_adopted(t.fleet, known, known->process.start, known->process.heartbeat_start, t.now);
        ck_assert_ptr_nonnull(worker);
        state_free(state);
        free(bytes);
}

TEST(the_next_sqmgr_does_not_report_it_again)
{
        enum action_signal signal;

        t.fleet_settings.stop_bounded = true;
        report();
        runs(5);
        adopt();
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_int_eq(done(&signal), -1);
        for (unsigned i = 0; i < 5; i++) {
                runs(5);
                ck_assert_int_eq(done(&signal), -1);
        }
        ck_assert_int_eq(worker->verdict.waits_for, WAIT_EXIT);
        ck_assert_uint_eq(test_events(&t, EVENT_SEVERAL), 0);
        runs(30);
        ended();
}

static const struct traits may_catch = {
        .name = "may-catch", .uncaught_is_stop = true, .reports_busy = true, .stale_usec = USEC_PER_MIN};

TEST(one_that_would_die_of_being_quieted_is_reported_to_exit)
{
        enum action_signal signal;

        t.fleet_settings.traits = &may_catch;
        command_quiet_worker(worker, NULL, t.now);
        ck_assert_uint_eq(test_plans(&t, ACTION_QUIET, worker), 1);
        ck_assert_int_eq(action_signal(&t.pass.plan.actions[0]), ACTION_SIGNAL_QUIET);
        observe_quieted(worker, REASON_OPERATOR, ENOTSUP, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_QUIET_UNCAUGHT), 1);
        adopt();
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        runs(5);
        runs(5);
        ck_assert_int_eq(done(&signal), ACTION_QUIET);
        ck_assert_int_eq(signal, ACTION_SIGNAL_STOP);
        ck_assert_int_eq(test_event(&t, EVENT_QUIET)->reason, REASON_OPERATOR);
        ck_assert_int_eq(done(&signal), -1);
        /* That of the next one is known, and told no more. */
        observe_quieted(test_spawn_ready(&t), REASON_OPERATOR, ENOTSUP, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_QUIET_UNCAUGHT), 1);
        ck_assert_uint_eq(test_events(&t, EVENT_SIGNAL_REFUSED), 0);
}

static char *metrics(void)
{
        const struct status_settings age = {.loaded_at = 1};
        const struct subsystems none = {0};
        const struct status_info info = {.instance = "app",
                                         .version = "1",
                                         .settings = &age,
                                         .world = t.world,
                                         .subsystems = &none,
                                         .facts = &(struct problem_facts){0}};
        const struct tick_totals ticks = {0};
        char *text = metrics_collect(&info, &ticks, t.now);

        ck_assert_ptr_nonnull(text);
        return text;
}

TEST(what_it_does_not_report_is_shown_as_unknown)
{
        const struct status_settings age = {.loaded_at = 1};
        const struct status_info info = {.instance = "app",
                                         .version = "1",
                                         .settings = &age,
                                         .world = t.world,
                                         .facts = &(struct problem_facts){0}};
        _cleanup_json_ json_t *status = status_render(&info, t.world->fleets, 1, t.now);
        json_t *shown = json_array_get(
                json_object_get(json_array_get(json_object_get(status, "fleets"), 0), "workers"), 0);
        _cleanup_free_ char *text = metrics();

        ck_assert_uint_eq(json_array_size(json_object_get(status, "redis")), 0);
        ck_assert(json_is_null(json_object_get(shown, "busy")));
        ck_assert(json_is_null(json_object_get(shown, "concurrency")));
        ck_assert(json_is_null(json_object_get(shown, "beat_age_seconds")));
        ck_assert_str_eq(json_string_value(json_object_get(shown, "evidence")), "proc");
        ck_assert_ptr_nonnull(strstr(text, "sqmgr_fleet_ready_workers{fleet=\"default\"} 1\n"));
        ck_assert_ptr_null(strstr(text, "sqmgr_worker_busy_threads{"));
        ck_assert_ptr_null(strstr(text, "sqmgr_worker_beat_age_seconds{"));
        ck_assert_ptr_null(strstr(text, "sqmgr_jobs_cut_off_total{"));
        ck_assert_ptr_null(strstr(text, "sqmgr_redis_up"));
        ck_assert_ptr_null(strstr(text, "sqmgr_queue_jobs"));
}

TEST(places_that_it_holds_are_reported_of_without_jobs)
{
        t.fleet_settings.max_processes = 1;
        report();
        runs(5);
        test_plan(&t);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_PLACES);
        ck_assert_uint_eq(test_counts(&t).quiet, 1);
        ck_assert_uint_eq(t.now - worker->orders.quiet_at, 5 * USEC_PER_SEC);
}

TEST(the_doctor_asks_for_no_heartbeat)
{
        struct problems findings = {0};
        struct problems problems = {0};
        const struct problem_facts known = {0};
        const struct doctor_worker facts = {.worker = worker, .other_namespace = true};

        t.fleet->order = ORDER_STOP;
        problems_judge(&problems, &known, t.fleet->world, &t.fleet, 1, t.now);
        doctor_fleet(&findings, &problems, &(struct doctor_fleet){t.fleet, &facts, 1, NULL});
        problems_clear(&problems);
        ck_assert_uint_eq(findings.n, 1);
        golden_expect("doctor", "plain, stopped", findings.list[0].text);
        problems_clear(&findings);
}

TEST_MAIN("plain")
