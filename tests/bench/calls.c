/* SPDX-License-Identifier: MIT */
/* Counts exactly the system calls that a tick of sqmgr takes.
 *
 * calls WORKERS GO BEFORE AFTER COMMAND...: runs sqmgr with this number of workers. Once the file GO exists,
 * waits until SETTLED_TICKS polls in a row took the same number of calls. Then kills a worker at a time,
 * until a replacement took at most BEFORE calls and one at most AFTER, or until STARTS replacements are
 * counted: on a busy machine most replacements meet a poll, whose calls are counted with theirs. Prints four
 * numbers:
 *
 * 1. the calls of a poll
 * 2. the most calls between two polls
 * 3. the fewest calls of a replacement, from the wakeup to the fork
 * 4. the fewest calls of a replacement, from the fork until the loop sleeps
 *
 * Exits with 77 if tracing is not permitted. A process may trace its own child without privileges; sqmgr ends
 * with this program. */
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define SETTLED_TICKS 5
#define STARTS        50
#define SKIPPED       77

static unsigned workers, before_limit, after_limit;
static const char *go;
/* Counts since the loop last waited, since the latest poll, and of the polls before. */
static unsigned calls, reads, between, poll_calls, most_between, settled;

/* Counts since the loop last slept, before and after a fork, and the minimum over all starts. */
static unsigned awake_calls, before_fork = UINT_MAX, after_fork = UINT_MAX, starts;
static bool forked;

static bool is_wait(long number)
{
#ifdef SYS_epoll_wait
        if (number == SYS_epoll_wait)
                return true;
#endif
        return number == SYS_epoll_pwait || number == SYS_epoll_pwait2;
}

/* Returns true for calls of the allocator, which are not counted: their number depends on the past, and a
 * sanitizer makes them at many polls. */
static bool is_memory(long number)
{
        return number == SYS_mmap || number == SYS_munmap || number == SYS_madvise || number == SYS_brk;
}

/* A poll of all workers reads at least one file of each, and waits for nothing meanwhile. If no call was made
 * since the last poll, the machine cannot keep up: Redis has not answered yet. */
static void count_call(long number)
{
        if (is_memory(number))
                return;
        if (!is_wait(number)) {
                calls++;
                reads += number == SYS_pread64;
                return;
        }
        if (go && access(go, F_OK) == 0)
                go = NULL;
        if (go) {
                poll_calls = 0;
        } else if (reads < workers) {
                between += calls + 1;
        } else if (calls == poll_calls && between > 0) {
                settled++;
                if (between > most_between)
                        most_between = between;
                between = 0;
        } else {
                poll_calls = calls;
                between = most_between = settled = 0;
        }
        calls = reads = 0;
}

static bool is_fork(long number)
{
#ifdef SYS_fork
        if (number == SYS_fork)
                return true;
#endif
        return number == SYS_clone || number == SYS_clone3;
}

/* If work is left, the loop first polls its descriptors without waiting. */
static void count_start(long number, unsigned long long timeout)
{
        if (is_memory(number))
                return;
        if (is_fork(number)) {
                before_fork = awake_calls < before_fork ? awake_calls : before_fork;
                awake_calls = 0;
                forked = true;
        } else if (!is_wait(number) || (number != SYS_epoll_pwait2 && (int)timeout == 0)) {
                awake_calls++;
        } else {
                if (forked) {
                        after_fork = awake_calls < after_fork ? awake_calls : after_fork;
                        starts++;
                }
                awake_calls = 0;
                forked = false;
        }
}

static int fail(const char *what)
{
        perror(what);
        return errno == EPERM || errno == ENOSYS ? SKIPPED : EXIT_FAILURE;
}

static int run(char **argv)
{
        if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || ptrace(PTRACE_TRACEME, 0, NULL, NULL) < 0)
                return fail("ptrace");
        execv(argv[0], argv);
        return fail(argv[0]);
}

/* Runs until the next call. Returns 0, or the exit status if there is none. */
static int next_call(pid_t pid, struct __ptrace_syscall_info *ret)
{
        static int signo;
        int status;

        for (;;) {
                if (ptrace(PTRACE_SYSCALL, pid, NULL, signo) < 0 || waitpid(pid, &status, 0) != pid)
                        return fail("ptrace");
                if (!WIFSTOPPED(status)) {
                        fprintf(stderr, "calls: sqmgr ended\n");
                        return EXIT_FAILURE;
                }
                signo = WSTOPSIG(status);
                if (signo != (SIGTRAP | 0x80))
                        continue;
                signo = 0;
                if (ptrace(PTRACE_GET_SYSCALL_INFO, pid, sizeof(*ret), ret) < 0)
                        return fail("ptrace");
                if (ret->op == PTRACE_SYSCALL_INFO_ENTRY)
                        return 0;
        }
}

/* The children of sqmgr are workers and readers. */
static bool is_worker(pid_t pid)
{
        char path[64], comm[32] = "";

        snprintf(path, sizeof(path), "/proc/%d/comm", (int)pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return false;
        bool read = fgets(comm, sizeof(comm), file);
        fclose(file);
        return read && strncmp(comm, "sqmgr-", strlen("sqmgr-")) != 0;
}

/* Kills the oldest worker. */
static int kill_worker(pid_t pid)
{
        char path[64];
        int child, worker = 0;

        snprintf(path, sizeof(path), "/proc/%d/task/%d/children", (int)pid, (int)pid);
        FILE *file = fopen(path, "re");
        if (!file)
                return fail(path);
        while (worker == 0 && fscanf(file, "%d", &child) == 1)
                if (is_worker(child))
                        worker = child;
        fclose(file);
        return worker > 0 && kill(worker, SIGKILL) == 0 ? 0 : fail("no worker");
}

static int trace(pid_t pid)
{
        struct __ptrace_syscall_info info;
        int status, r;

        if (waitpid(pid, &status, 0) != pid)
                return fail("waitpid");
        if (WIFEXITED(status))
                return WEXITSTATUS(status);
        if (ptrace(PTRACE_SETOPTIONS, pid, NULL, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL) < 0)
                return fail("ptrace");
        while (settled < SETTLED_TICKS) {
                if ((r = next_call(pid, &info)) != 0)
                        return r;
                count_call((long)info.entry.nr);
        }
        for (unsigned killed = 0;
             starts < STARTS && (before_fork > before_limit || after_fork > after_limit);) {
                if (killed == starts && (r = kill_worker(pid)) != 0)
                        return r;
                killed += killed == starts;
                if ((r = next_call(pid, &info)) != 0)
                        return r;
                count_start((long)info.entry.nr, info.entry.args[3]);
        }
        printf("%u %u %u %u\n", poll_calls, most_between, before_fork, after_fork);
        return EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
        if (argc < 6) {
                fprintf(stderr, "usage: %s WORKERS GO BEFORE AFTER COMMAND...\n", argv[0]);
                return 2;
        }
        workers = (unsigned)strtoul(argv[1], NULL, 10);
        go = argv[2];
        before_limit = (unsigned)strtoul(argv[3], NULL, 10);
        after_limit = (unsigned)strtoul(argv[4], NULL, 10);
        pid_t pid = fork();
        if (pid < 0)
                return fail("fork");
        if (pid == 0)
                _exit(run(argv + 5));
        return trace(pid);
}
