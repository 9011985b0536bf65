/* SPDX-License-Identifier: MIT */
/* The sentences of events, in tests/golden/events: what happens to workers, templates, restarts, time and
 * memory, and what is reported of it. When an event is reported is tested elsewhere, by its kind. */
#include "decide/command.h"
#include "frameworks/plain/plain.h"
#include "frameworks/sidekiq/format.h"
#include "golden.h"
#include "model/describe.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/culprits.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include "observe/rescue.h"
#include "quoting.h"
#include "world.h"

#define MB ((uint64_t)1 << 20)

static char hard[] = "HardJob", mail[] = "MailJob", queue[] = "low", spaced[] = "Sle\tep", jid[] = "8d42";
static struct job jobs[] = {{.class = hard}, {.class = mail}, {.queue = queue, .class = spaced, .jid = jid}};
static const struct exit_status failed = {.known = true, .status = 1},
                                killed = {.known = true, .by_signal = true, .status = 9};

TEST_WORLD(3)
{
        golden_begin();
}

/* Adds the events since the last call, each by its kind. */
static void add_events(void)
{
        for (size_t i = 0; i < t.world->n_events; i++)
                golden_add(event_kinds[t.world->events[i].kind].name, t.world->events[i].text);
        world_events_clear(t.world);
}

/* Ends the cases, with the events since the last call. */
static void expect(const char *section)
{
        add_events();
        golden_end("events", section);
}

/* Those of one kind alone, of which there must be some. */
static void add_events_of(enum event_kind kind)
{
        ck_assert_uint_gt(test_events(&t, kind), 0);
        for (size_t i = 0; i < t.world->n_events; i++)
                if (t.world->events[i].kind == kind)
                        golden_add(event_kinds[kind].name, t.world->events[i].text);
        world_events_clear(t.world);
}

/* A worker of whose start nothing is added. */
static struct worker *spawn_ready_silently(void)
{
        add_events();
        struct worker *worker = test_spawn_ready(&t);

        world_events_clear(t.world);
        return worker;
}

static struct worker *spawn_silently(void)
{
        add_events();
        struct worker *worker = test_spawn(&t);

        world_events_clear(t.world);
        return worker;
}

TEST(a_worker_from_its_start_to_its_end)
{
        struct worker *worker = test_spawn_ready(&t);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        t.now += 20 * USEC_PER_SEC;
        observe_killed(worker, 0, t.now);
        observe_exit(worker, &(struct exit_status){.known = true}, t.now);
        (void)observe_started(t.fleet, 7, REASON_MEMORY, 4000, 1, t.now);
        observe_orphan(test_spawn(&t), 4711, 99, t.now);
        struct worker *external = test_spawn_ready(&t);
        test_heartbeat(&t, external, 115, 2, true);
        struct worker *unproven = test_spawn(&t);
        unproven->process.unproven = true;
        observe_stopped(unproven, REASON_BOOT, 0, t.now);
        expect("worker");
}

TEST(a_plain_worker_from_its_start_to_its_end)
{
        t.fleet_settings.traits = &plain_traits;
        t.fleet_settings.stop_bounded = true;
        struct worker *worker = test_spawn(&t);
        test_heartbeat(&t, worker, 100, 0, false);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        t.now += 20 * USEC_PER_SEC;
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        observe_killed(worker, 0, t.now);
        struct worker *next = test_spawn(&t);
        t.now += USEC_PER_SEC;
        test_exit(&t, next, 3);
        observe_stopped(test_spawn(&t), REASON_BOOT, 0, t.now);
        expect("plain worker");
}

TEST(workers_that_fail)
{
        const struct exit_status ends[] = {
                {.known = true, .status = 7},
                {.known = true, .status = 9, .by_signal = true},
                {.known = false},
                {.launch_error = QUOTED("cannot run 'x'")},
                {.launch_error = QUOTED("env:2: the line is not NAME=VALUE")},
                {.known = true, .status = 1, .log_tail = QUOTED("boom\nbang")},
                {.known = true, .status = 1, .lines_token = 1},
        };

        for (size_t i = 0; i < ELEMENTSOF(ends); i++)
                observe_exit(spawn_silently(), &ends[i], t.now);
        observe_log_tail(t.fleet, 1, QUOTED("boom\nbang"));
        struct worker *worker = spawn_ready_silently();
        t.now = worker->active_at + 9 * USEC_PER_SEC;
        observe_exit(worker, &failed, t.now);
        worker = spawn_ready_silently();
        observe_heartbeat_process(worker, 555, 1, t.now);
        observe_heartbeat_process(worker, 0, 0, t.now);
        worker = spawn_silently();
        worker->heartbeat.fault = HEARTBEAT_FAULT_KIND;
        observe_stopped(worker, REASON_BOOT, 0, t.now);
        observe_stopped(spawn_silently(), REASON_BOOT, 0, t.now);
        observe_start_failed(t.fleet, 30, EMFILE, t.now);
        t.fleet->crash.loop_reported = false;
        t.fleet->crash.count = 3;
        t.fleet->crash.next_at = t.now + 30 * USEC_PER_SEC;
        t.fleet->waits_for = WAIT_BACKOFF;
        observe_time(t.world, t.now);
        expect("failures");
}

TEST(processes_beside_a_worker)
{
        struct worker *worker = spawn_ready_silently();
        observe_sibling(worker, 4711, t.now);
        worker->heartbeat.busy = 1;
        observe_left_behind(worker, &killed, 777, 3, t.now);
        worker = spawn_ready_silently();
        observe_quieted(worker, REASON_RESTART, 0, t.now);
        worker->orders.finishes_job = true;
        observe_exit(worker, &(struct exit_status){.known = true}, t.now);
        worker = spawn_silently();
        observe_ambiguous(worker, true);
        worker = spawn_silently();
        observe_booted(worker, true, t.now);
        worker = spawn_silently();
        observe_shutdown_time(worker, 90 * USEC_PER_SEC);
        expect("processes");
}

TEST(a_job_that_outlives_its_worker)
{
        static struct traits finishes;

        finishes = sidekiq_traits;
        finishes.jobs_outlive_it = true;
        t.fleet_settings.traits = &finishes;
        struct worker *worker = spawn_ready_silently();
        test_heartbeat(&t, worker, 115, 1, false);
        observe_left_behind(worker, &killed, 777, 3, t.now);
        observe_stopped(worker, REASON_CRASH, 0, t.now);
        observe_exit(worker, &(struct exit_status){.known = true}, t.now);
        expect("a job outlives its worker");
}

TEST(signals_that_are_refused)
{
        static struct traits uncaught;

        struct worker *worker = spawn_ready_silently();
        observe_quieted(worker, REASON_OPERATOR, ENOTSUP, t.now);
        observe_stopped(worker, REASON_OPERATOR, EPERM, t.now);
        observe_killed(worker, EINVAL, t.now);
        observe_unconfirmed(worker, SIGTERM);
        worker->process.heartbeat_pid = 0;
        observe_unconfirmed(worker, SIGINT);
        worker->process.heartbeat_pid = 100;
        uncaught = sidekiq_traits;
        uncaught.uncaught_is_stop = true;
        t.fleet_settings.traits = &uncaught;
        observe_quieted(worker, REASON_OPERATOR, ENOTSUP, t.now);
        expect("signals");
}

static void cut_off(struct worker *worker, unsigned busy)
{
        const struct job_list list = {.jobs = jobs, .n_jobs = 2};

        worker->heartbeat.busy = 2;
        observe_jobs(worker, &list, 0, t.now);
        worker->heartbeat.busy = busy;
        observe_cut_off(worker, REASON_OPERATOR, t.now);
}

TEST(drains_that_are_cut_off)
{
        struct worker *worker = spawn_ready_silently();
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        world_events_clear(t.world);
        t.fleet_settings.drain_timeout = 5 * USEC_PER_MIN;
        t.now += 5 * USEC_PER_MIN;
        cut_off(worker, 2);
        cut_off(worker, 1);
        t.fleet_settings.drain_timeout = 0;
        t.settings.shutdown_timeout = USEC_PER_MIN;
        t.world->shutting_down = true;
        t.world->shutdown_at = t.now - USEC_PER_MIN;
        cut_off(worker, 2);
        t.world->shutdown_now = true;
        cut_off(worker, 2);
        worker->jobs = (struct worker_jobs){0};
        observe_cut_off(worker, REASON_OPERATOR, t.now);
        expect("cut off");
}

static void clocks(usec_t slept, int64_t stepped)
{
        (void)observe_clocks(t.world, t.now, t.now + slept, (usec_t)((int64_t)(t.now + slept) + stepped));
        add_events();
}

TEST(time_that_is_in_doubt)
{
        clocks(0, 0);
        t.now += USEC_PER_SEC;
        clocks(20 * USEC_PER_SEC, -20 * (int64_t)USEC_PER_SEC);
        t.now += USEC_PER_SEC;
        clocks(20 * USEC_PER_SEC, 3600 * (int64_t)USEC_PER_SEC);
        t.now += 16 * USEC_PER_SEC;
        clocks(20 * USEC_PER_SEC, 3600 * (int64_t)USEC_PER_SEC);
        expect("time");
}

TEST(workers_and_redis_that_are_silent)
{
        t.fleet_settings.hang_after = 5 * USEC_PER_MIN;
        test_settle(&t);
        world_events_clear(t.world);
        test_process(test_worker(&t, 1))->hung = true;
        test_process(test_worker(&t, 2))->busy = 1;
        test_run(&t, 10);
        observe_quieted(test_worker(&t, 2), REASON_OPERATOR, 0, t.now);
        test_process(test_worker(&t, 2))->quiet = test_process(test_worker(&t, 2))->hung = true;
        test_run(&t, 400);
        test_process(test_worker(&t, 1))->hung = false;
        test_run(&t, 10);
        test_redis(&t, false);
        test_redis(&t, true);
        observe_failover(t.fleet, "a:6379", "b:6379");
        expect("silence");
}

TEST(memory)
{
        t.fleet_settings.memory_threshold = 500 * MB;
        struct worker *worker = spawn_ready_silently();
        worker->started_for = REASON_MEMORY;
        for (unsigned i = 0; i < 3; i++)
                observe_memory(worker, 600 * MB, t.now);
        expect("memory");
}

TEST(restarts)
{
        test_settle(&t);
        world_events_clear(t.world);
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        add_events_of(EVENT_ROLLOUT_DONE);
        test_run(&t, 60);
        t.fleet->rollout.state = ROLLOUT_RUNNING;
        test_tick(&t, 1);
        add_events_of(EVENT_ROLLOUT_DONE);
        command_restart(t.fleet, NULL, t.now);
        command_quiet_fleet(t.fleet, NULL, t.now);
        add_events_of(EVENT_ROLLOUT_ABORTED);
        expect("restarts");
}

TEST(a_restart_that_a_hung_worker_does_not_hold_up)
{
        t.fleet_settings.hang_after = 5 * USEC_PER_MIN;
        test_settle(&t);
        test_process(test_worker(&t, 1))->hung = true;
        test_run(&t, 400);
        ck_assert_int_eq(test_restart_out(&t), ROLLOUT_DONE);
        add_events_of(EVENT_ROLLOUT_DONE);
        expect("a restart beside a hung worker");
}

/* Restarts that halt, each in a world of its own. */

static void die_at_boot(void)
{
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
}

static void die_on_trial(void)
{
        t.fleet_settings.ready_after = 30 * USEC_PER_SEC;
        t.newborn.die_usec = 30 * USEC_PER_SEC;
}

static void never_boot(void)
{
        t.newborn.boot_usec = USEC_INFINITY;
}

static void boot_for_an_hour(void)
{
        never_boot();
        t.fleet_settings.boot_timeout = USEC_PER_HOUR;
}

static void send_heartbeats_elsewhere(void)
{
        t.newborn.silent = true;
        t.newborn.sent_usec = 1;
}

static void have_no_place(void)
{
        t.fleet_settings.max_processes = 3;
}

static void have_no_old_worker(void)
{
        die_at_boot();
        command_quiet_fleet(t.fleet, NULL, t.now);
        test_run(&t, 60);
        command_start(t.fleet, NULL, t.now);
}

static void load_nothing(void)
{
        test_preload(&t);
        t.fleet_settings.boot_timeout = USEC_PER_HOUR;
        t.newborn_template.load_usec = USEC_INFINITY;
}

static void die_loading(void)
{
        test_preload(&t);
        t.newborn_template.die_usec = USEC_PER_SEC;
        t.newborn_template.log_tail = "undefined method 'foo'";
}

static void fail_to_fork(void)
{
        test_preload(&t);
        t.newborn_template.fork_fails = "it failed";
}

static const struct {
        const char *what;
        void (*prepare)(void);
} halts[] = {
        {"halt: dies at boot", die_at_boot},
        {"halt: dies on trial", die_on_trial},
        {"halt: never boots", never_boot},
        {"halt: takes too long to boot", boot_for_an_hour},
        {"halt: heartbeats elsewhere", send_heartbeats_elsewhere},
        {"halt: no place", have_no_place},
        {"halt: no old worker", have_no_old_worker},
        {"halt: takes too long to load", load_nothing},
        {"halt: dies loading", die_loading},
        {"halt: cannot fork", fail_to_fork},
};

TEST_LOOP(restarts_that_halt, ELEMENTSOF(halts))
{
        test_settle(&t);
        halts[_i].prepare();
        test_restart(&t);
        ck_assert_int_eq(test_run_out(&t, 1200), ROLLOUT_HALTED);
        add_events_of(EVENT_ROLLOUT_HALTED);
        expect(halts[_i].what);
}

TEST(orders)
{
        static const struct orderer deploy = {.known = true, .uid = 1001, .name = "deploy"},
                                    unnamed = {.known = true, .uid = 70000};

        struct worker *worker = spawn_ready_silently();
        (void)spawn_ready_silently();
        command_restart(t.fleet, &deploy, t.now);
        command_abort(t.fleet, &deploy, t.now);
        command_restart(t.fleet, NULL, t.now);
        t.fleet->rollout.state = ROLLOUT_HALTED;
        command_abort(t.fleet, &deploy, t.now);
        command_scale(t.fleet, 4, &deploy, t.now);
        command_quiet_worker(worker, &deploy, t.now);
        command_quiet_fleet(t.fleet, &deploy, t.now);
        command_stop(t.fleet, false, &unnamed, t.now);
        command_stop(t.fleet, true, &unnamed, t.now);
        command_start(t.fleet, NULL, t.now);
        add_events();
        golden_add("error of the restart", t.fleet->rollout.error);
        expect("orders");
}

TEST(jobs_of_dead_workers)
{
        const char *how = EXIT_STATUS_TEXT(&killed);

        struct worker *worker = spawn_silently();
        for (int outcome = 0; outcome < _RESCUE_OUTCOME_MAX; outcome++)
                rescue_observe(worker, &jobs[2], outcome, 1, how);
        rescue_observe(worker, &jobs[2], RESCUE_REQUEUED, 2, how);
        rescue_observe_failed(worker, ERROR_REPORT("it refuses the command"));
        for (size_t n = 1; n <= 2; n++) {
                rescue_observe_unknown(worker, &(struct job_list){.n_unreadable = n});
                rescue_observe_unknown(worker, &(struct job_list){.n_oversized = n});
        }
        observe_long_job(worker, &jobs[2], 90500 * USEC_PER_MSEC);
        expect("jobs");
}

/* Templates, each in a world of its own. */

static void template_is_ready(void)
{
        test_settle(&t);
}

static void template_never_loads(void)
{
        t.newborn_template.load_usec = USEC_INFINITY;
        test_run(&t, 121);
}

static void template_dies_loading(void)
{
        t.newborn_template.die_usec = USEC_PER_SEC;
        test_run(&t, 30);
}

static void template_lacks_a_file(void)
{
        t.newborn_template.log_tail = "cannot load such file -- rails (LoadError)";
        t.newborn_template.die_usec = USEC_PER_SEC;
        test_run(&t, 2);
}

static void template_lacks_our_file(void)
{
        t.newborn_template.die_usec = USEC_PER_SEC;
        t.newborn_template.log_tail =
                "<internal:require>: cannot load such file -- /usr/libexec/sqmgr-preload.rb (LoadError)";
        test_run(&t, 2);
}

static void template_cannot_be_forked(void)
{
        t.newborn_template.unsafe = "its application leaves a socket open";
        test_run(&t, 6);
}

static void template_cannot_be_started(void)
{
        t.load_error = EMFILE;
        test_run(&t, 1);
}

static void template_runs_jobs(void)
{
        t.newborn_template.running_jobs = true;
        t.newborn_template.load_usec = 5 * USEC_PER_SEC;
        test_run(&t, 10);
}

static void template_dies_later(void)
{
        struct template *template = test_load(&t);

        world_events_clear(t.world);
        t.now += USEC_PER_HOUR;
        test_template_exit(&t, template);
}

static void forks_fail(void)
{
        t.newborn_template.fork_fails = "an at_fork hook raised";
        test_run(&t, 30);
}

static void forks_are_not_answered(void)
{
        t.newborn_template.fork_usec = USEC_INFINITY;
        test_load(&t);
        for (unsigned i = 0; i < 21; i++)
                test_tick(&t, 0.25);
}

static void fork_dies_unborn(void)
{
        test_load(&t);
        observe_ledger(t.world, false);
        t.save_fails = true;
        test_run(&t, 3);
        world_events_clear(t.world);
        test_exit(&t, test_worker(&t, 2), 1);
}

static const struct {
        const char *what;
        void (*happens)(void);
} templates[] = {
        {"template: is ready", template_is_ready},
        {"template: never loads", template_never_loads},
        {"template: dies loading", template_dies_loading},
        {"template: lacks a file of the release", template_lacks_a_file},
        {"template: lacks the file of sqmgr", template_lacks_our_file},
        {"template: cannot be forked", template_cannot_be_forked},
        {"template: cannot be started", template_cannot_be_started},
        {"template: runs jobs", template_runs_jobs},
        {"template: dies later", template_dies_later},
        {"template: forks fail", forks_fail},
        {"template: forks are not answered", forks_are_not_answered},
        {"template: a fork dies before it may run", fork_dies_unborn},
};

TEST_LOOP(of_templates, ELEMENTSOF(templates))
{
        test_preload(&t);
        templates[_i].happens();
        add_events();
        golden_add("refused", fleet_preload_refused(t.fleet));
        expect(templates[_i].what);
}

TEST_MAIN("events", .each = {setup, teardown})
