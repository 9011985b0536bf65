/* SPDX-License-Identifier: MIT */
/* Tests of model/describe.h: all of its sentences, in tests/golden/describe. */
#include "decide/command.h"
#include "frameworks/plain/plain.h"
#include "frameworks/sidekiq/format.h"
#include "golden.h"
#include "model/counts.h"
#include "model/describe.h"
#include "model/world.h"
#include "observe/observe.h"
#include "quoting.h"
#include "world.h"

#define MB ((uint64_t)1 << 20)

static struct worker *worker;

TEST_WORLD(3)
{
        worker = test_spawn_ready(&t);
        t.now += USEC_PER_DAY;
}

/* The case is the code of the wait, and what differs. */
static void add_wait(enum wait wait, const char *what, const char *text)
{
        char name[128];

        snprintf(name, sizeof(name), "%s%s%s", wait_code(wait) ? wait_code(wait) : "no code",
                 what ? ", " : "", what ? what : "");
        golden_add(name, text);
}

static void worker_waits(enum wait wait, unsigned count, const char *what)
{
        worker->verdict.waits_for = wait;
        worker->verdict.waits_count = count;
        add_wait(wait, what, test_waits_for(&t, worker));
}

static void fleet_waits(enum wait wait, const char *what)
{
        t.fleet->waits_for = wait;
        add_wait(wait, what, test_fleet_waits_for(&t));
}

/* Those of a worker that its code alone tells apart. */
TEST(every_wait_of_a_worker)
{
        golden_begin();
        for (int wait = WAIT_NONE; wait <= WAIT_PLACES; wait++) {
                worker_waits(wait, 2, NULL);
                ck_assert_int_eq(test_waits_for(&t, worker)[0] == '\0',
                                 wait == WAIT_NONE || wait == WAIT_PLACES);
        }
        worker_waits(WAIT_STATE, 0, NULL);
        worker_waits(WAIT_LEDGER, 0, NULL);
        worker_waits(WAIT_UNCONFIRMED, 0, NULL);
        golden_end("describe", "worker");
}

static void add_boots(void)
{
        struct worker booting = *worker;
        char name[64];

        booting.state = WORKER_STARTING;
        booting.state_at = t.now - 88500 * USEC_PER_MSEC;
        booting.verdict.waits_for = WAIT_FIRST_HEARTBEAT;
        for (int fault = HEARTBEAT_FAULT_NONE; fault < _HEARTBEAT_FAULT_MAX; fault++) {
                booting.heartbeat.fault = fault;
                snprintf(name, sizeof(name), "fault %d, 32s left", fault);
                add_wait(WAIT_FIRST_HEARTBEAT, name, test_waits_for(&t, &booting));
        }
        booting.verdict.waits_for = WAIT_STALE;
        booting.heartbeat.changed_at = t.now - 41 * USEC_PER_SEC;
        add_wait(WAIT_STALE, "a fault", test_waits_for(&t, &booting));
        t.fleet_settings.traits = &plain_traits;
        booting.verdict.waits_for = WAIT_FIRST_HEARTBEAT;
        booting.heartbeat.fault = HEARTBEAT_FAULT_NONE;
        add_wait(WAIT_FIRST_HEARTBEAT, "plain", test_waits_for(&t, &booting));
        t.fleet_settings.traits = &sidekiq_traits;
}

static void add_jobs(void)
{
        worker->state = WORKER_QUIET;
        worker->orders.quiet_at = t.now - 293 * USEC_PER_SEC;
        worker->heartbeat.busy = 3;
        worker->jobs.count = 3;
        worker->jobs.oldest_at = t.now - 300 * USEC_PER_SEC;
        worker_waits(WAIT_JOBS, 0, "3 of 5min");
        worker->heartbeat.busy = worker->jobs.count = 1;
        worker->jobs.oldest_at = t.now - 61500 * USEC_PER_MSEC;
        worker_waits(WAIT_JOBS, 0, "1 of 61.5s");
        worker->jobs.oldest_at = 0;
        worker_waits(WAIT_JOBS, 0, "1");
        worker->heartbeat.busy = 2;
        t.fleet_settings.drain_timeout = 5 * USEC_PER_MIN;
        worker_waits(WAIT_JOBS, 0, "7s left of a drain");
        t.fleet_settings.drain_timeout = 0;
        t.settings.shutdown_timeout = USEC_PER_MIN;
        t.world->shutting_down = true;
        t.world->shutdown_at = t.now - 53 * USEC_PER_SEC;
        worker_waits(WAIT_JOBS, 0, "7s left of a shutdown");
        t.world->shutting_down = false;
}

static void add_exits(void)
{
        worker->orders.quiet_at = t.now - 5 * USEC_PER_SEC;
        worker_waits(WAIT_EXIT, 0, "quiet");
        t.fleet_settings.stop_timeout = 20 * USEC_PER_SEC;
        t.fleet_settings.stop_bounded = true;
        worker_waits(WAIT_EXIT, 0, "15s left, bounded");
        t.fleet_settings.drain_timeout = 30 * USEC_PER_SEC;
        worker_waits(WAIT_EXIT, 0, "25s left, bounded, with drain_timeout");
        t.fleet_settings.stop_bounded = false;
        worker_waits(WAIT_EXIT, 0, "45s left, with drain_timeout");
        t.fleet_settings.stop_timeout = USEC_INFINITY;
        worker_waits(WAIT_EXIT, 0, "with drain_timeout, without stop_timeout");
        t.fleet_settings.stop_timeout = 20 * USEC_PER_SEC;
        t.fleet_settings.drain_timeout = 0;
        worker->state = WORKER_STOPPING;
        worker->orders.stop_at = t.now - 19 * USEC_PER_SEC;
        worker_waits(WAIT_EXIT, 0, "1s left");
        worker->orders.killed_at = t.now - 18 * USEC_PER_SEC;
        worker_waits(WAIT_EXIT, 0, "killed, 2s left");
        worker->orders.stop_at = worker->orders.killed_at = t.now - 20 * USEC_PER_SEC;
        worker_waits(WAIT_EXIT, 0, "overdue");
}

TEST(what_a_wait_of_a_worker_depends_on)
{
        golden_begin();
        add_boots();
        worker_waits(WAIT_READY_OTHERS, 1, "1");
        worker_waits(WAIT_HEARTBEATS, 1, "1");
        worker->evidence.threads = 1;
        worker_waits(WAIT_THREADS, 1, "1");
        worker->orders.signal_error = ENOTSUP;
        worker_waits(WAIT_SIGNAL, 0, "not caught");
        worker->orders.signal_error = EPERM;
        worker_waits(WAIT_SIGNAL, 0, "refused");
        worker->process.booted = true;
        worker_waits(WAIT_SUCCESSOR, 0, "booted");
        add_jobs();
        add_exits();
        golden_end("describe", "worker-cases");
}

TEST(places_that_a_fleet_waits_for)
{
        golden_begin();
        t.fleet_settings.max_processes = 1;
        fleet_waits(WAIT_PLACES, "1 alive");
        t.fleet_settings.max_processes = 3;
        fleet_waits(WAIT_PLACES, "3 alive");
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        worker->heartbeat.busy = 1;
        t.now += USEC_PER_HOUR;
        fleet_waits(WAIT_PLACES, "1 drains");
        worker->heartbeat.busy = worker->jobs.count = 2;
        worker->jobs.oldest_at = t.now - 2 * USEC_PER_HOUR - 1;
        struct worker *other = test_spawn_ready(&t);
        observe_stopped(other, REASON_OPERATOR, 0, t.now);
        fleet_waits(WAIT_PLACES, "2 drain");
        other->state = WORKER_ACTIVE;
        other->orders = (struct worker_orders){0};
        other->heartbeat.hung = true;
        other->heartbeat.changed_at = t.now - USEC_PER_DAY;
        other->heartbeat.busy = 0;
        fleet_waits(WAIT_PLACES, "1 drains, 1 hangs");
        t.fleet_settings.traits = &plain_traits;
        fleet_waits(WAIT_PLACES, "plain");
        t.fleet_settings.traits = &sidekiq_traits;
        other->heartbeat.hung = false;
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        t.now += USEC_PER_MIN;
        observe_stopped(other, REASON_BOOT, 0, t.now);
        fleet_waits(WAIT_PLACES, "the longer drain has begun as it was quieted");
        golden_end("describe", "places");
}

TEST(what_else_a_fleet_waits_for)
{
        golden_begin();
        fleet_waits(WAIT_NONE, NULL);
        fleet_waits(WAIT_REDIS, NULL);
        fleet_waits(WAIT_HUNG, NULL);
        fleet_waits(WAIT_RELEASE, NULL);
        fleet_waits(WAIT_FORK, NULL);
        fleet_waits(WAIT_TRIAL, NULL);
        fleet_waits(WAIT_RETURNED, NULL);
        t.fleet->crash.next_at = t.now + 30 * USEC_PER_SEC;
        fleet_waits(WAIT_BACKOFF, NULL);
        t.fleet->held = true;
        fleet_waits(WAIT_ADOPTION, NULL);
        t.world->available_bytes = 337 * MB;
        fleet_waits(WAIT_MEMORY, "of a worker");
        observe_memory(worker, 400 * MB, t.now);
        (void)test_spawn(&t);
        fleet_waits(WAIT_MEMORY, "with what is reserved");
        fleet_waits(WAIT_TEMPLATE, "none");
        test_preload(&t);
        fleet_waits(WAIT_MEMORY, "of a template");
        t.fleet->templates[0] = (struct template){.fleet = t.fleet,
                                                  .generation = t.fleet->generation,
                                                  .state = TEMPLATE_LOADING,
                                                  .started_at = t.now - 56900 * USEC_PER_MSEC,
                                                  .state_at = t.now - 56900 * USEC_PER_MSEC};
        fleet_waits(WAIT_TEMPLATE, "loads");
        golden_end("describe", "fleet");
}

static void add_crash(enum crash_state state, const char *what)
{
        char name[64], text[CRASH_TEXT_MAX];

        snprintf(name, sizeof(name), "%s, %s", crash_state_name(state), what);
        ck_assert_int_eq(fleet_crash_state(t.fleet, t.now), state);
        golden_add(name, fleet_crash_text(t.fleet, t.now, text, sizeof(text)));
}

TEST(failed_starts_in_a_row)
{
        golden_begin();
        add_crash(CRASH_NONE, "none");
        snprintf(t.fleet->crash_last, sizeof(t.fleet->crash_last), "default/1 (pid 7) exited with status 1");
        t.fleet->crash = (struct backoff){.count = 1, .failed_at = t.now};
        add_crash(CRASH_FAILING, "one, and no start waits");
        t.fleet->crash.count = 2;
        t.fleet->crash.next_at = t.now + 2500 * USEC_PER_MSEC;
        t.fleet->waits_for = WAIT_BACKOFF;
        add_crash(CRASH_FAILING, "two, and a start in 3s");
        t.fleet->crash_last_apart = true;
        add_crash(CRASH_FAILING, "a long life since then");
        t.fleet->crash_last_apart = false;
        t.fleet->rollout = (struct rollout){.state = ROLLOUT_HALTED, .failed_at = t.now};
        add_crash(CRASH_FAILING, "the halted restart tells of the last");
        t.fleet->crash.failed_at = t.now + 1;
        add_crash(CRASH_FAILING, "another failure since the halt");
        t.fleet->crash_quoted = t.fleet->rollout.quoted = *QUOTED("no database");
        add_crash(CRASH_FAILING, "another failure of the same kind");
        t.fleet->crash_quoted = (struct quoted){0};
        t.fleet->rollout = (struct rollout){0};
        t.fleet_settings.active_process_count = 1;
        t.fleet->waits_for = WAIT_NONE;
        t.fleet->crash.failed_at = t.now + 1;
        add_crash(CRASH_SETTLED, "all are there");
        t.fleet->crash.failed_at = worker->active_at;
        t.now = worker->active_at + 50 * USEC_PER_SEC;
        add_crash(CRASH_RECOVERING, "10s left");
        golden_end("describe", "crash");
}

static void add_stopping(const char *what)
{
        char text[128];

        golden_add(what, world_stopping_text(t.world, t.now, text, sizeof(text)));
}

TEST(a_shutdown)
{
        struct worker *other = test_spawn_ready(&t);

        golden_begin();
        t.settings.shutdown_timeout = USEC_PER_MIN;
        worker->heartbeat.busy = 1;
        other->state = WORKER_GONE;
        command_shutdown(t.world, t.now);
        t.now += 52500 * USEC_PER_MSEC;
        add_stopping("one worker, one job");
        other->state = WORKER_ACTIVE;
        other->heartbeat.busy = 1;
        add_stopping("two workers, two jobs");
        t.fleet_settings.traits = &plain_traits;
        add_stopping("workers that report no jobs");
        t.now += USEC_PER_MIN;
        add_stopping("the time is over");
        worker->state = other->state = WORKER_GONE;
        t.fleet_settings.traits = &sidekiq_traits;
        add_stopping("no worker");
        golden_end("describe", "shutdown");
}

TEST(orders_and_reasons)
{
        const struct orderer deploy = {.known = true, .uid = 1001, .name = "deploy"},
                             unnamed = {.known = true, .uid = 70000};
        char ordered[FLEET_ORDERED_MAX], scaled[FLEET_SCALED_MAX];

        golden_begin();
        for (int reason = 0; reason < _REASON_MAX; reason++) {
                worker->verdict.retire_reason = reason;
                golden_add(reason_name(reason), worker_reason_text(worker));
        }
        golden_add("no order", fleet_ordered_text(t.fleet, t.now, ordered));
        t.fleet->order = ORDER_QUIET;
        t.fleet->order_at = t.now - 3 * USEC_PER_HOUR;
        golden_add("order of nobody known", fleet_ordered_text(t.fleet, t.now, ordered));
        t.fleet->order_by = unnamed;
        golden_add("order of a user without a name", fleet_ordered_text(t.fleet, t.now, ordered));
        golden_add("no count", fleet_scaled_text(t.fleet, t.now, scaled));
        command_scale(t.fleet, 4, &deploy, t.now);
        t.now += 250500 * USEC_PER_MSEC;
        golden_add("a count", fleet_scaled_text(t.fleet, t.now, scaled));
        t.fleet->scale_at = 0;
        golden_add("a count of a state", fleet_scaled_text(t.fleet, t.now, scaled));
        golden_end("describe", "orders");
}

TEST_MAIN("describe", .each = {setup, teardown})
