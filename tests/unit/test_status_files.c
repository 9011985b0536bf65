/* SPDX-License-Identifier: MIT */
/* Whose heartbeat a file is, with real processes: the test writes in their place. */
/* promises: P1 P4 P5 */
#include "base/fd.h"
#include "daemon/poll/local_heartbeats.h"
#include "daemon/poll/poll.h"
#include "golden.h"
#include "io/launch.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "observe/observe.h"
#include "runtime_folder.h"

static struct worker *worker;
static unsigned heartbeats;

static void open_directory(void)
{
        runtime_folder_open();
        ck_assert_int_eq(chmod(dir, 0711), 0);
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

static void start_framework(const char *framework, const char *lines)
{
        char text[768];

        snprintf(text, sizeof(text),
                 "[sqmgr]\nsocket=%s/control.sock\n" RUNTIME_REDIS "[fleet:web]\nframework=%s\n%s\n", dir,
                 framework, lines);
        runtime_start(text);
        heartbeats = 1000;
        worker = runtime_start_worker();
        ck_assert_ptr_nonnull(worker);
}

static void start_fleet(const char *lines)
{
        start_framework("native\nheartbeat=file", lines);
}

static void setup(void)
{
        open_directory();
        start_fleet("command=sleep 1000\njob_warn_after=10s");
}

static void look(void)
{
        poll_run(&runtime, false, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
}

static const char *path_of(pid_t pid)
{
        static char path[64];

        snprintf(path, sizeof(path), "status/web/%d", (int)pid);
        return path;
}

static const char *full_path_of(pid_t pid)
{
        static char path[128];

        snprintf(path, sizeof(path), "%s/%s", dir, path_of(pid));
        return path;
}

static bool is_made(void)
{
        char path[64];

        snprintf(path, sizeof(path), "%s/status/web", dir);
        return access(path, F_OK) == 0;
}

/* Until its directory is there, and was looked into. */
static void wait_until_made(void)
{
        while (!is_made())
                look();
        look();
}

static uint64_t start_of(pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL;

        ck_assert_int_eq(proc_open(pid, &proc), 0);
        return proc_start_time(proc);
}

static void write_record(pid_t pid, const char *rest, uint64_t start)
{
        char text[512];

        snprintf(text, sizeof(text), "v=1\nbeat=%u\n%sstart=%ju\n", ++heartbeats, rest, (uintmax_t)start);
        unit_write_file(dir, path_of(pid), text);
}

static void send_heartbeat(pid_t pid, unsigned busy, bool quiet)
{
        char text[64];

        snprintf(text, sizeof(text), "busy=%u\nquiet=%d\n", busy, quiet);
        write_record(pid, text, start_of(pid));
}

/* The worker sends a heartbeat, which is read. */
static void hear(unsigned busy, bool quiet)
{
        send_heartbeat(worker->process.pid, busy, quiet);
        look();
}

static void poll_finds_nothing(enum heartbeat_fault fault)
{
        look();
        look();
        ck_assert(!worker->heartbeat.seen);
        ck_assert_int_eq(worker->heartbeat.fault, fault);
}

TEST(its_heartbeats_are_heard)
{
        wait_until_made();
        poll_finds_nothing(HEARTBEAT_FAULT_NONE);
        hear(2, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_int_eq(worker->process.heartbeat_pid, worker->process.pid);
        ck_assert_uint_eq(worker->heartbeat.busy, 2);
        hear(1, false);
        ck_assert_uint_eq(worker->heartbeat.busy, 1);
        ck_assert(worker_fresh(worker, clock_now(CLOCK_MONOTONIC)));
        usec_t at = worker->heartbeat.changed_at;
        look();
        ck_assert_uint_eq(worker->heartbeat.changed_at, at);
        hear(0, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_ptr_null(worker->fleet->link);
        ck_assert_uint_eq(runtime.links.n, 0);
}

/* Has a record read that the worker runs j1 since 100 s, j2 since 5 s. */
static void send_jobs(unsigned busy, bool quiet)
{
        uint64_t realtime = clock_now(CLOCK_REALTIME) / USEC_PER_SEC;
        char text[256];

        snprintf(text, sizeof(text),
                 "busy=%u\nquiet=%d\nconcurrency=4\njob=j1 %ju.25 Hard\njob=j2 %ju mail all\n"
                 "queue=default\nqueue=mail\n",
                 busy, quiet, (uintmax_t)realtime - 100, (uintmax_t)realtime - 5);
        write_record(worker->process.pid, text, start_of(worker->process.pid));
        look();
}

static const struct job_list *jobs(void)
{
        return local_heartbeats_jobs(worker->handle->slot);
}

static unsigned reported(enum event_kind kind)
{
        unsigned n = 0;

        for (size_t i = 0; i < runtime_world->n_events; i++)
                n += runtime_world->events[i].kind == kind;
        return n;
}

TEST(jobs_and_queues_in_it_are_observed)
{
        wait_until_made();
        ck_assert_ptr_null(jobs());
        send_jobs(2, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(jobs()->n_jobs, 2);
        ck_assert_str_eq(jobs()->jobs[1].class, "mail all");
        const struct heartbeat_info *info = worker->handle->slot->info;
        ck_assert_mem_eq(info->queues, "default\0mail\0", sizeof("default\0mail\0"));
        ck_assert_uint_eq(info->concurrency, 4);
        ck_assert_uint_eq(worker->jobs.count, 2);
        ck_assert_uint_eq(worker->jobs.classes.n, 2);
        usec_t oldest = usec_sub(clock_now(CLOCK_MONOTONIC), worker->jobs.oldest_at);
        ck_assert(oldest >= 99 * USEC_PER_SEC && oldest < USEC_PER_HOUR);
        ck_assert(runtime_reported("Hard j1 has been running for "));
        ck_assert_uint_eq(reported(EVENT_JOB_LONG), 1);
        /* The same record says nothing new. */
        usec_t read_at = worker->jobs.read_at;
        look();
        ck_assert_uint_eq(worker->jobs.read_at, read_at);
        send_jobs(2, false);
        ck_assert_uint_gt(worker->jobs.read_at, read_at);
        ck_assert_uint_eq(reported(EVENT_JOB_LONG), 1);
        /* A record without a count of ended jobs changes nothing. */
        write_record(worker->process.pid, "busy=0\nquiet=0\njob=j3\n", start_of(worker->process.pid));
        look();
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_RECORD);
        ck_assert_uint_eq(jobs()->n_jobs, 2);
        hear(0, false);
        ck_assert_uint_eq(jobs()->n_jobs, 0);
        ck_assert_ptr_null(worker->handle->slot->info);
        ck_assert_uint_eq(worker->jobs.count, 0);
        ck_assert_uint_eq(worker->jobs.oldest_at, 0);
        heartbeats_forget(worker->handle->slot);
        ck_assert_ptr_null(jobs());
}

TEST(its_jobs_are_the_culprits_of_a_breach_before_it)
{
        wait_until_made();
        send_jobs(2, false);
        worker->memory.breach_at = clock_now(CLOCK_MONOTONIC);
        worker->memory.bytes = 1;
        send_jobs(2, false);
        ck_assert_uint_eq(reported(EVENT_CULPRITS), 0);
        send_jobs(2, false);
        ck_assert_uint_eq(reported(EVENT_CULPRITS), 1);
        ck_assert(runtime_reported("running Hard, mail all"));
        send_jobs(2, false);
        ck_assert_uint_eq(reported(EVENT_CULPRITS), 1);
}

TEST(a_quieted_worker_is_proven_idle_by_its_records_alone)
{
        wait_until_made();
        send_jobs(2, false);
        send_jobs(2, true);
        ck_assert_int_eq(worker->state, WORKER_QUIET);
        ck_assert_uint_gt(worker_oldest_job_usec(worker, clock_now(CLOCK_MONOTONIC)), 99 * USEC_PER_SEC);
        hear(0, true);
        ck_assert(!worker_proven_idle(worker));
        hear(0, true);
        ck_assert(worker_proven_idle(worker));
}

/* Of an adopted worker it may be what it wrote before it hung. */
TEST(what_is_there_at_first_counts_once_it_changes)
{
        while (!is_made())
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        send_heartbeat(worker->process.pid, 0, false);
        poll_finds_nothing(HEARTBEAT_FAULT_NONE);
        heartbeats -= 2;
        send_heartbeat(worker->process.pid, 0, false);
        poll_finds_nothing(HEARTBEAT_FAULT_NONE);
        heartbeats += 2;
        hear(0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

TEST(no_other_process_speaks_for_it)
{
        wait_until_made();
        send_heartbeat(getpid(), 0, true);
        send_heartbeat(1, 0, true);
        poll_finds_nothing(HEARTBEAT_FAULT_NONE);
        /* Nor under its name. */
        write_record(worker->process.pid, "busy=0\nquiet=0\n", worker->process.start + 1);
        poll_finds_nothing(HEARTBEAT_FAULT_START);
        hear(0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        send_heartbeat(worker->process.pid, 3, false);
        write_record(worker->process.pid, "busy=7\nquiet=1\n", worker->process.start + 1);
        look();
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_START);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        ck_assert_uint_eq(worker->heartbeat.busy, 0);
}

TEST(no_garbage_counts)
{
        wait_until_made();
        unit_write_file(dir, path_of(worker->process.pid), "v=2\nbeat=1\nbusy=0\nquiet=0\n");
        poll_finds_nothing(HEARTBEAT_FAULT_RECORD);
        unit_write_file(dir, path_of(worker->process.pid), "v=1\nbeat=1\nbusy=0\nquiet=0\n");
        poll_finds_nothing(HEARTBEAT_FAULT_START);
        unit_write_file(dir, path_of(worker->process.pid), "");
        poll_finds_nothing(HEARTBEAT_FAULT_RECORD);
        hear(0, false);
        ck_assert(worker->heartbeat.seen);
        unit_write_file(dir, path_of(worker->process.pid), "rubbish");
        look();
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_RECORD);
        ck_assert_int_eq(unlink(full_path_of(worker->process.pid)), 0);
        look();
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_MISSING);
        hear(4, false);
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_NONE);
        ck_assert_uint_eq(worker->heartbeat.busy, 4);
}

TEST(a_link_in_its_place_is_reported_of)
{
        wait_until_made();
        ck_assert_int_eq(symlink("/etc/passwd", full_path_of(worker->process.pid)), 0);
        poll_finds_nothing(HEARTBEAT_FAULT_KIND);
        observe_stopped(worker, REASON_BOOT, 0, clock_now(CLOCK_MONOTONIC));
        ck_assert(runtime_event(EVENT_BOOT_TIMEOUT));
}

TEST(without_its_directory_it_is_not_heard)
{
        char from[128], to[128];

        wait_until_made();
        hear(0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        snprintf(from, sizeof(from), "%s/status/web", dir);
        snprintf(to, sizeof(to), "%s/elsewhere", dir);
        ck_assert_int_eq(rename(from, to), 0);
        ck_assert_int_eq(symlink(to, from), 0);
        hear(5, false);
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_PLACE);
        ck_assert_uint_eq(worker->heartbeat.busy, 0);
        ck_assert_int_eq(unlink(from), 0);
        ck_assert_int_eq(rename(to, from), 0);
        look();
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_NONE);
        ck_assert_uint_eq(worker->heartbeat.busy, 5);
}

static void end_of(pid_t pid)
{
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
}

static void reap(void)
{
        while (worker->state != WORKER_GONE)
                look();
        fleet_reap(runtime_world->fleets[0], process_free);
}

TEST(its_file_goes_with_it)
{
        wait_until_made();
        pid_t pid = worker->process.pid;
        send_heartbeat(pid, 0, false);
        look();
        ck_assert_int_eq(worker->process.heartbeat_pid, pid);
        end_of(pid);
        reap();
        ck_assert_int_lt(access(full_path_of(pid), F_OK), 0);
}

/* So does what sqmgr leaves behind as it ends: the next one reads on. */
TEST(the_file_of_one_that_lives_on_stays)
{
        wait_until_made();
        hear(0, false);
        process_free(TAKE_PTR(worker->handle));
        ck_assert_int_eq(access(full_path_of(worker->process.pid), F_OK), 0);
}

/* A wrapper, and so many that beat not, once they may. */
static void setup_crowd(void)
{
        char line[256];

        open_directory();
        snprintf(line, sizeof(line),
                 "command=/bin/sh -c 'until [ -e %s/go ]; do sleep 0.02; done; "
                 "for i in $(seq 150); do sleep 1000 & done; wait'",
                 dir);
        start_fleet(line);
}

/* They come after the first search: what that finds on its way counts once it changes. */
static pid_t last_child(void)
{
        wait_until_made();
        unit_write_file(dir, "go", "");
        for (;;) {
                _cleanup_free_ pid_t *pids = NULL;
                size_t n;

                ck_assert_int_eq(proc_children(worker->process.pid, &pids, &n), 0);
                if (n == 150)
                        return pids[n - 1];
                (void)sd_event_run(event, 10 * USEC_PER_MSEC);
        }
}

TEST_FIXTURE(setup_crowd, runtime_folder_close)

TEST(one_of_many_is_found_a_few_at_a_time)
{
        pid_t pid = last_child();
        unsigned poll_items = 0;

        send_heartbeat(pid, 0, false);
        for (; !worker->heartbeat.seen; poll_items++)
                look();
        ck_assert_uint_gt(poll_items, 1);
        ck_assert_int_eq(worker->process.heartbeat_pid, pid);
        ck_assert_int_ne(worker->process.pid, pid);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

TEST(another_takes_up_the_heartbeat_of_one_that_has_ended)
{
        pid_t pid = last_child();
        send_heartbeat(pid, 0, false);
        while (!worker->heartbeat.seen)
                look();
        uint64_t start = start_of(pid);
        /* The wrapper does not wait for it meanwhile: it is there, and dead. */
        ck_assert_int_eq(kill(worker->process.pid, SIGSTOP), 0);
        end_of(pid);
        while (worker->process.heartbeat_pid != 0)
                look();
        ck_assert_int_lt(access(full_path_of(pid), F_OK), 0);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        /* The dead do not speak. */
        write_record(pid, "busy=0\nquiet=0\n", start);
        look();
        look();
        look();
        ck_assert(!worker->heartbeat.seen);
        ck_assert_int_eq(kill(worker->process.pid, SIGCONT), 0);
        send_heartbeat(worker->process.pid, 0, false);
        while (!worker->heartbeat.seen)
                look();
        ck_assert_int_eq(worker->process.heartbeat_pid, worker->process.pid);
}

static const char *own_file(const char *name)
{
        static char text[256], path[160];

        snprintf(path, sizeof(path), "%s/status/web/%s", dir, name);
        while (fd_read_file(AT_FDCWD, path, text, sizeof(text)) < 0 || !strchr(text, '\n'))
                look();
        return text;
}

#define NOTES "/bin/sh -c 'echo $SQMGR_STATUS_DIR >$SQMGR_STATUS_DIR/note; exec sleep 1000'"

TEST_FIXTURE(open_directory, runtime_folder_close)

/* Whatever its own environment says. */
TEST(a_worker_finds_its_directory_in_its_environment)
{
        char expected[128];

        start_fleet("command=" NOTES "\nenvironment=SQMGR_STATUS_DIR=/elsewhere");
        snprintf(expected, sizeof(expected), "%s/status/web\n", dir);
        ck_assert_str_eq(own_file("note"), expected);
}

TEST(each_start_clears_it)
{
        struct stat status;
        char path[128];

        start_fleet("command=" NOTES);
        (void)own_file("note");
        snprintf(path, sizeof(path), "%s/status/web", dir);
        ck_assert_int_eq(stat(path, &status), 0);
        ck_assert_uint_eq(status.st_mode & 07777, 0700);
        pid_t pid = worker->process.pid;
        unit_write_file(dir, path_of(pid), "its last words");
        end_of(pid);
        reap();
        worker = runtime_start_worker();
        while (access(full_path_of(pid), F_OK) == 0)
                look();
}

/* The reason is that of the section of tests/golden/start-errors. */
static void expect_end(const char *section)
{
        reap();
        const struct event *crash = runtime_event(EVENT_CRASHED);
        ck_assert_ptr_nonnull(crash);
        ck_assert_ptr_nonnull(crash->quoted);
        golden_expect_with("start-errors", section, quoted_reveal(crash->quoted), dir, "D");
}

TEST(where_something_else_has_its_name_none_starts)
{
        unit_write_file(dir, "status/web", "");
        start_fleet("command=sleep 1000");
        expect_end("status directory: no directory");
}

/* The worker of a framework that loads a shim. */
static void boot_shimmed(void)
{
        start_framework("bullmq", "command=sleep 1000");
        heartbeats = 1U << 30;
        wait_until_made();
}

static void pass_boot_timeout(void)
{
        ((struct fleet_settings *)worker->fleet->settings)->boot_timeout = 1;
        look();
        look();
}

static void begin_file(pid_t pid)
{
        char name[64];

        snprintf(name, sizeof(name), "status/web/.%d", (int)pid);
        unit_write_file(dir, name, "");
}

TEST(one_that_begins_no_file_has_not_loaded_its_shim)
{
        boot_shimmed();
        pass_boot_timeout();
        ck_assert(worker->process.shimless);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
        /* The boot was only slow. */
        ck_assert(worker_fresh(worker, clock_now(CLOCK_MONOTONIC)));
        begin_file(worker->process.pid);
        look();
        ck_assert(!worker_fresh(worker, clock_now(CLOCK_MONOTONIC)));
        ck_assert_uint_eq(worker_silent_usec(worker, clock_now(CLOCK_MONOTONIC) + USEC_PER_HOUR), 0);
        usec_t at = worker->heartbeat.changed_at;
        look();
        ck_assert_uint_eq(worker->heartbeat.changed_at, at);
        hear(3, false);
        ck_assert(!worker->process.shimless);
        ck_assert_uint_eq(worker->heartbeat.busy, 3);
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_NONE);
}

/* A worker that boots for long, or cannot write: an empty file can be made on a full disk, too. */
TEST(one_that_has_begun_its_file_has_loaded_its_shim)
{
        boot_shimmed();
        begin_file(worker->process.pid);
        pass_boot_timeout();
        poll_finds_nothing(HEARTBEAT_FAULT_BEGUN);
        ck_assert(!worker->process.shimless);
        hear(0, false);
        ck_assert_int_eq(worker->state, WORKER_ACTIVE);
}

/* As the next sqmgr finds it, which has not read that file before. */
TEST(one_with_an_old_file_has_loaded_its_shim)
{
        start_framework("bullmq", "command=sleep 1000");
        ((struct fleet_settings *)worker->fleet->settings)->boot_timeout = 1;
        while (!is_made())
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        send_heartbeat(worker->process.pid, 1, false);
        poll_finds_nothing(HEARTBEAT_FAULT_BEGUN);
        hear(1, false);
        ck_assert(worker->heartbeat.seen);
        ck_assert(!worker->process.shimless);
}

/* A file that cannot be read does not show whether a shim is loaded. */
TEST(without_its_directory_none_lacks_its_shim)
{
        char from[128], to[128];

        boot_shimmed();
        snprintf(from, sizeof(from), "%s/status/web", dir);
        snprintf(to, sizeof(to), "%s/elsewhere", dir);
        ck_assert_int_eq(rename(from, to), 0);
        pass_boot_timeout();
        poll_finds_nothing(HEARTBEAT_FAULT_PLACE);
        ck_assert_int_eq(symlink(to, from), 0);
        poll_finds_nothing(HEARTBEAT_FAULT_PLACE);
        ck_assert_int_eq(unlink(from), 0);
        ck_assert_int_eq(rename(to, from), 0);
        look();
        ck_assert(!worker->process.shimless);
}

static void setup_shimmed_crowd(void)
{
        open_directory();
        start_framework("bullmq", "command=/bin/sh -c 'for i in $(seq 150); do sleep 1000 & done; wait'");
}

TEST_FIXTURE(setup_shimmed_crowd, runtime_folder_close)

TEST(one_of_many_that_has_begun_its_file_has_loaded_its_shim)
{
        begin_file(last_child());
        pass_boot_timeout();
        for (unsigned i = 0; i < 12; i++)
                look();
        ck_assert(!worker->process.shimless);
        ck_assert_int_eq(worker->heartbeat.fault, HEARTBEAT_FAULT_BEGUN);
}

TEST_MAIN("status_files", .each = {setup, runtime_folder_close})
