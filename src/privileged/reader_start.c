/* SPDX-License-Identifier: MIT */
/* Starts the reader programs and sqmgr-proc-reader; see the header. */
#include "privileged/reader_start.h"
#include "base/fd.h"
#include "io/proc_question.h"
#include "privileged/launcher.h"
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/capability.h>
#include <pwd.h>
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

/* By system call, which changes only the calling thread: a forked child has no other. */
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

/* root regains all capabilities of its bounding set by execve(). */
static void drop_from_bounding_set(uint64_t kept)
{
        for (int capability = 0; prctl(PR_CAPBSET_READ, capability, 0, 0, 0) >= 0; capability++)
                if (!(kept & (UINT64_C(1) << capability)))
                        (void)prctl(PR_CAPBSET_DROP, capability, 0, 0, 0);
}

/* Becomes the user. Only ambient capabilities of a normal user survive execve(). */
static int become(const struct proc_reader_user *user, bool privileged)
{
        struct __user_cap_header_struct header = {.version = _LINUX_CAPABILITY_VERSION_3};
        struct __user_cap_data_struct own[2] = {0};
        uint64_t kept = privileged ? UINT64_C(1) << CAP_SYS_PTRACE : 0;

        /* In a container sqmgr itself may lack CAP_SYS_PTRACE. Processes of the same user can still be read
         * then. */
        if (syscall(SYS_capget, &header, own) < 0)
                return -errno;
        static_assert(CAP_SYS_PTRACE < 32, "stands in the first part");
        kept &= own[0].permitted;
        drop_from_bounding_set(kept);
        if (setgroups(user->n_groups, user->groups) < 0 || setresgid(user->gid, user->gid, user->gid) < 0 ||
            prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0) < 0 || setresuid(user->uid, user->uid, user->uid) < 0)
                return -errno;
        int r = set_capabilities(kept, kept);
        if (r < 0)
                return r;
        return kept && prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, CAP_SYS_PTRACE, 0, 0) < 0 ? -errno : 0;
}

/* Becomes the fleet's user, or that of the request if the fleet's is root.
 *
 * Other processes of the user may trace one whose real, effective and saved groups are their own. The real
 * group of a reader differs, which gives it no rights: the kernel then refuses to trace it, and execve() does
 * not make it dumpable. */
static int become_fleet_user(const struct reader_start *request)
{
        const struct proc_reader_user fallback = {.uid = request->uid, .gid = request->gid};
        const struct passwd *user = getpwnam(request->user);
        const struct group *group = request->group ? getgrnam(request->group) : NULL;

        if (!user || (request->group && !group))
                return -ENOENT;
        if (user->pw_uid == 0)
                return become(&fallback, false);
        uid_t uid = user->pw_uid;
        gid_t gid = group ? group->gr_gid : user->pw_gid;
        gid_t real_gid = request->gid != gid ? request->gid : gid - 1;
        drop_from_bounding_set(0);
        if (initgroups(request->user, gid) < 0 || setresgid(real_gid, gid, gid) < 0 ||
            setresuid(uid, uid, uid) < 0)
                return -errno;
        return set_capabilities(0, 0);
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
        const struct proc_reader_user *user; /* NULL: our own */
        const struct reader_start *fleet;    /* instead of user; NULL: none */
        bool privileged, limited;
};

/* With PR_SET_NO_NEW_PRIVS, execve() would set the group of become_fleet_user() to the real group: such a
 * program sets that itself (reader/sandbox.h). */
static _Noreturn void child_run(const struct child_program *program)
{
        char *const arguments[] = {strdupa(program->name), NULL}, *const environment[] = {NULL};
        const int program_fd = FD_READER + (int)program->n_fds - 1;

        reset_signals();
        (void)setsid();
        if (open_nothing() < 0 || place_descriptors(program->fds, program->n_fds) < 0 ||
            fcntl(program_fd, F_SETFD, FD_CLOEXEC) < 0 || chdir("/") < 0 ||
            (program->fleet && become_fleet_user(program->fleet) < 0) ||
            (program->user && become(program->user, program->privileged) < 0) ||
            fd_close_range(FD_READER + (unsigned)program->n_fds, UINT_MAX, false) < 0 ||
            (!program->fleet && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0) ||
            (program->limited && limit_resources() < 0))
                _exit(126);
        (void)syscall(SYS_execveat, program_fd, "", arguments, environment, AT_EMPTY_PATH);
        _exit(127);
}

/* Forks with all signals blocked, so no handler of ours runs in the child. Renames this process before the
 * fork: io/watchers.h would take a child with our name and our pidfds for another sqmgr. */
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
        const struct proc_reader_user user = {.uid = request->uid, .gid = request->gid};
        bool is_root = geteuid() == 0;
        const struct child_program program = {
                .name = request->name,
                .fds = {request->socket_fd, request->connections_fd, request->program_fd},
                .n_fds = 3,
                .user = is_root && !request->user ? &user : NULL,
                .fleet = is_root && request->user ? request : NULL,
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

int proc_reader_start(int program_fd, const struct proc_reader_user *user, bool privileged, pid_t *ret_pid,
                      int *ret_fd)
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
                .user = geteuid() == 0 ? user : NULL,
                .privileged = privileged,
                .limited = true,
        };

        pid_t pid = start_program(&program, PROC_READER_COMM);
        if (pid < 0)
                return pid;
        *ret_pid = pid;
        *ret_fd = TAKE_FD(ours);
        return 0;
}
