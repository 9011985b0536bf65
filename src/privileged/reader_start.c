/* SPDX-License-Identifier: MIT */
/* Starts sqmgr-reader and sqmgr-proc-reader; see the header. */
#include "privileged/reader_start.h"
#include "base/fd.h"
#include "io/proc_question.h"
#include "io/proc_reader.h"
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>

/* Numbers of the sockets of a program. The program itself comes after them. */
#define FD_READER 3
#define FDS_MAX   3

/* Until a connection is made, or given up. A Unix socket whose server takes no connections can block. */
#define CONNECT_SECONDS 10

/* For sqmgr-proc-reader: standard descriptors, a log, a process, and a file of it; with some to spare. */
#define FILES_MAX 32

/* Forks with all signals blocked: no handler of ours runs in the child. Renames before the fork: no other
 * process that holds our descriptors has our name. Returns 0 in the child, the pid, or -errno. */
static pid_t fork_child(const char *name)
{
        sigset_t all, before;
        char comm[16] = "";

        sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        (void)prctl(PR_GET_NAME, comm);
        (void)prctl(PR_SET_NAME, name);
        pid_t pid = fork();
        if (pid == 0)
                return 0;
        pid_t r = pid < 0 ? -errno : pid;
        (void)prctl(PR_SET_NAME, comm);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        return r;
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

/* The C library sets credentials in all threads, but a forked child has one. */
static int set_capabilities(uint64_t permitted, uint64_t inheritable)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct data[2];

        for (unsigned i = 0; i < ELEMENTSOF(data); i++) {
                data[i].effective = data[i].permitted = (uint32_t)(permitted >> (32 * i));
                data[i].inheritable = (uint32_t)(inheritable >> (32 * i));
        }
        return syscall(SYS_capset, &header, data) < 0 ? -errno : 0;
}

/* A capability of the user survives execve() as an ambient one alone. root gains all of its own again by
 * execve(), but for those that are missing in its bounding set. */
static int become(const struct proc_reader_user *user, bool privileged)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct own[2] = {0};
        uint64_t kept = privileged ? UINT64_C(1) << CAP_SYS_PTRACE : 0;

        /* In a container sqmgr itself may lack it. Then the processes of the same user can be read still. */
        if (syscall(SYS_capget, &header, own) < 0)
                return -errno;
        static_assert(CAP_SYS_PTRACE < 32, "stands in the first part");
        kept &= own[0].permitted;
        for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
                if (!(kept & (UINT64_C(1) << capability)))
                        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
        if (setgroups(user->n_groups, user->groups) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
            prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(user->uid, user->uid, user->uid) < 0)
                return -errno;
        int r = set_capabilities(kept, kept);
        if (r < 0)
                return r;
        return kept && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0) < 0 ? -errno : 0;
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
        char *name;
        int fds[FDS_MAX]; /* the last is the program */
        size_t n_fds;
        const struct proc_reader_user *user; /* NULL: our own */
        bool privileged, limited;
};

static _Noreturn void child_run(const struct child_program *program)
{
        char *const arguments[] = {program->name, NULL}, *const environment[] = {NULL};
        const int program_fd = FD_READER + (int)program->n_fds - 1;

        reset_signals();
        (void)setsid();
        if (open_nothing() < 0 || place_descriptors(program->fds, program->n_fds) < 0 ||
            fcntl(program_fd, F_SETFD, FD_CLOEXEC) < 0 || chdir("/") < 0 ||
            (program->user && become(program->user, program->privileged) < 0) ||
            prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || (program->limited && limit_resources() < 0))
                _exit(126);
        (void)syscall(SYS_execveat, program_fd, "", arguments, environment, AT_EMPTY_PATH);
        _exit(127);
}

static _Noreturn void child_connect(int connections_fd, const char *path)
{
        const int fds[] = {connections_fd};

        reset_signals();
        (void)alarm(CONNECT_SECONDS);
        /* The child may outlive sqmgr, and must hold neither its locks nor its connections. */
        if (place_descriptors(fds, ELEMENTSOF(fds)) < 0)
                _exit(126);
        connections_fd = FD_READER;
        int fd = fd_connect(path, 0, USEC_INFINITY);
        int error = fd < 0 ? fd : fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;
        (void)fd_send(connections_fd, &error, sizeof(error), error < 0 ? -1 : fd, MSG_DONTWAIT);
        _exit(0);
}

int reader_start_program(const struct reader_start *request, pid_t *ret)
{
        static char name[] = "sqmgr-reader";
        const struct proc_reader_user user = {.uid = request->uid, .gid = request->gid};
        const struct child_program program = {
                .name = name,
                .fds = {request->socket_fd, request->connections_fd, request->program_fd},
                .n_fds = 3,
                .user = geteuid() == 0 ? &user : NULL,
        };
        pid_t pid = fork_child(name);

        if (pid == 0)
                child_run(&program);
        *ret = pid;
        return MIN(pid, 0);
}

int reader_start_connect(int connections_fd, const char *path, pid_t *ret)
{
        pid_t pid = fork_child("sqmgr-connect");

        if (pid == 0)
                child_connect(connections_fd, path);
        *ret = pid;
        return MIN(pid, 0);
}

int proc_reader_start(int program_fd, const struct proc_reader_user *user, bool privileged, pid_t *ret_pid,
                      int *ret_fd)
{
        static char name[] = PROC_READER_NAME;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0];
        _cleanup_close_ int theirs = pair[1];
        const struct child_program program = {
                .name = name,
                .fds = {theirs, program_fd},
                .n_fds = 2,
                .user = user,
                .privileged = privileged,
                .limited = true,
        };

        pid_t pid = fork_child(PROC_READER_COMM);
        if (pid == 0)
                child_run(&program);
        if (pid < 0)
                return pid;
        *ret_pid = pid;
        *ret_fd = TAKE_FD(ours);
        return 0;
}
