/* SPDX-License-Identifier: MIT */
/* Tests of what this machine shows of workers that write no heartbeat (daemon/poll/local_heartbeats.h), with
 * real processes. */
#include "daemon/poll/poll.h"
#include "model/deadlines.h"
#include "runtime_folder.h"

static struct worker *worker;

static void setup(void)
{
        char text[512];

        runtime_folder_open();
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        snprintf(text, sizeof(text),
                 RUNTIME_REDIS "[fleet:web]\nframework=plain\ncommand=sleep 1000\n"
                               "before_start=/bin/sh -c 'until [ -e %s/go ]; do sleep 0.02; done'\n",
                 dir);
        runtime_start(text);
        worker = runtime_start_worker();
        ck_assert_ptr_nonnull(worker);
}

static void look(void)
{
        poll_run(&runtime, false, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
}

static void go(void)
{
        unit_write_file(dir, "go", "");
        while (!worker->heartbeat.seen)
                look();
}

TEST(one_that_runs_its_command_heartbeats_and_not_before)
{
        for (unsigned i = 0; i < 20; i++)
                look();
        ck_assert(!worker->heartbeat.seen);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        go();
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_int_eq(worker->process.heartbeat_pid, worker->process.pid);
        ck_assert(runtime_event(EVENT_ACTIVE));
}

/* The report of a start is lost with the sqmgr that made it. */
TEST(one_that_an_earlier_sqmgr_has_started_does_not_heartbeat_before_its_command)
{
        worker->handle->report_fd = close_fd(worker->handle->report_fd);
        for (unsigned i = 0; i < 20; i++)
                look();
        ck_assert(!worker->heartbeat.seen);
        go();
}

TEST(each_look_hears_it_until_it_has_ended)
{
        go();
        usec_t first = worker->heartbeat.changed_at;
        while (worker->heartbeat.changed_at == first)
                look();
        ck_assert(worker_fresh(worker, clock_now(CLOCK_MONOTONIC)));
        ck_assert_int_eq(kill(worker->process.pid, SIGKILL), 0);
        while (worker->state != WORKER_GONE)
                look();
        ck_assert(runtime_event(EVENT_CRASHED));
}

TEST(no_redis_is_asked_and_there_are_no_identities)
{
        const struct fleet *fleet = runtime_world->fleets[0];
        struct heartbeat_slot *slot = worker->handle->slot;
        pid_t pid;

        ck_assert_uint_eq(runtime.links.n, 0);
        ck_assert_ptr_null(fleet->link);
        ck_assert(fleet->redis_up);
        ck_assert_int_eq(heartbeats_know(slot, "host:1:x"), 0);
        heartbeats_moved(slot);
        heartbeats_forget(slot);
        ck_assert_ptr_null(slot->identity);
        ck_assert_ptr_null(slot->info);
        ck_assert_ptr_null(heartbeats_take_another(slot, &pid));
        heartbeats_want(slot, POLL_HEARTBEAT);
        ck_assert_int_eq(heartbeats_poll(runtime.local), HEARTBEATS_NOTHING);
}

TEST_MAIN("local_beats", .each = {setup, runtime_folder_close})
