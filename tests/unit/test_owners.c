/* SPDX-License-Identifier: MIT */
/* Which processes are a worker's own (daemon/workers/process.h, attach.h), with real processes. */
/* promises: P1 P4 */
#include "observe/observe.h"
#include "runtime_folder.h"

static void setup(void)
{
        runtime_folder_open();
        signal(SIGPIPE, SIG_IGN);
        ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0), 0);
}

/* Another worker of the fleet has this process. */
static struct worker *adopt_another(pid_t pid)
{
        struct proc *proc;
        struct worker *worker = runtime_adopt(pid, &proc);

        ck_assert_int_eq(attach_adopted(&runtime, worker, proc, NULL, NULL, 0), 0);
        return worker;
}

/* Another worker, whose process is out of reach, has the heartbeats of this pid. */
static void heartbeat_for_another(struct worker *other, const char *host, pid_t pid)
{
        struct match *match = other->handle->slot->heartbeats->match;
        char identity[128];

        snprintf(identity, sizeof(identity), "%s:%d:0123456789ab", host, (int)pid);
        const struct match_found found = {
                .identity = identity, .len = strlen(identity), .host_len = strlen(host), .pid = pid};
        ck_assert_int_eq(match_host_is(match, host, 1), 0);
        match_scan_begin(match, 2);
        ck_assert_int_eq(match_scan_add(match, &found, 2), 0);
        match_scan_end(match);
        ck_assert_uint_eq(match->n_candidates, 1);
        match->candidates[0]->owner = other->handle->slot;
        match->candidates[0]->pid = other->process.pid;
        match->candidates[0]->remote = true;
}

/* What keeps running in the group of a worker that has exited: a process that has booted, in a shell. */
enum whose { NOBODYS, OF_ANOTHER, BELOW_ANOTHER, HEARD_AS_ANOTHER, STARTED_AS_ANOTHER, OF_ANOTHER_SQMGR };
static const char *const started_with[] = {
        [NOBODYS] = "env -i X=1",
        [OF_ANOTHER] = "env -i X=1",
        [BELOW_ANOTHER] = "env -i X=1",
        [HEARD_AS_ANOTHER] = "env -i X=1",
        [STARTED_AS_ANOTHER] = "env SQMGR_WORKER=web/2",
        [OF_ANOTHER_SQMGR] = "env SQMGR_INSTANCE=another",
};

TEST_LOOP(a_process_of_another_worker_is_no_sibling, ELEMENTSOF(started_with))
{
        char script[512];

        snprintf(script, sizeof(script),
                 "d=%s\n(%s bash -c \"exec -a 'sidekiq 7.3.1 app [0 of 5 busy]' sleep 1000\" &\n" REPORT_PID(
                         "child", "$!") "wait) &\n" REPORT_PID("shell", "$!") "exec sleep 1000",
                 dir, started_with[_i]);
        unit_write_file(dir, "script", script);
        snprintf(script, sizeof(script), RUNTIME_REDIS "[fleet:web]\ncommand=/bin/sh %s/script\n", dir);
        runtime_start(script);
        struct worker *worker = runtime_start_worker();
        ck_assert_ptr_nonnull(worker);
        pid_t main = worker->process.pid, child, shell;

        run_until((child = runtime_read_pid(dir, "child")) > 0 &&
                  (shell = runtime_read_pid(dir, "shell")) > 0 && runtime_has_booted(child));
        struct worker *other = NULL;
        if (_i == OF_ANOTHER || _i == BELOW_ANOTHER)
                other = adopt_another(_i == OF_ANOTHER ? child : shell);
        pid_t remote = _i == HEARD_AS_ANOTHER ? fork() : 0;
        if (_i == HEARD_AS_ANOTHER) {
                while (remote == 0)
                        pause();
                heartbeat_for_another(adopt_another(remote), "box", child);
        }
        worker->state = WORKER_ACTIVE;
        ck_assert_int_eq(kill(main, SIGKILL), 0);
        run_until(worker->state != WORKER_ACTIVE);
        ck_assert_int_eq(worker->state, _i == NOBODYS ? WORKER_QUIET : WORKER_GONE);
        ck_assert_int_eq(worker->process.pid, _i == NOBODYS ? child : main);
        ck_assert_int_eq(kill(child, 0), 0);
        if (other)
                ck_assert_int_eq(other->state, WORKER_STARTING);
        ck_assert_int_eq(kill(child, SIGKILL), 0);
        run_until(is_gone(child) && is_gone(shell));
}

/* All that a daemon starts is in its group, which is no group of a worker. */
TEST(a_group_whose_leader_lives_is_not_an_adopted_worker_s)
{
        int ready[2];

        runtime_start(RUNTIME_REDIS "[fleet:web]\ncommand=/bin/true\n");
        ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
        pid_t leader = fork();
        if (leader == 0) {
                pid_t child = setsid() > 0 ? fork() : -1;

                if (child > 0)
                        (void)!write(ready[1], &child, sizeof(child));
                for (;;)
                        pause();
        }
        pid_t child;
        ck_assert_int_eq(read(ready[0], &child, sizeof(child)), sizeof(child));
        ck_assert_int_eq(adopt_another(child)->handle->group, 0);
        ck_assert_int_eq(kill(leader, SIGKILL), 0);
        run_until(is_gone(leader));
        ck_assert_int_eq(kill(child, 0), 0);
        close_fd(ready[0]);
        close_fd(ready[1]);
}

TEST_MAIN("owners", .each = {setup, runtime_folder_close}, .timeout_seconds = 120)
