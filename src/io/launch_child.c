/* SPDX-License-Identifier: MIT */
/* Starts a worker's process: the child's part, from the fork to the command. It does what it does in a
 * process that may have had threads, and as the worker's user from the moment that it can. */
#include "base/environment.h"
#include "base/fd.h"
#include "io/launch_message.h"
#include "model/fleet.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#define ENVIRONMENT_FILE_MAX_BYTES ((size_t)1 << 20)

struct child {
        const struct launch_request *request;
        const struct fleet_settings *fleet;
        int report_fd;
        struct environment environment;
};

static void child_send(const struct child *child, const struct launch_message *message, int fd)
{
        union {
                struct cmsghdr header;
                char space[CMSG_SPACE(sizeof(int))];
        } control = {0};
        struct iovec data = {.iov_base = (void *)message, .iov_len = sizeof(*message)};
        struct msghdr header = {.msg_iov = &data, .msg_iovlen = 1};

        if (fd >= 0) {
                header.msg_control = &control;
                header.msg_controllen = sizeof(control);
                struct cmsghdr *item = CMSG_FIRSTHDR(&header);
                item->cmsg_level = SOL_SOCKET;
                item->cmsg_type = SCM_RIGHTS;
                item->cmsg_len = CMSG_LEN(sizeof(int));
                memcpy(CMSG_DATA(item), &fd, sizeof(int));
        }
        /* Nobody may be left to read it: the worker starts all the same. */
        (void)!sendmsg(child->report_fd, &header, MSG_NOSIGNAL);
}

/* Reports one sentence and exits. */
static _Noreturn _printf_(2, 3) void child_fail(const struct child *child, const char *format, ...)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_ERROR};
        va_list ap;

        va_start(ap, format);
        int n = vsnprintf(message.text, sizeof(message.text), format, ap);
        va_end(ap);
        message.length = n < 0 ? 0 : (uint32_t)MIN((size_t)n, sizeof(message.text) - 1);
        child_send(child, &message, -1);
        _exit(127);
}

static _Noreturn void child_fail_memory(const struct child *child)
{
        child_fail(child, "out of memory while starting the worker");
}

static void child_reset_signals(const struct child *child)
{
        sigset_t none;

        /* Those of the C library itself, and KILL and STOP, refuse; theirs is the default already. */
        for (int signo = 1; signo < NSIG; signo++)
                (void)signal(signo, SIG_DFL);
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                child_fail(child, "cannot unblock signals: %m");
}

/* Closes sqmgr's descriptors at once: with many of them open, none would be free below the worker's own
 * limit. */
static void child_close_inherited(const struct child *child)
{
        unsigned kept = (unsigned)child->report_fd;

        int r = fd_close_range(STDERR_FILENO + 1, kept - 1, false);
        if (r == 0)
                r = fd_close_range(kept + 1, UINT_MAX, false);
        if (r < 0) {
                errno = -r;
                child_fail(child, "cannot close sqmgr's descriptors: %m");
        }
}

static void child_set_oom_score_adj(const struct child *child)
{
        char text[16];
        int wanted = child->fleet->oom_score_adj;

        _cleanup_close_ int fd = open("/proc/self/oom_score_adj", O_RDWR | O_CLOEXEC);
        int r = fd < 0 ? -errno : 0;
        if (r == 0 && fd_read_start(fd, text, sizeof(text)) > 0 && (int)strtol(text, NULL, 10) == wanted)
                return;
        if (r == 0) {
                int length = snprintf(text, sizeof(text), "%d", wanted);
                r = fd_write_all(fd, text, (size_t)length);
        }
        /* 0 is the default, and an unprivileged sqmgr cannot take back what it inherited: no reason to fail.
         */
        if (r < 0 && wanted != 0) {
                errno = -r;
                child_fail(child, "cannot set oom_score_adj to %d: %m", wanted);
        }
}

static void child_set_limits(const struct child *child)
{
        const struct fleet_settings *fleet = child->fleet;
        struct rlimit nofile = child->request->nofile;

        if (fleet->umask != SETTINGS_UMASK_UNSET)
                (void)umask(fleet->umask);
        child_set_oom_score_adj(child);
        if (fleet->nice != SETTINGS_NICE_UNSET && setpriority(PRIO_PROCESS, 0, fleet->nice) < 0)
                child_fail(child, "cannot set nice to %d: %m", fleet->nice);
        if (fleet->limit_nofile > 0)
                nofile.rlim_cur = nofile.rlim_max = fleet->limit_nofile;
        if (setrlimit(RLIMIT_NOFILE, &nofile) < 0)
                child_fail(child, "cannot set limit_nofile to %ju: %m", (uintmax_t)nofile.rlim_cur);
}

/* The gid of `group`, or else the user's primary one. */
static gid_t child_find_group(const struct child *child, const struct passwd *user)
{
        if (!child->fleet->group)
                return user->pw_gid;

        errno = 0;
        const struct group *group = getgrnam(child->fleet->group);
        if (!group && errno != 0 && errno != ENOENT && errno != ESRCH)
                child_fail(child, "cannot look up group '%s': %m", child->fleet->group);
        if (!group)
                child_fail(child, "group '%s' does not exist", child->fleet->group);
        return group->gr_gid;
}

/* Becomes the fleet's user. Returns it, or NULL where the fleet names none. */
static const struct passwd *child_become_user(const struct child *child)
{
        const struct fleet_settings *fleet = child->fleet;

        if (!fleet->user && !fleet->group)
                return NULL;

        errno = 0;
        const struct passwd *user = fleet->user ? getpwnam(fleet->user) : getpwuid(geteuid());
        const char *name = fleet->user ? fleet->user : "(sqmgr's own)";
        if (!user && errno != 0 && errno != ENOENT && errno != ESRCH)
                child_fail(child, "cannot look up user '%s': %m", name);
        if (!user)
                child_fail(child, "user '%s' does not exist", name);
        gid_t gid = child_find_group(child, user);

        if (geteuid() != 0 && user->pw_uid == geteuid()) {
                if (fleet->group && gid != getegid() && setresgid(gid, gid, gid) < 0)
                        child_fail(child, "cannot change to group '%s': %m", fleet->group);
                return fleet->user ? user : NULL;
        }
        if (initgroups(user->pw_name, gid) < 0 || setresgid(gid, gid, gid) < 0 ||
            setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
                child_fail(child, "cannot become user '%s': %m%s", name,
                           geteuid() == 0 ? "" : ", sqmgr does not run as root");
        return fleet->user ? user : NULL;
}

/* Reads environment_file, as the worker's user and below its directory. */
static void child_read_environment_file(struct child *child)
{
        const char *path = child->fleet->environment_file;
        _cleanup_free_ char *text = NULL;
        size_t length = 0;

        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        int r = fd < 0 ? -errno : fd_read_whole(fd, ENVIRONMENT_FILE_MAX_BYTES, &text, &length);
        if (r == -ENOMEM)
                child_fail_memory(child);
        if (r < 0) {
                errno = -r;
                child_fail(child, "cannot read environment_file '%s': %m", path);
        }

        const char *error;
        unsigned line;
        r = environment_put_lines(&child->environment, text, length, &line, &error);
        if (r == -ENOMEM)
                child_fail_memory(child);
        if (r < 0)
                child_fail(child, "environment_file %s:%u: %s", path, line, error);
}

/* Later entries win, the worker's own identity over all. */
static void child_build_environment(struct child *child, const struct passwd *user)
{
        const struct launch_request *request = child->request;
        const struct fleet_settings *fleet = child->fleet;
        struct environment *environment = &child->environment;
        char index[16], generation[24];

        int r = environment_put_inherited(environment, request->base_environment);
        if (user && r == 0 &&
            (environment_set(environment, "HOME", user->pw_dir) < 0 ||
             environment_set(environment, "USER", user->pw_name) < 0 ||
             environment_set(environment, "LOGNAME", user->pw_name) < 0 ||
             environment_set(environment, "SHELL", user->pw_shell) < 0))
                r = -ENOMEM;
        for (char **p = fleet->environment_list; p && *p && r == 0; p++)
                r = environment_put(environment, *p);
        if (r < 0)
                child_fail_memory(child);
        if (fleet->environment_file)
                child_read_environment_file(child);

        snprintf(index, sizeof(index), "%u", request->index);
        snprintf(generation, sizeof(generation), "%ju", (uintmax_t)request->generation);
        if (environment_set(environment, "SQMGR_FLEET", fleet->name) < 0 ||
            environment_set(environment, "SQMGR_WORKER", WORKER_ID_OF(fleet->name, request->index)) < 0 ||
            environment_set(environment, "SQMGR_INDEX", index) < 0 ||
            environment_set(environment, "SQMGR_GENERATION", generation) < 0 ||
            environment_set(environment, "SQMGR_INSTANCE", request->instance) < 0)
                child_fail_memory(child);
}

/* Hands the log to the parent, so that the last lines can be read back with the rights that opened it. */
static void child_send_log(const struct child *child, int fd)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_LOG};
        struct stat st;

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || fd_is_remote(fd))
                return;
        message.log_start_bytes = (uint64_t)st.st_size;
        child_send(child, &message, fd);
}

static void child_open_output(const struct child *child)
{
        const struct fleet_settings *fleet = child->fleet;
        int fd;

        if (!fleet->log || strcmp(fleet->log, "inherit") == 0)
                return;
        if (strcmp(fleet->log, "journal") == 0) {
                fd = sd_journal_stream_fd(fleet->name, LOG_INFO, true);
                if (fd < 0) {
                        errno = -fd;
                        child_fail(child,
                                   "cannot connect to the journal: %m, set log to a file or to inherit");
                }
        } else {
                int flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;

                fd = open(fleet->log, flags | O_RDWR, 0640);
                bool readable = fd >= 0;
                if (fd < 0 && errno == EACCES)
                        fd = open(fleet->log, flags | O_WRONLY, 0640);
                if (fd < 0)
                        child_fail(child, "cannot open log '%s': %m", fleet->log);
                if (readable)
                        child_send_log(child, fd);
        }
        if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
                child_fail(child, "cannot redirect the worker's output: %m");
        close_fd(fd);
}

static _Noreturn void child_execute(const struct child *child)
{
        char *const *argv = child->fleet->argv;

        int r = fd_close_range(STDERR_FILENO + 1, UINT_MAX, true);
        if (r < 0) {
                errno = -r;
                child_fail(child, "cannot close sqmgr's descriptors: %m");
        }
        environ = child->environment.list; /* execvp() takes PATH from here */
        execvp(argv[0], argv);

        int error = errno;
        if (error == ENOENT && strchr(argv[0], '/') && access(argv[0], F_OK) == 0)
                child_fail(child, "cannot run '%s': its interpreter does not exist", argv[0]);
        const char *path = environment_get(&child->environment, "PATH");
        errno = error;
        if (error == ENOENT && !strchr(argv[0], '/'))
                child_fail(child, "cannot run '%s': %m in PATH '%s'", argv[0], path ? path : "/bin:/usr/bin");
        child_fail(child, "cannot run '%s': %m", argv[0]);
}

_Noreturn void launch_child_run(const struct launch_request *request, int report_fd)
{
        struct child child = {.request = request, .fleet = request->fleet, .report_fd = report_fd};

        /* Its own session, and so its own process group: sqmgr's terminal is not the worker's to type into.
         */
        if (setsid() < 0)
                child_fail(&child, "cannot make a session: %m");
        child_reset_signals(&child);
        child_close_inherited(&child);
        child_set_limits(&child);

        const struct passwd *user = child_become_user(&child);
        const char *directory = child.fleet->directory;
        if (directory && chdir(directory) < 0)
                child_fail(&child, "cannot change to directory '%s': %m", directory);
        child_build_environment(&child, user);
        child_open_output(&child);

        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
                child_fail(&child, "cannot open '/dev/null': %m");
        child_execute(&child);
}
