/* SPDX-License-Identifier: MIT */
/* Starts the reader programs and sqmgr-proc-reader; see the header. */
#include "privileged/reader_start.h"
#include "base/fd.h"
#include "io/proc_question.h"
#include "privileged/launcher.h"
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* The first descriptor of a started program: its sockets, then the program file. */
#define FD_READER 3
#define FDS_MAX   3

/* Time limit of one connection: connect() blocks if the server of a Unix socket accepts no connections. */
#define CONNECT_SECONDS 10

/* For sqmgr-proc-reader: standard descriptors, a log, a process, and a file of it; with some to spare. */
#define FILES_MAX 32

/* Runs in the child, as all functions below up to child_run(). Resets and unblocks all signals. */
static void reset_signals(void)
{
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++)
                (void)signal(signo, SIG_DFL);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Moves the descriptors to the numbers from FD_READER on, and closes all others above. Copies them out of the
 * way first. */
static int place_descriptors(const int fds[], size_t n)
{
        int moved[FDS_MAX];

        for (size_t i = 0; i < n; i++)
                if ((moved[i] = fcntl(fds[i], F_DUPFD, FD_READER + FDS_MAX)) < 0)
                        return -errno;
        for (size_t i = 0; i < n; i++)
                if (dup2(moved[i], FD_READER + (int)i) < 0)
                        return -errno;
        return fd_close_range(FD_READER + (unsigned)n, UINT_MAX, false);
}

static int open_nothing(void)
{
        _cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
#ifdef __SANITIZE_ADDRESS__
                if (i == STDERR_FILENO)
                        break; /* the sanitizer reports on stderr */
#endif
                if (dup2(fd, i) < 0)
                        return -errno;
        }
        return 0;
}

static int limit_resources(void)
{
        static const struct {
                int resource;
                rlim_t max;
        } limits[] = {
                {RLIMIT_CORE, 0},
                {RLIMIT_FSIZE, 0},
                {RLIMIT_NOFILE, FILES_MAX},
                {RLIMIT_MEMLOCK, 0},
        };

        FOREACH_ELEMENT(limit, limits) {
                const struct rlimit value = {.rlim_cur = limit->max, .rlim_max = limit->max};

                if (setrlimit((__rlimit_resource_t)limit->resource, &value) < 0)
                        return -errno;
        }
        return 0;
}

struct child_program {
        const char *name;
        int fds[FDS_MAX]; /* the last is the program */
        size_t n_fds;
        bool limited;
};

static _Noreturn void child_run(const struct child_program *program)
{
        char *const arguments[] = {strdupa(program->name), NULL}, *const environment[] = {NULL};
        const int program_fd = FD_READER + (int)program->n_fds - 1;

        reset_signals();
        (void)setsid();
        if (open_nothing() < 0 || place_descriptors(program->fds, program->n_fds) < 0 ||
            fcntl(program_fd, F_SETFD, FD_CLOEXEC) < 0 || chdir("/") < 0 ||
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || (program->limited && limit_resources() < 0))
                _exit(126);
        (void)syscall(SYS_execveat, program_fd, "", arguments, environment, AT_EMPTY_PATH);
        _exit(127);
}

/* Forks with all signals blocked, so no handler of ours runs in the child. */
static pid_t start_program(const struct child_program *program, const char *name)
{
        sigset_t all, before;
        char comm[16] = "";

        sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        (void)prctl(PR_GET_NAME, comm);
        (void)prctl(PR_SET_NAME, name);
        pid_t pid = fork();
        if (pid == 0)
                child_run(program);
        pid_t r = pid < 0 ? -errno : pid;
        (void)prctl(PR_SET_NAME, comm);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
}

int reader_start_program(const struct reader_start *request, pid_t *ret)
{
        const struct child_program program = {
                .name = request->name,
                .fds = {request->socket_fd, request->connections_fd, request->program_fd},
                .n_fds = 3,
        };

        *ret = start_program(&program, request->name);
        return MIN(*ret, 0);
}

int reader_start_connect(int connections_fd, const char *path, pid_t *ret)
{
        _cleanup_launch_job_ struct launch_job *job = NULL;
        char *argv[] = {(char *)path, NULL};
        const struct launch_plan plan = {.kind = LAUNCH_CONNECT, .fleet = {.argv = argv}};
        int r = launch_job_new(&plan, &job);

        if (r < 0)
                return r;
        job->template_fd = connections_fd;
        job->seconds = CONNECT_SECONDS;
        *ret = launcher_start(TAKE_PTR(job));
        return MIN(*ret, 0);
}

int proc_reader_start(int program_fd, pid_t *ret_pid, int *ret_fd)
{
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0];
        _cleanup_close_ int theirs = pair[1];
        const struct child_program program = {
                .name = PROC_READER_NAME,
                .fds = {theirs, program_fd},
                .n_fds = 2,
                .limited = true,
        };

        pid_t pid = start_program(&program, PROC_READER_COMM);
        if (pid < 0)
                return pid;
        *ret_pid = pid;
        *ret_fd = TAKE_FD(ours);
        return 0;
}
