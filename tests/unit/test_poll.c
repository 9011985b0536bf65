/* SPDX-License-Identifier: MIT */
/* Tests of what is read of workers and of the machine (daemon/poll/poll.h, daemon/runtime/proc_evidence.h),
 * with real processes and a real redis-server. */
/* promises: P5 */
#include "daemon/poll/poll.h"
#include "daemon/runtime/proc_evidence.h"
#include "model/world.h"
#include "redis_runtime.h"

#define TITLE "sidekiq 7.3.1 app [2 of 5 busy]"

static void setup(void)
{
        redis_runtime_setup();
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

/* Starts a worker that is this script, and waits until it has come to its end: it says `up` then. */
static struct worker *start(const char *fleet_lines, const char *script)
{
        char text[1024], up[80];

        snprintf(text, sizeof(text), "up() { : >%s/up; }\n%s\n", server_directory, script);
        snprintf(up, sizeof(up), "%s/up", server_directory);
        ck_assert(unlink(up) == 0 || errno == ENOENT); /* of a test that failed */
        struct worker *worker = web_start_script("/bin/bash", text, fleet_lines);
        run_until(access(up, F_OK) == 0 && web_is_up());
        return worker;
}

static usec_t now(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

/* The title of a process is its own from its execve() on, which nobody can wait for but by looking. */
#define poll_until(condition, at)                                                                            \
        do {                                                                                                 \
                while (!(condition)) {                                                                       \
                        poll_run(&runtime, false, at);                                                       \
                        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);                        \
                }                                                                                            \
        } while (0)

/* It has booted before it beats. */
static bool has_booted(const struct worker *worker)
{
        return proc_evidence_has_booted(NULL, worker->handle->main, framework_of(web()->settings->traits)) >
               0;
}

/* Sidekiq writes one so. */
static void send_heartbeat(const struct worker *worker)
{
        static unsigned n;
        char identity[300];

        snprintf(identity, sizeof(identity), "%s:%d:0123456789ab", runtime.links.host_name,
                 (int)worker->process.pid);
        server_do("HSET %s busy 3 beat %lld.%06u quiet false concurrency 5", identity, (long long)time(NULL),
                  ++n);
        server_do("SADD processes %s", identity);
}

/* A record from before the first poll need not be this worker's, until it is seen to change. */
static void heartbeat_until_heard(const struct worker *worker)
{
        while (!worker->heartbeat.seen) {
                send_heartbeat(worker);
                poll_run(&runtime, false, now());
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
}

static struct worker *start_beating(const char *script)
{
        struct worker *worker = start("", script);

        run_until(has_booted(worker));
        heartbeat_until_heard(worker);
        return worker;
}

TEST(a_look_reads_the_heartbeat_of_a_worker)
{
        const struct worker *worker = start_beating("up; exec -a '" TITLE "' sleep 1000");

        ck_assert_int_eq(worker->process.heartbeat_pid, worker->process.pid);
        ck_assert_uint_eq(worker->heartbeat.busy, 3);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

TEST(memory_is_read_at_regular_looks_alone)
{
        /* One that executes holds next to nothing for a moment. */
        const struct worker *worker = start("", "sleep 1000 & up; wait");

        poll_run(&runtime, true, now());
        ck_assert_uint_eq(worker->memory.bytes, 0);
        ck_assert_uint_eq(runtime_world->available_bytes, 0);
        poll_run(&runtime, false, now());
        ck_assert_uint_gt(worker->memory.bytes, 100 * 1024);
        ck_assert_uint_lt(worker->memory.bytes, 1024 * 1024 * 1024);
        ck_assert_uint_gt(runtime_world->available_bytes, 0);
}

/* A process and its copy share 50 MB. Compared with this, other processes of the machine do not matter, nor
 * does the error of the kernel's counters, about a hundred pages per processor. */
static const struct {
        const char *lines;
        bool forked, over;
} measured[] = {
        {"memory_threshold=38M\n", true, false}, {"memory_limit=38M\n", true, false},
        {"memory_threshold=1M\n", true, true},   {"memory_threshold=38M\n", false, true},
        {"memory_limit=38M\n", false, true},
};

TEST_LOOP(the_limits_of_a_forked_worker_are_for_its_proportional_share, ELEMENTSOF(measured))
{
        static const char script[] = "printf -v held %50000000s; (sleep 1000; :) & up; wait";
        struct worker *worker = start(measured[_i].lines, script);
        _cleanup_proc_ struct proc *proc = NULL;
        uint64_t rss, pss, private;

        worker->process.forked = measured[_i].forked;
        ck_assert_int_eq(proc_open(worker->process.pid, &proc), 0);
        poll_run(&runtime, false, now());
        ck_assert_int_eq(proc_rss_bytes(proc, &rss), 0);
        ck_assert_int_eq(proc_mapped_bytes(proc, &pss, &private), 0);
        ck_assert_uint_lt(pss + 16 * 1024 * 1024, rss);
        ck_assert_uint_gt(worker->memory.bytes, (pss + rss) / 2);
        bool over = worker->memory.over_samples > 0 || worker->memory.over_limit;
        ck_assert(over == measured[_i].over);
}

TEST(job_threads_of_an_active_worker_are_a_witness_from_then_on)
{
        struct worker *worker = start("", "printf processor >/proc/$$/comm; up; sleep 1000 & wait");

        /* Nothing is known of a process that has not beaten. */
        poll_run(&runtime, false, now());
        ck_assert(!worker->evidence.threads_known);
        heartbeat_until_heard(worker);
        runtime_wakeup.pass.unsaved = false;
        poll_run(&runtime, false, now());
        ck_assert(worker->evidence.threads_known);
        ck_assert(worker->evidence.threads_witness);
        /* The next sqmgr is to know. */
        ck_assert(runtime_wakeup.pass.unsaved);
        runtime_wakeup.pass.unsaved = false;
        poll_run(&runtime, false, now());
        ck_assert(!runtime_wakeup.pass.unsaved);
}

TEST(the_title_of_a_worker_reports_what_it_runs_while_its_heartbeat_does_not)
{
        struct worker *worker = start_beating("up; exec -a '" TITLE "' sleep 1000");

        poll_run(&runtime, false, now());
        ck_assert(!worker->evidence.title_known); /* it beats */
        server_kill();
        run_until(!web_is_up());
        poll_until(worker->evidence.title_known, now());
        ck_assert_uint_eq(worker->heartbeat.busy, 2);
}

TEST(what_no_worker_is_called_reports_nothing)
{
        const struct worker *worker =
                start_beating("printf sidekiq.default >/proc/$$/comm; up; sleep 1000 & wait");

        server_kill();
        run_until(!web_is_up());
        poll_run(&runtime, false, now());
        ck_assert(!worker->evidence.title_known);
        ck_assert_uint_eq(worker->heartbeat.busy, 3);
}

static const struct {
        const char *script;
        bool booted;
} boots[] = {
        {"up; exec -a '" TITLE "' sleep 1000", true},
        /* Whoever wraps it looks like nothing. */
        {"(exec -a '" TITLE "' sleep 1000) & up; wait", true},
        {"printf sidekiq.default >/proc/$$/comm; up; sleep 1000 & wait", true},
        {"up; exec sleep 1000", false},
};

TEST_LOOP(after_boot_timeout_a_look_finds_out_whether_it_has_booted, ELEMENTSOF(boots))
{
        struct worker *worker = start("boot_timeout=60s\n", boots[_i].script);
        usec_t late = usec_add(now(), 61 * USEC_PER_SEC);

        poll_run(&runtime, false, now());
        ck_assert_uint_eq(worker->process.boot_polled_at, 0);
        if (boots[_i].booted)
                poll_until(worker->process.booted, late);
        else
                poll_run(&runtime, false, late);
        ck_assert_uint_eq(worker->process.boot_polled_at, late);
        ck_assert(worker->process.booted == boots[_i].booted);
        ck_assert(!!runtime_event(EVENT_ELSEWHERE) == boots[_i].booted);
}

/* Without a descriptor for it nobody knows, and a worker that has booted must not be taken for one that has
 * not. */
TEST(what_cannot_be_found_out_is_not_taken_for_a_worker_that_has_not_booted)
{
        struct worker *worker = start("boot_timeout=60s\n", "up; exec sleep 1000");
        struct rlimit before;

        unit_leave_descriptors(0, &before);
        poll_run(&runtime, false, usec_add(now(), 61 * USEC_PER_SEC));
        ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
        ck_assert_uint_eq(worker->process.boot_polled_at, 0);
}

TEST(the_oom_killer_is_noticed_when_it_strikes_again)
{
        char proc[80];

        start("", "up; exec sleep 1000");
        snprintf(proc, sizeof(proc), "%s/proc", server_directory);
        unit_write_file(server_directory, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable: 800 kB\n");
        unit_write_file(server_directory, "proc/vmstat", "nr_free_pages 1\noom_kill 7\n");
        proc_host_close(runtime.host);
        ck_assert_int_eq(proc_host_open(proc, server_directory, &runtime.host), 0);
        poll_run(&runtime, false, 1000);
        ck_assert_uint_eq(runtime_world->available_bytes, 800 * 1024);
        ck_assert_uint_eq(runtime_world->oom_at, 0); /* it may have struck at any time */
        unit_write_file(server_directory, "proc/vmstat", "nr_free_pages 1\noom_kill 8\n");
        poll_run(&runtime, true, 2000);
        ck_assert_uint_eq(runtime_world->oom_at, 0);
        poll_run(&runtime, false, 3000);
        ck_assert_uint_eq(runtime_world->oom_at, 3000);
}

REDIS_RUNTIME_MAIN("look", setup, redis_runtime_teardown_all)
