/* SPDX-License-Identifier: MIT */
/* Tests of the search for workers that no state file names (daemon/takeover/search.h) with real processes. */
/* promises: P4 P8 */
#include "continuity/adoption.h"
#include "daemon/takeover/search.h"
#include "io/launch.h"
#include "io/marker.h"
#include "io/proc.h"
#include "runtime_folder.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/pidfd.h>

static struct search search;
static pid_t read_of[4096]; /* whose environment was read */
static size_t n_read;
static pid_t parent;
static unsigned slices; /* that the last search took */

ssize_t __real_proc_environment(const struct proc *proc, char *text, size_t size);
ssize_t __wrap_proc_environment(const struct proc *proc, char *text, size_t size);

ssize_t __wrap_proc_environment(const struct proc *proc, char *text, size_t size)
{
        ck_assert_uint_le(size, 128 * 1024);
        ck_assert_uint_lt(n_read, ELEMENTSOF(read_of));
        read_of[n_read++] = proc_pid(proc);
        return __real_proc_environment(proc, text, size);
}

static void setup(void)
{
        n_read = 0;
        runtime_folder_open();
        ck_assert_int_eq(chmod(dir, 0755), 0);
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\n");
        search = (struct search){.runtime = &runtime};
        ck_assert_int_eq(adoption_new(runtime_world, runtime.instance, &search.adoption), 0);
        adoption_seek(search.adoption, runtime_world->fleets[0], clock_now(CLOCK_MONOTONIC));
        adoption_distrust(search.adoption);
}

static void teardown(void)
{
        search.adoption = adoption_free(search.adoption);
        free(search.pids);
        runtime_folder_close();
}

/* A process of this user: a program with that environment. Its parent is nobody's sqmgr, and ends it with
 * itself. */
static pid_t spawn(uid_t uid, const char *program, char *const environment[])
{
        static char name[] = "sleep", seconds[] = "1000";
        char *const argv[] = {name, seconds, NULL};
        int pair[2];
        pid_t pid;

        ck_assert_int_eq(pipe2(pair, O_CLOEXEC), 0);
        parent = unit_fork_bound();
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
                execve(program, argv, environment);
                _exit(1);
        }
        close_fd(pair[1]);
        ck_assert_int_eq(read(pair[0], &pid, sizeof(pid)), sizeof(pid));
        /* Until it runs the program. */
        ck_assert_int_eq(read(pair[0], &pid, sizeof(pid)), 0);
        close_fd(pair[0]);
        return pid;
}

/* Returns the variable of this test's sqmgr. */
static char *own_instance(void)
{
        static char text[64];

        snprintf(text, sizeof(text), "SQMGR_INSTANCE=%s", runtime.instance);
        return text;
}

static void end(void)
{
        ck_assert_int_eq(kill(parent, SIGKILL), 0);
        while (waitpid(-1, NULL, 0) > 0)
                ;
}

static void run(void)
{
        int r = SEARCH_GOES_ON;

        for (slices = 0; r == SEARCH_GOES_ON; slices++)
                r = search_run(&search, clock_now(CLOCK_MONOTONIC));
        ck_assert_int_eq(r, SEARCH_WHOLE);
}

TEST(of_other_users_nothing_is_read)
{
        char *instance = own_instance(), worker[] = "SQMGR_WORKER=web/2";
        char *const marked[] = {instance, worker, NULL};
        pid_t ours = spawn(geteuid(), "/bin/sleep", marked);
        struct stat status;
        char path[64];
        bool found = false;

        run();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 1);
        ck_assert_int_eq(runtime_world->fleets[0]->workers[0]->process.pid, ours);
        ck_assert_uint_eq(runtime_world->fleets[0]->workers[0]->index, 2);
        for (size_t i = 0; i < n_read; i++) {
                found |= read_of[i] == ours;
                snprintf(path, sizeof(path), "/proc/%d", (int)read_of[i]);
                if (stat(path, &status) == 0)
                        ck_assert_uint_eq(status.st_uid, geteuid());
        }
        ck_assert(found);
        end();
}

/* As python3-setproctitle does to Celery and RQ. A process of another instance, and one whose descriptor is a
 * file of such a name, are left alone. */
TEST(a_worker_without_environment_is_found_by_the_name_of_a_descriptor)
{
        const char *const instances[] = {runtime.instance, "fedcba9876543210", NULL};
        pid_t pids[3], parents[3];
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
                pids[i] = spawn(geteuid(), "/bin/sleep", (char *[]){NULL});
                parents[i] = parent;
        }
        close(MARKER_FD);
        run();
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 1);
        ck_assert_int_eq(runtime_world->fleets[0]->workers[0]->process.pid, pids[0]);
        ck_assert_uint_eq(runtime_world->fleets[0]->workers[0]->index, 2);
        ck_assert_uint_eq(runtime_world->fleets[0]->workers[0]->spawned_at, 5);
        for (size_t i = 0; i < 2; i++)
                ck_assert_int_eq(kill(parents[i], SIGKILL), 0);
        end();
}

TEST(large_environments_are_read_a_few_at_a_time_and_the_first_of_each)
{
        enum { N = 40, LONG = 100 * 1024 };
        char *instance = own_instance(), worker[] = "SQMGR_WORKER=web/2";
        static char large[LONG], larger[LONG];
        char *const late[] = {large, larger, instance, worker, NULL};
        char *const soon[] = {instance, worker, large, larger, NULL};
        pid_t parents[N];

        memset(large, 'a', LONG - 1);
        large[1] = '=';
        memset(larger, 'b', LONG - 1);
        larger[1] = '=';
        for (size_t i = 0; i < N; i++) {
                (void)spawn(geteuid(), "/bin/sleep", late);
                parents[i] = parent;
        }
        pid_t ours = spawn(geteuid(), "/bin/sleep", soon);
        run();
        ck_assert_uint_gt(slices, 1);
        ck_assert_uint_eq(runtime_world->fleets[0]->n_workers, 1);
        ck_assert_int_eq(runtime_world->fleets[0]->workers[0]->process.pid, ours);
        for (size_t i = 0; i < N; i++)
                ck_assert_int_eq(kill(parents[i], SIGKILL), 0);
        end();
}

TEST_MAIN("search", .each = {setup, teardown}, .timeout_seconds = 120)
