/* SPDX-License-Identifier: MIT */
/* Tests of which workers are found that the state does not tell of (daemon/takeover/search.h), with real
 * processes. These are of a user of their own, as far as one may: other tests have processes, too. */
/* promises: P4 */
#include "continuity/adoption.h"
#include "daemon/takeover/search.h"
#include "io/launch.h"
#include "model/fleet.h"
#include "runtime_folder.h"

/* In the script of begin(). */
#define INSTANCE "SQMGR_INSTANCE=$i"
#define MARKS    INSTANCE " SQMGR_WORKER="

static struct search search;
static pid_t sought[8];
static unsigned n_sought;

int __real_proc_cgroup(const struct proc *proc, char *text, size_t size);
int __wrap_proc_cgroup(const struct proc *proc, char *text, size_t size);

/* Tests that run at the same time may have workers in the control group of this one. */
int __wrap_proc_cgroup(const struct proc *proc, char *text, size_t size)
{
        bool own = proc_pid(proc) == getpid();

        for (unsigned i = 0; i < n_sought; i++)
                own |= getsid(proc_pid(proc)) == sought[i];
        if (own)
                return __real_proc_cgroup(proc, text, size);
        snprintf(text, size, "/elsewhere");
        return 0;
}

static void setup(void)
{
        runtime_folder_open();
        n_sought = 0;
        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\nactive_process_count=2\n");
        search = (struct search){.runtime = &runtime};
        ck_assert_int_eq(adoption_new(runtime_world, runtime.instance, &search.adoption), 0);
        adoption_seek(search.adoption, runtime_world->fleets[0], clock_now(CLOCK_MONOTONIC));
        adoption_distrust(search.adoption);
}

static void teardown(void)
{
        search.adoption = adoption_free(search.adoption);
        /* What they have started, too. */
        for (unsigned i = 0; i < n_sought; i++)
                if (kill(-sought[i], SIGKILL) < 0)
                        (void)kill(sought[i], SIGKILL);
        runtime_folder_close();
}

/* Starts a process that is this script, as the leader of its session, and waits until that has come to `up`.
 */
static pid_t begin(const char *script)
{
        char text[1024], name[16], up[80];

        snprintf(name, sizeof(name), "up%u", n_sought);
        snprintf(text, sizeof(text), "d=%s\ni=%s\nup() { : >$d/%s; }\n%s\n", dir, runtime.instance, name,
                 script);
        snprintf(up, sizeof(up), "%s/%s", dir, name);
        pid_t pid = unit_fork();
        if (pid == 0) {
                if (setsid() < 0 || prctl(PR_SET_PDEATHSIG, SIGKILL) < 0)
                        _exit(1);
                execl("/bin/bash", "bash", "-c", text, (char *)NULL);
                _exit(127);
        }
        sought[n_sought++] = pid;
        run_until(access(up, F_OK) == 0);
        return pid;
}

static usec_t now(void)
{
        return clock_now(CLOCK_MONOTONIC);
}

/* Is this a title yet? Its process says nothing once it has begun its command. */
static bool is_titled(pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL;
        char title[64];

        ck_assert_int_eq(proc_open(pid, &proc), 0);
        ck_assert_int_eq(proc_title(proc, title, sizeof(title)), 0);
        return strncmp(title, "sidekiq ", 8) == 0 || strncmp(title, "sleep ", 6) == 0;
}

/* Searches all processes: one call of search_run() reads 1000 at most. */
static int search_whole(void)
{
        int r;

        do
                r = search_run(&search, now());
        while (r == SEARCH_GOES_ON && !search.waits);
        return r;
}

static unsigned n_workers(void)
{
        return (unsigned)runtime_world->fleets[0]->n_workers;
}

TEST(a_process_that_bears_the_mark_is_adopted_and_watched)
{
        pid_t pid = begin("up; exec env " MARKS "web/2 SQMGR_GENERATION=7 sleep 1000");

        run_until(is_titled(pid));
        ck_assert_int_ge(search_whole(), 0);
        ck_assert_uint_eq(n_workers(), 1);
        struct worker *worker = runtime_world->fleets[0]->workers[0];
        ck_assert_int_eq(worker->process.pid, pid);
        ck_assert_uint_eq(worker->index, 2);
        ck_assert_uint_eq(worker->generation, 7);
        /* It was started just now, and not when the machine was. */
        ck_assert_uint_lt(usec_sub(now(), worker->spawned_at), USEC_PER_HOUR);
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        run_until(worker->state == WORKER_GONE);
}

static const char *const strangers[] = {
        "SQMGR_INSTANCE=another SQMGR_WORKER=web/1",
        INSTANCE,
        "SQMGR_WORKER=web/1",
        MARKS "mail/1",
        MARKS "web/0",
        MARKS "web",
};

TEST_LOOP(a_process_of_another_mark_is_left_alone, ELEMENTSOF(strangers))
{
        char script[256];

        snprintf(script, sizeof(script), "up; exec env %s sleep 1000", strangers[_i]);
        pid_t pid = begin(script);
        run_until(is_titled(pid));
        ck_assert_int_ge(search_whole(), 0);
        ck_assert_uint_eq(n_workers(), 0);
        ck_assert_int_eq(kill(pid, 0), 0);
}

TEST(a_wrapper_is_the_worker_and_not_its_child)
{
        pid_t pid = begin("export " MARKS "web/1\nexec bash -c 'sleep 1000 & : >$0; wait' $d/up0");

        ck_assert_int_ge(search_whole(), 0);
        ck_assert_uint_eq(n_workers(), 1);
        ck_assert_int_eq(runtime_world->fleets[0]->workers[0]->process.pid, pid);
}

/* Anybody can put into an environment what he likes. */
TEST(a_process_of_another_user_is_left_alone)
{
        if (geteuid() != 0)
                return;
        char instance[64];

        snprintf(instance, sizeof(instance), "SQMGR_INSTANCE=%s", runtime.instance);
        pid_t pid = unit_fork();
        if (pid == 0) {
                ck_assert_int_eq(setuid(65534), 0);
                ck_assert_int_eq(prctl(PR_SET_PDEATHSIG, SIGKILL), 0);
                execl("/usr/bin/env", "env", instance, "SQMGR_WORKER=web/1", "sleep", "1000", (char *)NULL);
                _exit(127);
        }
        sought[n_sought++] = pid;
        run_until(is_titled(pid));
        ck_assert_int_ge(search_whole(), 0);
        ck_assert_uint_eq(n_workers(), 0);
}

TEST(one_that_has_exited_is_no_worker)
{
        pid_t pid = begin("export " MARKS "web/1\nexec bash -c ': >$0; exit' $d/up0");
        siginfo_t info;

        ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        ck_assert_int_ge(search_whole(), 0);
        ck_assert_uint_eq(n_workers(), 0);
}

static void use_own_service(void)
{
        _cleanup_proc_ struct proc *self = NULL;

        ck_assert_int_eq(proc_open(getpid(), &self), 0);
        ck_assert_int_eq(proc_cgroup(self, search.service, sizeof(search.service)), 0);
}

#define TITLE "sidekiq 7.3.1 app [2 of 5 busy]"

/* Its title has grown over its environment. */
TEST(in_a_service_a_leader_that_has_booted_is_adopted_without_a_mark)
{
        pid_t pid = begin("up; exec -a '" TITLE "' sleep 1000");

        run_until(is_titled(pid));
        ck_assert_int_ge(search_whole(), 0);
        ck_assert_uint_eq(n_workers(), 0); /* in no service of ours */
        use_own_service();
        for (unsigned i = 0; i < 2; i++) {
                ck_assert_int_ge(search_whole(), 0);
                (void)adoption_search_end(search.adoption, 0, now());
        }
        ck_assert_uint_eq(n_workers(), 1);
        ck_assert_int_eq(runtime_world->fleets[0]->workers[0]->process.pid, pid);
}

TEST_LOOP(in_a_service_nothing_else_is, 2)
{
        static const char *const scripts[] = {
                "up; exec sleep 1000",                         /* it has not booted */
                "(exec -a '" TITLE "' sleep 1000) & up; wait", /* what has booted leads no session */
        };

        begin(scripts[_i]);
        use_own_service();
        for (unsigned i = 0; i < 3; i++) {
                ck_assert_int_ge(search_whole(), 0);
                (void)adoption_search_end(search.adoption, 0, now());
        }
        ck_assert_uint_eq(n_workers(), 0);
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

TEST(a_process_is_held_by_its_pid_and_its_start_time)
{
        _cleanup_proc_ struct proc *known = NULL, *proc = NULL;
        pid_t pid = begin("up; exec sleep 1000");

        ck_assert_int_eq(proc_open(pid, &known), 0);
        uint64_t start = proc_start_time(known);
        ck_assert_int_eq(proc_find(pid, start + 1, &proc), 0);
        ck_assert_ptr_null(proc);
        ck_assert_int_eq(proc_find(0, 0, &proc), 0);
        ck_assert_ptr_null(proc);
        ck_assert_int_eq(proc_find(pid, start, &proc), 0);
        ck_assert_ptr_nonnull(proc);
        ck_assert_int_eq(proc_pid(proc), pid);
        proc = proc_close(proc);
        /* A zombie works no more, whoever has to wait for it. */
        siginfo_t info;
        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        ck_assert_int_eq(proc_find(pid, start, &proc), 0);
        ck_assert_ptr_null(proc);
        ck_assert_int_eq(waitpid(pid, NULL, 0), pid);
        ck_assert_int_eq(proc_find(pid, start, &proc), 0);
        ck_assert_ptr_null(proc);
}

/* One that is passed over would be started once more. */
TEST(a_search_for_which_descriptors_are_short_fails_and_the_next_finds_it)
{
        struct rlimit before;
        pid_t pid = begin("up; exec env " MARKS "web/1 sleep 1000");
        unsigned failed = 0;

        run_until(is_titled(pid));
        for (unsigned n = 0; n_workers() == 0 || runtime_world->fleets[0]->workers[0]->state == WORKER_GONE;
             n++) {
                ck_assert_uint_lt(n, 20);
                fleet_reap(runtime_world->fleets[0], process_free);
                unit_leave_descriptors(n, &before);
                int r = search_whole();
                ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &before), 0);
                (void)adoption_search_end(search.adoption, MIN(r, 0), now());
                if (r < 0)
                        failed++;
                else
                        ck_assert_uint_eq(n_workers(), 1);
        }
        ck_assert_uint_gt(failed, 0);
        ck_assert_int_eq(runtime_world->fleets[0]->workers[0]->process.pid, pid);
        ck_assert(process_is_watched(runtime_world->fleets[0]->workers[0]->handle));
}

TEST_MAIN("found", .each = {setup, teardown})
