/* SPDX-License-Identifier: MIT */
/* Starts sqmgr-reader; see the header. */
#include "privileged/reader_start.h"
#include "base/fd.h"
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Where the program expects its sockets. */
enum { FD_SQMGR = 3, FD_CONNECTIONS, FD_PROGRAM, FD_FIRST_FREE };

/* Until a connection is made, or given up. A Unix socket whose server takes no connections can block. */
#define CONNECT_SECONDS 10

/* Forks with all signals blocked: no handler of ours runs in the child. Returns 0 in the child. */
static pid_t fork_child(void)
{
        sigset_t all, before;

        sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        pid_t pid = fork();
        int error = errno;
        if (pid != 0)
                (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        errno = error;
        return pid;
}

/* From here on in the child: signals have their defaults and are not blocked. */
static void reset_signals(void)
{
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++)
                (void)signal(signo, SIG_DFL);
        sigemptyset(&none);
        (void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Gives each descriptor its place. Those in the way are moved first. */
static int place_descriptors(const int fds[], size_t n, int first)
{
        int moved[FD_FIRST_FREE];

        for (size_t i = 0; i < n; i++)
                if ((moved[i] = fcntl(fds[i], F_DUPFD, FD_FIRST_FREE)) < 0)
                        return -errno;
        for (size_t i = 0; i < n; i++)
                if (dup2(moved[i], first + (int)i) < 0)
                        return -errno;
        return fd_close_range(FD_FIRST_FREE, UINT_MAX, false);
}

static int open_nothing(void)
{
        _cleanup_close_ int fd = open("/dev/null", O_RDWR | O_CLOEXEC);

        if (fd < 0)
                return -errno;
        for (int i = STDIN_FILENO; i <= STDERR_FILENO; i++) {
#ifdef __SANITIZE_ADDRESS__
                if (i == STDERR_FILENO)
                        break; /* where a sanitizer reports */
#endif
                if (dup2(fd, i) < 0)
                        return -errno;
        }
        return 0;
}

static int drop_rights(uid_t uid, gid_t gid)
{
        if (geteuid() == 0 &&
            (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
                return -errno;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
}

static _Noreturn void child_run(const struct reader_start *request)
{
        static char *const arguments[] = {(char *)"sqmgr-reader", NULL};
        static char *const environment[] = {NULL};
        const int fds[] = {request->socket_fd, request->connections_fd, request->program_fd};

        reset_signals();
        (void)setsid();
        if (open_nothing() < 0 || place_descriptors(fds, ELEMENTSOF(fds), FD_SQMGR) < 0 ||
            fcntl(FD_PROGRAM, F_SETFD, FD_CLOEXEC) < 0 || chdir("/") < 0 ||
            drop_rights(request->uid, request->gid) < 0)
                _exit(126);
        (void)syscall(SYS_execveat, FD_PROGRAM, "", arguments, environment, AT_EMPTY_PATH);
        _exit(127);
}

static _Noreturn void child_connect(int connections_fd, const char *path)
{
        reset_signals();
        (void)alarm(CONNECT_SECONDS);
        int fd = fd_connect(path, 0, USEC_INFINITY);
        int error = fd < 0 ? fd : fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
        (void)fd_send(connections_fd, &error, sizeof(error), error < 0 ? -1 : fd, MSG_DONTWAIT);
        _exit(0);
}

int reader_start_program(const struct reader_start *request, pid_t *ret)
{
        pid_t pid = fork_child();

        if (pid == 0)
                child_run(request);
        if (pid < 0)
                return -errno;
        *ret = pid;
        return 0;
}

int reader_start_connect(int connections_fd, const char *path, pid_t *ret)
{
        pid_t pid = fork_child();

        if (pid == 0)
                child_connect(connections_fd, path);
        if (pid < 0)
                return -errno;
        *ret = pid;
        return 0;
}
