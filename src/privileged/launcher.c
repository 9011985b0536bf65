/* SPDX-License-Identifier: MIT */
/* Threads that start processes; see the header. A thread is suspended while its child is in our memory. If
 * the child hangs in a file system, so does its thread, alone. */
#include "privileged/launcher.h"
#include "base/fd.h"
#include "io/own_program.h"
#include "privileged/launch_steps.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#define THREADS_MAX 512
/* The child's own stack is a part of its thread's. */
#define CHILD_STACK_BYTES  (64 << 10)
#define THREAD_STACK_BYTES (4 * CHILD_STACK_BYTES)

/* The descriptors of a job, and what they become in the child. The ones that they become come first. */
static const struct {
        size_t offset;
        int target;
} slots[] = {
        {offsetof(struct launch_job, report_fd), LAUNCH_REPORT_FD},
        {offsetof(struct launch_job, block_fd), LAUNCH_BLOCK_FD},
        {offsetof(struct launch_job, template_fd), LAUNCH_TEMPLATE_FD},
        {offsetof(struct launch_job, program_fd), LAUNCH_PROGRAM_FD},
        {offsetof(struct launch_job, input_fd), STDIN_FILENO},
        {offsetof(struct launch_job, output_fd), STDOUT_FILENO},
};

/* The loop makes a start at a time. */
static struct {
        sem_t started; /* may have posts of earlier starts */
        pid_t pid;
        int error;
        atomic_int threads;
        unsigned number;            /* of the last start */
        atomic_uint done;           /* number of the last start that has begun, or failed */
        sigset_t actions;           /* signals that have an action in this process */
        int program_fd;             /* sqmgr-start, or -errno */
        int fds[ELEMENTSOF(slots)]; /* low numbers, where the next child finds its descriptors */
        bool begun;
} launcher;

static int descriptor(const struct launch_job *job, size_t slot)
{
        return *(const int *)((const char *)job + slots[slot].offset);
}

/* Returns a memory file with the plan, or -errno. */
static int make_block_file(const struct launch_job *job)
{
        _cleanup_close_ int fd = memfd_create("sqmgr-start", MFD_CLOEXEC);
        int r = fd < 0 ? -errno : fd_write_all(fd, job->block, job->size);

        return r < 0 ? r : TAKE_FD(fd);
}

int launch_job_new(const struct launch_plan *plan, struct launch_job **ret)
{
        _cleanup_launch_job_ struct launch_job *job = malloc(sizeof(*job));
        int r = 0;

        if (!job)
                return -ENOMEM;
        *job = (struct launch_job){.report_fd = -1,
                                   .block_fd = -1,
                                   .template_fd = -1,
                                   .program_fd = -1,
                                   .input_fd = -1,
                                   .output_fd = -1};
        job->size = launch_plan_encode(plan, &job->block);
        if (job->size == 0 || launch_plan_decode(job->block, job->size, &job->plan, &job->pointers) < 0)
                return -ENOMEM;
        if (launch_plan_needs_program(plan)) {
                launcher_prepare();
                r = job->program_fd = launcher.program_fd;
                if (r >= 0)
                        r = job->block_fd = make_block_file(job);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(job);
        return 0;
}

void launch_job_free(struct launch_job *job)
{
        close_fd(job->block_fd);
        free(job->block);
        free(job->pointers);
        free(job);
}

/* The functions up to child_run() run in the child: in our memory, beside our other threads. They make system
 * calls alone, and change nothing but the ledger, launcher.done and their own stack. */

/* Gives the child descriptors of its own. In the shared table, opening or closing one would affect us. The
 * kernel copies only those below the ones that are closed. */
static void separate(const struct launch_job *job)
{
        unsigned top = 0, first = LAUNCH_REPORT_FD;

        for (size_t i = 0; i < ELEMENTSOF(slots); i++)
                top = MAX(top, (unsigned)launcher.fds[i]);
        bool closed = close_range(top + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) == 0;
        if (!closed && unshare(CLONE_FILES) < 0)
                _exit(127);
        /* Each target is at most its source. */
        for (size_t i = 0; i < ELEMENTSOF(slots); i++) {
                int target = slots[i].target;

                if (descriptor(job, i) < 0) {
                        if (target > STDERR_FILENO)
                                (void)close(target);
                        continue;
                }
                if (dup2(launcher.fds[i], target) < 0 ||
                    (target == STDOUT_FILENO && dup2(STDOUT_FILENO, STDERR_FILENO) < 0))
                        _exit(127);
                if (target <= STDERR_FILENO)
                        continue;
                (void)fcntl(target, F_SETFD,
                            job->program_fd >= 0 && target != LAUNCH_PROGRAM_FD ? 0 : FD_CLOEXEC);
                first = (unsigned)target + 1;
        }
        if (close_range(first, UINT_MAX, 0) < 0)
                for (int fd = (int)first, end = (int)sysconf(_SC_OPEN_MAX); fd < end; fd++)
                        (void)close(fd);
}

/* Returns field 22 of /proc/self/stat, or 0. */
static uint64_t own_start_time(void)
{
        char text[1024];
        uint64_t start = 0;

        if (fd_read_file(AT_FDCWD, "/proc/self/stat", text, sizeof(text)) < 0)
                return 0;
        const char *at = strrchr(text, ')');
        for (int field = 2; at && field < 22; field++)
                at = strchr(at + 1, ' ');
        for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9'; at++)
                start = 10 * start + (uint64_t)(*at - '0');
        return start;
}

/* Ends this process if a new sqmgr has declared the start void. With a lost ledger, launch_run() decides. */
static void claim(const struct launch_job *job)
{
        uint64_t start = job->claim.slot ? own_start_time() : 0;

        if (job->claim.slot && (start == 0 || !ledger_claim(&job->claim, getpid(), start)) &&
            !(job->ledger && ledger_file_is_lost(job->ledger)))
                _exit(0);
}

/* A handler must not run in our memory: reset before unblocking. */
static void reset_signals(void)
{
        const struct sigaction none = {.sa_handler = SIG_DFL};
        sigset_t empty;

        for (int signo = 1; signo < NSIG; signo++)
                if (sigismember(&launcher.actions, signo) == 1)
                        (void)sigaction(signo, &none, NULL);
        sigemptyset(&empty);
        (void)sigprocmask(SIG_SETMASK, &empty, NULL);
}

static _Noreturn void execute_program(const struct launch_job *job)
{
        char *const start[] = {(char *)"sqmgr-start", NULL};
        char *const *argv = job->block_fd >= 0 ? start : job->plan.fleet.argv;

        (void)execveat(LAUNCH_PROGRAM_FD, "", argv, environ, AT_EMPTY_PATH);
        launch_fail("cannot run '", argv[0], "': ", strerrordesc_np(errno));
}

static int child_run(void *userdata)
{
        struct launch_job *job = userdata;
        const struct launch_plan *plan = &job->plan;

        separate(job);
        claim(job);
        launcher.done = job->number;
        (void)sem_post(&launcher.started);
        /* A new session, and so a new process group: the worker must not read from sqmgr's terminal. */
        (void)setsid();
        reset_signals();
        (void)alarm(job->seconds);
        if (plan->nofile.rlim_max != 0 && setrlimit(RLIMIT_NOFILE, &plan->nofile) < 0)
                launch_fail("cannot set the limit of open files: ", strerrordesc_np(errno));
        if (job->program_fd >= 0)
                execute_program(job);
        launch_enter_directory(plan);
        launch_open_streams(plan);
        launch_run(plan);
}

/* Ends once its child has executed a program: to the kernel this thread is the parent, so its end would be
 * announced to a worker that asks for a signal at the death of its parent. */
static void *thread_run(void *userdata)
{
        _Alignas(64) char stack[CHILD_STACK_BYTES];
        struct launch_job *job = userdata;

        (void)prctl(PR_SET_NAME, LAUNCH_COMM); /* also of the child */
        pid_t pid = clone(child_run, stack + sizeof(stack),
                          CLONE_VM | CLONE_VFORK | CLONE_FILES | CLONE_PARENT_SETTID | SIGCHLD, job,
                          &launcher.pid);
        if (pid < 0)
                launcher.error = errno;
        /* The child may have been killed before it set that. */
        if (launcher.done < job->number)
                launcher.done = job->number;
        (void)sem_post(&launcher.started);
        launch_job_free(job);
        launcher.threads--;
        return NULL;
}

/* All signals are blocked in the thread, and at first in its children, but that of a ledger that is lost. */
static int new_thread(struct launch_job *job)
{
        pthread_attr_t attributes;
        pthread_t thread;
        sigset_t blocked;

        if (launcher.threads >= THREADS_MAX)
                return -EAGAIN;
        sigfillset(&blocked);
        sigdelset(&blocked, SIGBUS);
        int r = pthread_attr_init(&attributes);
        if (r != 0)
                return -r;
        (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
        (void)pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
        r = pthread_attr_setsigmask_np(&attributes, &blocked);
        launcher.threads++;
        if (r == 0)
                r = pthread_create(&thread, &attributes, thread_run, job);
        if (r != 0)
                launcher.threads--;
        (void)pthread_attr_destroy(&attributes);
        return -r;
}

void launcher_prepare(void)
{
        if (launcher.program_fd <= 0)
                launcher.program_fd = own_program_open("sqmgr-start", START_PROGRAM);
        for (size_t i = 0; i < ELEMENTSOF(slots); i++)
                if (launcher.fds[i] <= 0)
                        launcher.fds[i] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, LAUNCH_REPORT_FD + (int)i);
}

/* Once: sqmgr sets all its actions before the first start, and 64 system calls are a good part of a start. */
static void begin(void)
{
        struct sigaction action;

        if (launcher.begun)
                return;
        for (int signo = 1; signo < NSIG; signo++)
                if (sigaction(signo, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
                        sigaddset(&launcher.actions, signo);
        (void)sem_init(&launcher.started, 0, 0);
        launcher.begun = true;
}

/* Puts the descriptors of the job where the child finds them. NULL: none, or each report would stay open. */
static int lend_descriptors(const struct launch_job *job)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(slots); i++) {
                int fd = job ? descriptor(job, i) : STDIN_FILENO;

                if (launcher.fds[i] <= 0)
                        return -EMFILE;
                if (fd >= 0)
                        r = dup3(fd, launcher.fds[i], O_CLOEXEC);
        }
        return r < 0 ? -errno : 0;
}

pid_t launcher_start(struct launch_job *job)
{
        _cleanup_launch_job_ struct launch_job *owned = job;

        launcher_prepare();
        begin();
        int r = lend_descriptors(job);
        launcher.error = 0;
        job->number = ++launcher.number;
        if (r == 0)
                r = new_thread(job);
        if (r == 0) {
                TAKE_PTR(owned);
                while (launcher.done < launcher.number)
                        (void)sem_wait(&launcher.started);
                r = -launcher.error;
        }
        (void)lend_descriptors(NULL);
        return r < 0 ? r : launcher.pid;
}
