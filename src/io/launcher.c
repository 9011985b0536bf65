/* SPDX-License-Identifier: MIT */
/* Starts processes in our memory; see the header. A child needs a stack and a thread pointer of its own
 * (errno is behind it): it gets those of a thread that sleeps. Our own thread makes each child: to
 * the kernel the thread that does is the parent, and its end is announced to a child that asks for that. */
#include "io/launcher.h"
#include "base/fd.h"
#include "io/own_program.h"
#include <fcntl.h>
#include <limits.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#define STARTS_MAX 512
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

/* The value of start.child once the child has taken its first steps. */
#define BEGUN (-1)

struct start {
        struct start *next;
        struct launch_job *job; /* of its child, owned */
        atomic_int child;       /* a pid, then BEGUN; 0: none is in our memory, set by the kernel */
        sem_t ready, end;
        char *stack;   /* the end of a child's */
        void *pointer; /* of the thread */
};

/* Starts are made one at a time. */
static struct {
        struct start *starts, *spare; /* spare: the next one, or NULL */
        size_t n_starts;
        sigset_t actions;           /* signals that have an action in this process */
        int program_fd;             /* sqmgr-start, or -errno */
        int fds[ELEMENTSOF(slots)]; /* low numbers, where the next child finds its descriptors */
        char name[16];              /* ours */
        bool knows_actions;
} launcher;

/* Linux names a process after the descriptor that it executed, from 6.14 on after the program. */
bool launch_is_name_of_start(const char *comm)
{
        return strcmp(comm, LAUNCH_COMM) == 0 || strcmp(comm, "sqmgr-start") == 0 ||
               (comm[0] == '0' + LAUNCH_PROGRAM_FD && comm[1] == '\0');
}

static int descriptor(const struct launch_job *job, size_t slot)
{
        return *(const int *)((const char *)job + slots[slot].offset);
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
                r = launcher_prepare();
                job->program_fd = launcher.program_fd;
                if (r >= 0)
                        r = job->block_fd = fd_memory("sqmgr-start", job->block, job->size);
        }
        if (r < 0)
                return r;
        *ret = TAKE_PTR(job);
        return 0;
}

void launch_job_free(struct launch_job *job)
{
        if (!job)
                return;
        close_fd(job->block_fd);
        free(job->block);
        free(job->pointers);
        free(job);
}

/* The functions up to child_run() run in the child: in our memory, beside our threads. They make system calls
 * alone, and change nothing but the ledger, start.child and their own stack. */

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
        struct start *start = userdata;
        const struct launch_job *job = start->job;
        const struct launch_plan *plan = &job->plan;

        separate(job);
        claim(job);
        start->child = BEGUN;
        (void)syscall(SYS_futex, &start->child, FUTEX_WAKE, 1);
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

/* Sets nothing that is behind the thread pointer, errno included, while a child uses that. */
static void *thread_run(void *userdata)
{
        _Alignas(64) char stack[CHILD_STACK_BYTES];
        struct start *start = userdata;

        start->stack = stack + sizeof(stack);
        start->pointer = __builtin_thread_pointer();
        (void)sem_post(&start->ready);
        while (sem_wait(&start->end) < 0)
                ;
        free(start);
        return NULL;
}

static void block_signals(sigset_t *ret_before)
{
        sigset_t blocked;

        sigfillset(&blocked);
        sigdelset(&blocked, SIGBUS); /* of a ledger that is lost */
        (void)pthread_sigmask(SIG_SETMASK, &blocked, ret_before);
}

/* Begins a thread for the next child: a start does not wait for that. */
static int make_spare(void)
{
        pthread_attr_t attributes;
        pthread_t thread;
        struct start *start = calloc(1, sizeof(*start));

        if (!start)
                return -ENOMEM;
        (void)sem_init(&start->ready, 0, 0);
        (void)sem_init(&start->end, 0, 0);
        int r = pthread_attr_init(&attributes);
        if (r == 0) {
                (void)pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
                (void)pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
                r = pthread_create(&thread, &attributes, thread_run, start);
                (void)pthread_attr_destroy(&attributes);
        }
        if (r != 0)
                free(start);
        else
                launcher.spare = start;
        return -r;
}

void launcher_rest(void)
{
        for (struct start **at = &launcher.starts; *at;) {
                struct start *start = *at;

                if (start->child != 0) {
                        at = &start->next;
                        continue;
                }
                *at = start->next;
                launcher.n_starts--;
                launch_job_free(TAKE_PTR(start->job));
                (void)sem_post(&start->end);
        }
}

static int begin_start(struct launch_job *job, struct start **ret)
{
        if (launcher.n_starts >= STARTS_MAX)
                launcher_rest();
        if (launcher.n_starts >= STARTS_MAX)
                return -EBUSY;
        int r = launcher.spare ? 0 : make_spare();
        if (r < 0)
                return r;
        struct start *start = TAKE_PTR(launcher.spare);
        while (sem_wait(&start->ready) < 0)
                ;
        start->job = job;
        start->next = launcher.starts;
        launcher.starts = *ret = start;
        launcher.n_starts++;
        return 0;
}

/* Returns the pid once the child has begun or ended, or -errno. */
static pid_t make_child(struct start *start)
{
        pid_t *child = (pid_t *)&start->child;

        /* The child has its name from the start: another process of our name would be taken for us. */
        (void)prctl(PR_SET_NAME, LAUNCH_COMM);
        pid_t pid = clone(child_run, start->stack,
                          CLONE_VM | CLONE_FILES | CLONE_SETTLS | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID |
                                  SIGCHLD,
                          start, child, start->pointer, child);

        int error = errno;
        (void)prctl(PR_SET_NAME, launcher.name);
        if (pid < 0)
                return -error;
        while (start->child == pid)
                (void)syscall(SYS_futex, child, FUTEX_WAIT, pid, NULL);
        return pid;
}

int launcher_prepare(void)
{
        if (launcher.program_fd <= 0)
                launcher.program_fd = own_program_open("sqmgr-start", START_PROGRAM);
        for (size_t i = 0; i < ELEMENTSOF(slots); i++)
                if (launcher.fds[i] <= 0)
                        launcher.fds[i] = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, LAUNCH_REPORT_FD + (int)i);
        return MIN(launcher.program_fd, 0);
}

void launcher_find_actions(void)
{
        struct sigaction action;

        sigemptyset(&launcher.actions);
        for (int signo = 1; signo < NSIG; signo++)
                if (sigaction(signo, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
                        sigaddset(&launcher.actions, signo);
        (void)prctl(PR_GET_NAME, launcher.name);
        launcher.knows_actions = true;
}

/* Puts the descriptors of the job where the child finds them; lend = false: takes them back, or each report
 * would stay open. */
static int lend_descriptors(const struct launch_job *job, bool lend)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && i < ELEMENTSOF(slots); i++) {
                if (launcher.fds[i] <= 0)
                        return -EMFILE;
                if (descriptor(job, i) >= 0)
                        r = dup3(lend ? descriptor(job, i) : STDIN_FILENO, launcher.fds[i], O_CLOEXEC);
        }
        return r < 0 ? -errno : 0;
}

pid_t launcher_start(struct launch_job *job)
{
        struct start *start = NULL;
        sigset_t before;

        (void)launcher_prepare();
        if (!launcher.knows_actions)
                launcher_find_actions();
        int r = lend_descriptors(job, true);
        block_signals(&before); /* no handler may run in a child, which is in our memory, nor in a thread */
        if (r == 0)
                r = begin_start(job, &start);
        if (r == 0)
                r = make_child(start);
        (void)lend_descriptors(job, false);
        if (start) {
                launcher_rest();
                (void)make_spare();
        } else {
                launch_job_free(job);
        }
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}
