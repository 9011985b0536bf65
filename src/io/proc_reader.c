/* SPDX-License-Identifier: MIT */
/* Starts sqmgr-proc-reader, the process that reads what can make its reader wait. */
#include "io/proc_reader.h"
#include "base/fd.h"
#include "io/proc_question.h"
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Standard descriptors, a log, a process, and a file of it; with some to spare. */
#define FILES_MAX 32
#define NOGROUP   65534

void proc_reader_user_of(const struct proc *proc, uid_t uid, struct proc_reader_user *ret)
{
        *ret = (struct proc_reader_user){.uid = uid};
        if (proc_groups(proc, &ret->gid, ret->groups, ELEMENTSOF(ret->groups), &ret->n_groups) < 0)
                ret->gid = NOGROUP;
}

int proc_reader_open_program(void)
{
        /* Beside sqmgr in the build folder, and beside the sqmgr that tests build there. */
        static const char *const places[] = {"", "../../"};
        char own[PATH_MAX], path[PATH_MAX + 64];

        int fd = open(PROC_READER, O_PATH | O_CLOEXEC);
        int r = fd < 0 ? -errno : fd;
        ssize_t n = fd < 0 ? readlink("/proc/self/exe", own, sizeof(own)) : -1;
        const char *slash = n > 0 ? memrchr(own, '/', (size_t)n) : NULL;
        for (size_t i = 0; fd < 0 && slash && i < ELEMENTSOF(places); i++) {
                snprintf(path, sizeof(path), "%.*s/%s" PROC_READER_NAME, (int)(slash - own), own, places[i]);
                fd = open(path, O_PATH | O_CLOEXEC);
        }
        if (fd < 0)
                fd = open("/proc/self/exe", O_PATH | O_CLOEXEC);
        return fd < 0 ? r : fd;
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
static int drop_rights(const struct proc_reader_user *user, bool privileged)
{
        const uint64_t kept = privileged ? UINT64_C(1) << CAP_SYS_PTRACE : 0;

        for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
                if (!(kept & (UINT64_C(1) << capability)))
                        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
        if (setgroups(user->n_groups, user->groups) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
            prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(user->uid, user->uid, user->uid) < 0)
                return -errno;
        int r = set_capabilities(kept, kept);
        if (r < 0)
                return r;
        if (privileged && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0) < 0)
                return -errno;
        return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ? -errno : 0;
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

static _Noreturn void child_run(int program_fd, int socket_fd, const struct proc_reader_user *user,
                                bool privileged)
{
        static char name[] = PROC_READER_NAME;
        char *const argv[] = {name, NULL}, *const environment[] = {NULL};
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++)
                (void)signal(signo, SIG_DFL);
        sigemptyset(&none);
        int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
        int program = fcntl(program_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (null_fd < 0 || program < 0 || dup2(socket_fd, STDIN_FILENO) < 0 ||
            dup2(null_fd, STDOUT_FILENO) < 0 || dup2(null_fd, STDERR_FILENO) < 0 ||
            fd_close_range(STDERR_FILENO + 1, (unsigned)program - 1, false) < 0 ||
            fd_close_range((unsigned)program + 1, UINT_MAX, false) < 0 || drop_rights(user, privileged) < 0 ||
            limit_resources() < 0 || sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                _exit(EXIT_FAILURE);
        (void)syscall(SYS_execveat, program, "", argv, environment, AT_EMPTY_PATH);
        _exit(EXIT_FAILURE);
}

int proc_reader_start(int program_fd, const struct proc_reader_user *user, bool privileged, pid_t *ret_pid,
                      int *ret_fd)
{
        sigset_t all, before;
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int ours = pair[0];
        _cleanup_close_ int theirs = pair[1];

        /* No signal handler of ours may run in the child. */
        sigfillset(&all);
        int r = pthread_sigmask(SIG_SETMASK, &all, &before);
        if (r != 0)
                return -r;
        /* Rename before the fork: no other process that holds sqmgr's descriptors has sqmgr's name. */
        char comm[16] = "";
        (void)prctl(PR_GET_NAME, comm);
        (void)prctl(PR_SET_NAME, PROC_READER_COMM);
        pid_t pid = fork();
        if (pid == 0)
                child_run(program_fd, theirs, user, privileged);
        r = pid < 0 ? -errno : 0;
        (void)prctl(PR_SET_NAME, comm);
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (r < 0)
                return r;
        *ret_pid = pid;
        *ret_fd = TAKE_FD(ours);
        return 0;
}
