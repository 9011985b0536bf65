/* SPDX-License-Identifier: MIT */
/* Tests of the search for workers that no state file names (daemon/takeover/search.h) with real processes.
 * Which of the processes are ours is judged by continuity/adoption: test_adoption. */
/* promises: P4 P8 */
#include "continuity/adoption.h"
#include "daemon/takeover/search.h"
#include "io/launch.h"
#include "io/marker.h"
#include "runtime_folder.h"
#include <fcntl.h>
#include <sys/mman.h>

#define TITLE "sidekiq 7.3.1 app [2 of 5 busy]"
#define N_MAX 64

static struct search search;
static pid_t read_of[4096]; /* whose environment was read by the last search */
static size_t n_read;
static pid_t started[N_MAX], parents[N_MAX];
static unsigned n_started;
static unsigned slices; /* that the last search took */
static char instance[64];

ssize_t __real_proc_environment(const struct proc *proc, char *text, size_t size);
ssize_t __wrap_proc_environment(const struct proc *proc, char *text, size_t size);

ssize_t __wrap_proc_environment(const struct proc *proc, char *text, size_t size)
{
        ck_assert_uint_le(size, 128 * 1024);
        ck_assert_uint_lt(n_read, ELEMENTSOF(read_of));
        read_of[n_read++] = proc_pid(proc);
        return __real_proc_environment(proc, text, size);
}

int __real_proc_cgroup(const struct proc *proc, char *text, size_t size);
int __wrap_proc_cgroup(const struct proc *proc, char *text, size_t size);

/* Tests that run at the same time may have workers in the control group of this one. */
int __wrap_proc_cgroup(const struct proc *proc, char *text, size_t size)
{
        bool own = proc_pid(proc) == getpid();

        for (unsigned i = 0; i < n_started; i++)
                own |= proc_pid(proc) == started[i];
        if (own)
                return __real_proc_cgroup(proc, text, size);
        snprintf(text, size, "/elsewhere");
        return 0;
}

static void setup(void)
{
        runtime_folder_open();
        n_started = 0;
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nactive_process_count=2\n");
        snprintf(instance, sizeof(instance), "SQMGR_INSTANCE=%s", runtime.instance);
        search = (struct search){.runtime = &runtime};
        ck_assert_int_eq(
                adoption_new(runtime_world, runtime.instance, clock_now(CLOCK_MONOTONIC), &search.adoption),
                0);
        search.adoption->unsure = true;
}

static void teardown(void)
{
        search.adoption = adoption_free(search.adoption);
        free(search.pids);
        for (unsigned i = 0; i < n_started; i++)
                ck_assert_int_eq(kill(parents[i], SIGKILL), 0);
        runtime_folder_close();
}

/* Starts a process of this user with that title and environment, which leads its session. Its parent is
 * nobody's sqmgr, does not wait for it, and ends it with itself. */
static pid_t spawn(uid_t uid, const char *title, char *const environment[])
{
        static char seconds[] = "1000";
        char *const argv[] = {(char *)title, seconds, NULL};
        int pair[2];
        pid_t pid;

        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        pid_t parent = unit_fork_bound();
        if (parent == 0) {
                prctl(PR_SET_NAME, "another");
                pid = fork();
                if (pid > 0)
                        (void)close_range(STDERR_FILENO + 1, UINT_MAX, 0);
                while (pid > 0)
                        pause();
                if (setsid() < 0 || (geteuid() == 0 && setresuid(uid, uid, uid) < 0) ||
                    prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                        _exit(1);
                pid = getpid();
                (void)!write(pair[1], &pid, sizeof(pid));
                execve("/bin/sleep", argv, environment);
                _exit(1);
        }
        close_fd(pair[1]);
        ck_assert_int_eq(read(pair[0], &pid, sizeof(pid)), sizeof(pid));
        /* Until it runs the program. */
        ck_assert_int_eq(read(pair[0], &(char){0}, 1), 0);
        close_fd(pair[0]);
        ck_assert_uint_lt(n_started, N_MAX);
        parents[n_started] = parent;
        started[n_started++] = pid;
        return pid;
}

/* The same with the mark of worker web/2. */
static pid_t spawn_marked(uid_t uid)
{
        char worker[] = "SQMGR_WORKER=web/2", generation[] = "SQMGR_GENERATION=7";
        char *const environment[] = {instance, worker, generation, NULL};

        return spawn(uid, "sleep", environment);
}

/* Searches all processes, and ends the search. Returns as search_run(). */
static int run(void)
{
        int r = SEARCH_GOES_ON;

        n_read = 0;
        for (slices = 0; r == SEARCH_GOES_ON; slices++)
                r = search_run(&search, clock_now(CLOCK_MONOTONIC));
        (void)adoption_search_end(search.adoption, MIN(r, 0), clock_now(CLOCK_MONOTONIC));
        return r;
}

static unsigned n_workers(void)
{
        return (unsigned)runtime_world->fleets[0]->n_workers;
}

/* Expects that the search finds this process, and no other. Returns its worker. */
static struct worker *finds(pid_t pid)
{
        ck_assert_int_eq(run(), SEARCH_WHOLE);
        ck_assert_uint_eq(n_workers(), 1);
        struct worker *worker = runtime_world->fleets[0]->workers[0];
        ck_assert_int_eq(worker->process.pid, pid);
        return worker;
}

TEST(a_process_that_bears_the_mark_is_adopted_and_watched)
{
        pid_t pid = spawn_marked(geteuid());
        struct worker *worker = finds(pid);

        ck_assert_uint_eq(worker->index, 2);
        ck_assert_uint_eq(worker->generation, 7);
        /* It was started just now, and not when the machine was. */
        ck_assert_uint_lt(usec_sub(clock_now(CLOCK_MONOTONIC), worker->spawned_at), USEC_PER_HOUR);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        run_until(worker->state == WORKER_GONE);
}

/* Anybody can put into an environment what he likes. */
TEST(of_other_users_nothing_is_read)
{
        pid_t ours = spawn_marked(geteuid());
        struct stat status;
        char path[64];
        bool found = false;

        if (geteuid() == 0)
                (void)spawn_marked(65534);
        (void)finds(ours);
        for (size_t i = 0; i < n_read; i++) {
                found |= read_of[i] == ours;
                snprintf(path, sizeof(path), "/proc/%d", (int)read_of[i]);
                if (stat(path, &status) == 0)
                        ck_assert_uint_eq(status.st_uid, geteuid());
        }
        ck_assert(found);
}

/* As python3-setproctitle does to Celery and RQ. A process of another instance, and one whose descriptor is a
 * file of such a name, are left alone. */
TEST(a_worker_without_environment_is_found_by_the_name_of_a_descriptor)
{
        const char *const instances[] = {runtime.instance, "fedcba9876543210", NULL};
        pid_t pids[3];
        char name[160];

        for (size_t i = 0; i < 3; i++) {
                snprintf(name, sizeof(name), "SQMGR_INSTANCE=%s SQMGR_WORKER=web/%zu SQMGR_START=5",
                         instances[i] ?: instances[0], i + 2);
                int fd = instances[i] ? memfd_create(name, 0) : -1;

                if (fd < 0) {
                        snprintf(name, sizeof(name), "%s/memfd:SQMGR_INSTANCE=%s", dir, instances[0]);
                        fd = open(name, O_RDWR | O_CREAT, 0600);
                }
                ck_assert_int_ge(fd, 0);
                ck_assert_int_eq(dup2(fd, MARKER_FD), MARKER_FD);
                close(fd);
                pids[i] = spawn(geteuid(), "sleep", (char *[]){NULL});
        }
        close(MARKER_FD);
        const struct worker *worker = finds(pids[0]);
        ck_assert_uint_eq(worker->index, 2);
        ck_assert_uint_eq(worker->spawned_at, 5);
}

TEST(large_environments_are_read_a_few_at_a_time_and_the_first_of_each)
{
        enum { N = 40, LONG = 100 * 1024 };
        char worker[] = "SQMGR_WORKER=web/2";
        static char large[LONG], larger[LONG];
        char *const late[] = {large, larger, instance, worker, NULL};
        char *const soon[] = {instance, worker, large, larger, NULL};

        memset(large, 'a', LONG - 1);
        large[1] = '=';
        memset(larger, 'b', LONG - 1);
        larger[1] = '=';
        for (size_t i = 0; i < N; i++)
                (void)spawn(geteuid(), "sleep", late);
        (void)finds(spawn(geteuid(), "sleep", soon));
        ck_assert_uint_gt(slices, 1);
}

TEST(one_that_has_exited_is_no_worker)
{
        pid_t pid = spawn_marked(geteuid());
        _cleanup_proc_ struct proc *proc = NULL;

        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        while (!proc_has_exited(proc))
                (void)usleep(1000);
        ck_assert_int_eq(run(), SEARCH_WHOLE);
        ck_assert_uint_eq(n_workers(), 0);
}

/* Its title has grown over its environment. */
TEST(in_a_service_a_leader_that_has_booted_is_adopted_without_a_mark)
{
        _cleanup_proc_ struct proc *self = NULL;
        pid_t pid = spawn(geteuid(), TITLE, (char *[]){NULL});

        (void)spawn(geteuid(), "sleep", (char *[]){NULL});
        ck_assert_int_eq(run(), SEARCH_WHOLE);
        ck_assert_uint_eq(n_workers(), 0); /* in no service of ours */
        search.adoption->sought[0].done = false;
        ck_assert_int_eq(proc_open(getpid(), &self), 0);
        ck_assert_int_eq(proc_cgroup(self, search.service, sizeof(search.service)), 0);
        (void)finds(pid);
}

TEST(only_a_service_has_a_control_group_that_reports)
{
        ck_assert_int_eq(unsetenv("NOTIFY_SOCKET"), 0);
        ck_assert_int_eq(search_service(&search), 0);
        ck_assert_str_eq(search.service, "");
        ck_assert_int_eq(setenv("NOTIFY_SOCKET", "/nonexistent", 1), 0);
        ck_assert_int_eq(search_service(&search), 0);
        ck_assert(search.service[0] == '\0' || strstr(search.service, ".service"));
}

static bool is_found(pid_t pid, uint64_t start)
{
        _cleanup_proc_ struct proc *proc = NULL;

        ck_assert_int_eq(proc_find(pid, start, &proc), 0);
        ck_assert(!proc || proc_pid(proc) == pid);
        return proc;
}

TEST(a_process_is_held_by_its_pid_and_its_start_time)
{
        _cleanup_proc_ struct proc *known = NULL;
        pid_t pid = spawn_marked(geteuid());

        ck_assert_int_eq(proc_open(pid, &known), 0);
        uint64_t start = proc_start_time(known);
        ck_assert(is_found(pid, start));
        ck_assert(!is_found(pid, start + 1));
        ck_assert(!is_found(0, 0));
        /* A zombie works no more, whoever has to wait for it. */
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        while (is_found(pid, start))
                (void)usleep(1000);
        ck_assert_int_eq(kill(pid, 0), 0);
}

/* One that is passed over would be started once more. */
TEST(a_search_for_which_descriptors_are_short_fails_and_the_next_finds_it)
{
        struct rlimit before;
        pid_t pid = spawn_marked(geteuid());
        unsigned failed = 0;

        for (unsigned n = 0; n_workers() == 0 || runtime_world->fleets[0]->workers[0]->state == WORKER_GONE;
             n++) {
                ck_assert_uint_lt(n, 20);
                fleet_reap(runtime_world->fleets[0], process_free);
                unit_leave_descriptors(n, &before);
                int r = run();
                ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
                if (r < 0)
                        failed++;
                else
                        ck_assert_uint_eq(n_workers(), 1);
        }
        ck_assert_uint_gt(failed, 0);
        ck_assert_int_eq(runtime_world->fleets[0]->workers[0]->process.pid, pid);
        ck_assert(process_is_watched(runtime_world->fleets[0]->workers[0]->handle));
}

TEST_MAIN("search", .each = {setup, teardown}, .timeout_seconds = 120)
