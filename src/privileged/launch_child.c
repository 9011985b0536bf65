/* SPDX-License-Identifier: MIT */
/* Starts a worker's process: the child's part, from the fork to the command. The parent may have had threads.
 * The child runs as the worker's user as early as possible. */
#include "privileged/launch_child.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/clock.h"
#include "io/log.h"
#include "io/proc.h"
#include "model/names.h"
#include "privileged/find_command.h"
#include "privileged/launch_request.h"
#include "privileged/marker.h"
#include "privileged/program.h"
#include "privileged/status_dir.h"
#include "settings/resources.h"

#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <linux/close_range.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <syslog.h>
#include <systemd/sd-journal.h>

#define ENVIRONMENT_FILE_MAX_BYTES ((size_t)1 << 20)
#define BEFORE_START               "before_start: "
#define AFTER_EXIT                 "after_exit: "

struct launch_child {
        const struct launch_request *request;
        const struct fleet_settings *fleet;
        int report_fd;
        int template_fd;  /* for the template's command; -1: none */
        const char *step; /* prefix for messages: "before_start: " or similar; "" for the command */
        struct environment environment;
        struct status_dir status;          /* heartbeat files are written here; STATUS_DIR_NONE: no files */
        char status_name[STATUS_NAME_MAX]; /* of the status directory */
};

static void child_send(const struct launch_child *child, const struct launch_message *message, int fd)
{
        /* Errors are ignored: the worker starts even if sqmgr no longer reads the report. */
        (void)fd_send(child->report_fd, message, sizeof(*message), fd, 0);
}

static void child_report_list(const struct launch_child *child, const char *format, va_list ap)
        _printf_(2, 0);
static void child_report_list(const struct launch_child *child, const char *format, va_list ap)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_ERROR};

        int n = vsnprintf(message.text, sizeof(message.text), format, ap);
        message.length = n < 0 ? 0 : (uint32_t)MIN((size_t)n, sizeof(message.text) - 1);
        child_send(child, &message, -1);
}

/* Reports one sentence. */
static _printf_(2, 3) void child_report(const struct launch_child *child, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        child_report_list(child, format, ap);
        va_end(ap);
}

/* Reports one sentence and exits. */
static _Noreturn _printf_(2, 3) void child_fail(const struct launch_child *child, const char *format, ...)
{
        va_list ap;

        va_start(ap, format);
        child_report_list(child, format, ap);
        va_end(ap);
        _exit(127);
}

static _Noreturn void child_fail_memory(const struct launch_child *child)
{
        child_fail(child, "out of memory while starting the worker");
}

static void child_reset_signals(const struct launch_child *child, const sigset_t *actions)
{
        sigset_t none;

        for (int signo = 1; signo < NSIG; signo++)
                if (sigismember(actions, signo) == 1)
                        (void)signal(signo, SIG_DFL);
        sigemptyset(&none);
        if (sigprocmask(SIG_SETMASK, &none, NULL) < 0)
                child_fail(child, "cannot unblock signals: %m");
}

/* Call first: in a shared table, opening or closing a descriptor also affects the parent. The kernel copies
 * only the descriptors up to the last one that the child keeps. */
static void child_separate(const struct launch_child *child)
{
        const struct launch_template *template = child->request->template;
        const struct launch_message message = {.kind = LAUNCH_MESSAGE_SEPARATE};
        int last = template ? MAX(template->fd, child->report_fd) : child->report_fd;

        if (close_range((unsigned)last + 1, UINT_MAX, CLOSE_RANGE_UNSHARE) < 0 && unshare(CLONE_FILES) < 0)
                child_fail(child, "cannot unshare file descriptors: %m");
        child_send(child, &message, -1);
}

static void child_close_range(const struct launch_child *child, int first, unsigned last)
{
        int r = fd_close_range((unsigned)first, last, false);

        if (r < 0) {
                errno = -r;
                child_fail(child, "cannot close sqmgr's descriptors: %m");
        }
}

/* Closes sqmgr's descriptors first: if many are open, none is free below the worker's own limit. */
static void child_close_inherited(struct launch_child *child)
{
        const struct launch_template *template = child->request->template;
        int first = template ? MIN(template->fd, child->report_fd) : child->report_fd;
        int last = template ? MAX(template->fd, child->report_fd) : child->report_fd;

        child_close_range(child, STDERR_FILENO + 1, (unsigned)first - 1);
        child_close_range(child, first + 1, (unsigned)last - 1);
        child_close_range(child, last + 1, UINT_MAX);
        if (!template)
                return;
        child->template_fd = fcntl(template->fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
        if (child->template_fd < 0)
                child_fail(child, "cannot keep the template's socket: %m");
        close_fd(template->fd);
}

static void child_set_oom_score_adj(const struct launch_child *child)
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
        /* 0 is the default. An unprivileged sqmgr cannot lower the inherited value, which is no reason to
         * fail. */
        if (r < 0 && wanted != 0) {
                errno = -r;
                child_fail(child, "cannot set oom_score_adj to %d: %m", wanted);
        }
}

/* Values were checked with the settings, so parsing cannot fail. */
static void child_set_resources(const struct launch_child *child)
{
        const struct fleet_settings *fleet = child->fleet;
        const struct {
                const char *name, *text;
                int resource;
                bool is_size;
        } limits[] = {
                {"limit_as", fleet->limit_as, RLIMIT_AS, true},
                {"limit_core", fleet->limit_core, RLIMIT_CORE, true},
                {"limit_fsize", fleet->limit_fsize, RLIMIT_FSIZE, true},
                {"limit_memlock", fleet->limit_memlock, RLIMIT_MEMLOCK, true},
                {"limit_nofile", fleet->limit_nofile, RLIMIT_NOFILE, false},
                {"limit_nproc", fleet->limit_nproc, RLIMIT_NPROC, false},
                {"limit_stack", fleet->limit_stack, RLIMIT_STACK, true},
        };
        struct rlimit limit = {0};
        cpu_set_t cpus;

        for (size_t i = 0; i < ELEMENTSOF(limits); i++)
                if (limits[i].text &&
                    (resource_limit_parse(limits[i].text, limits[i].is_size, 0, &limit) < 0 ||
                     setrlimit((__rlimit_resource_t)limits[i].resource, &limit) < 0))
                        child_fail(child, "cannot set %s to %s: %m", limits[i].name, limits[i].text);
        if (fleet->cpu_affinity && (resource_cpus_parse(fleet->cpu_affinity, &cpus) < 0 ||
                                    sched_setaffinity(0, sizeof(cpus), &cpus) < 0))
                child_fail(child, "cannot set cpu_affinity to %s: %s", fleet->cpu_affinity,
                           errno == EINVAL ? "none of these processors is available to sqmgr"
                                           : strerrordesc_np(errno));
}

static void child_set_limits(const struct launch_child *child)
{
        const struct fleet_settings *fleet = child->fleet;

        if (fleet->umask != SETTINGS_UMASK_UNSET)
                (void)umask(fleet->umask);
        child_set_oom_score_adj(child);
        if (fleet->nice != SETTINGS_NICE_UNSET && setpriority(PRIO_PROCESS, 0, fleet->nice) < 0)
                child_fail(child, "cannot set nice to %d: %m", fleet->nice);
        if (setrlimit(RLIMIT_NOFILE, &child->request->nofile) < 0)
                child_fail(child, "cannot set limit_nofile to %ju: %m",
                           (uintmax_t)child->request->nofile.rlim_cur);
        child_set_resources(child);
}

/* Returns the gid of `group`, or else the user's primary group. */
static gid_t child_find_group(const struct launch_child *child, const struct passwd *user)
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

/* Runs as sqmgr's own user, which alone may create the directory. */
static void child_make_status(struct launch_child *child, uid_t uid, gid_t gid)
{
        const char *parent = child->request->status_parent;

        if (!parent || child->request->rehearsal)
                return;
        int r = status_dir_make(parent, child->fleet->name, uid, gid, &child->status, child->status_name);
        if (r < 0)
                child_fail(child, "cannot create the status directory '%s/%s': %s", parent,
                           child->fleet->name,
                           r == -EPERM ? "the existing one is owned or writable by others; move it away"
                                       : strerrordesc_np(-r));
}

/* Runs as the fleet's user, who must be able to reach the directory by its path. */
static void child_enter_status(const struct launch_child *child)
{
        const char *parent = child->request->status_parent;
        char path[PATH_MAX];

        if (!parent)
                return;
        int above = (int)(strrchr(parent, '/') - parent);
        if (child->status.fd >= 0)
                snprintf(path, sizeof(path), "%s/%s", parent, child->status_name);
        else
                snprintf(path, sizeof(path), "%.*s", MAX(above, 1), parent);
        if (access(path, child->status.fd >= 0 ? W_OK | X_OK : X_OK) == 0)
                status_dir_sweep(&child->status);
        else if (child->status.fd >= 0 || errno != ENOENT)
                child_fail(child,
                           "cannot reach the status directory below '%.*s': %m; let others enter that "
                           "directory (chmod o+x)",
                           MAX(above, 1), parent);
}

/* Becomes the fleet's user. Returns the user, or NULL if the fleet has none. */
static const struct passwd *child_become_user(struct launch_child *child)
{
        const struct fleet_settings *fleet = child->fleet;

        if (!fleet->user && !fleet->group) {
                child_make_status(child, geteuid(), getegid());
                return NULL;
        }

        errno = 0;
        const struct passwd *user = fleet->user ? getpwnam(fleet->user) : getpwuid(geteuid());
        const char *name = fleet->user ? fleet->user : "(sqmgr's own)";
        if (!user && errno != 0 && errno != ENOENT && errno != ESRCH)
                child_fail(child, "cannot look up user '%s': %m", name);
        if (!user)
                child_fail(child, "user '%s' does not exist", name);
        gid_t gid = child_find_group(child, user);
        child_make_status(child, user->pw_uid, gid);

        if (geteuid() != 0 && user->pw_uid == geteuid()) {
                if (fleet->group && gid != getegid() && setresgid(gid, gid, gid) < 0)
                        child_fail(child, "cannot change to group '%s': %m", fleet->group);
                return fleet->user ? user : NULL;
        }
        if (initgroups(user->pw_name, gid) < 0 || setresgid(gid, gid, gid) < 0 ||
            setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
                child_fail(child, "cannot become user '%s': %m%s", name,
                           geteuid() == 0 ? "" : "; run sqmgr as root");
        return fleet->user ? user : NULL;
}

/* Reads environment_file as the worker's user, relative to the worker's directory. */
static void child_read_environment_file(struct launch_child *child)
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

static void child_set(struct launch_child *child, const char *name, const char *value)
{
        if (environment_set(&child->environment, name, value) < 0)
                child_fail_memory(child);
}

static void child_set_identity(struct launch_child *child)
{
        const struct launch_request *request = child->request;
        const char *fleet = child->fleet->name;
        char index[16], generation[24], started[24], worker[WORKER_ID_MAX], directory[PATH_MAX];

        snprintf(index, sizeof(index), "%u", request->index);
        snprintf(generation, sizeof(generation), "%ju", (uintmax_t)request->generation);
        snprintf(started, sizeof(started), "%ju", (uintmax_t)request->started_at);
        worker_id(fleet, request->index, worker);
        /* Reserve space: the template overwrites these blanks with each forked worker's values, in the place
         * that /proc shows. */
        if (request->template) {
                snprintf(index, sizeof(index), "%10s", "");
                snprintf(started, sizeof(started), "%20s", "");
                snprintf(worker, sizeof(worker), "%s/%-10s", fleet, "template");
        }
        child_set(child, "SQMGR_FLEET", fleet);
        child_set(child, "SQMGR_WORKER", worker);
        child_set(child, "SQMGR_INDEX", index);
        child_set(child, "SQMGR_GENERATION", generation);
        child_set(child, "SQMGR_START", started);
        child_set(child, "SQMGR_INSTANCE", request->instance);
        if (child->status.fd < 0)
                return;
        snprintf(directory, sizeof(directory), "%s/%s", request->status_parent, child->status_name);
        child_set(child, "SQMGR_STATUS_DIR", directory);
}

/* Puts the script behind the other options of RUBYOPT: the environment's own come first. */
static void child_set_outcomes(struct launch_child *child)
{
        struct environment *environment = &child->environment;
        const char *options = environment_get(environment, "RUBYOPT");
        _cleanup_free_ char *all = NULL;

        if (asprintf(&all, "%s%s-r%s", options ?: "", options ? " " : "", child->request->outcomes_script) <
            0) {
                all = NULL;
                child_fail_memory(child);
        }
        child_set(child, "RUBYOPT", all);
}

/* Puts the script before the other options of RUBYOPT, so Ruby loads it first. */
static void child_set_template(struct launch_child *child)
{
        struct environment *environment = &child->environment;
        const char *options = environment_get(environment, "RUBYOPT");
        _cleanup_free_ char *all = NULL;
        char fd[16];

        snprintf(fd, sizeof(fd), "%d", child->template_fd);
        if (asprintf(&all, "-r%s%s%s", child->request->template->script, options ? " " : "", options ?: "") <
            0) {
                all = NULL;
                child_fail_memory(child);
        }
        child_set(child, "RUBYOPT", all);
        child_set(child, "SQMGR_TEMPLATE", fd);
}

/* Reports if the environment names another Redis than redis_url. No part of a
 * URL leaves the child but the number of the database. REDIS_PROVIDER names the variable for Sidekiq. With
 * another framework, REDIS_URL may be that of a cache. */
static void child_compare_redis(const struct launch_child *child)
{
        const char *provider = environment_get(&child->environment, "REDIS_PROVIDER");
        const char *url =
                environment_get(&child->environment, provider && *provider ? provider : "REDIS_URL");

        if (!url || !child->request->redis_url || child->fleet->traits->url_variable)
                return;
        struct redis_comparison redis = redis_url_compare(url, child->request->redis_url);
        const struct launch_message message = {.kind = LAUNCH_MESSAGE_REDIS,
                                               .redis_difference = redis.difference,
                                               .redis_db = redis.db,
                                               .redis_other_db = redis.other_db};

        if (redis.difference != REDIS_SAME)
                child_send(child, &message, -1);
}

/* Later entries win, and the worker's identity overrides all. The fleet's environment, and sqmgr's own, may
 * replace the names of worker and host. The identity also comes first, since only the
 * beginning of a huge environment is read back. */
static void child_build_environment(struct launch_child *child, const struct passwd *user)
{
        const struct launch_request *request = child->request;
        const struct fleet_settings *fleet = child->fleet;
        struct environment *environment = &child->environment;
        const char *variable = fleet->traits->name_variable;
        char name[WORKER_ID_MAX + 16];

        child_set_identity(child);
        if (variable) {
                snprintf(name, sizeof(name), "%s-%u%s", fleet->name, request->index,
                         fleet->traits->name_suffix);
                child_set(child, variable, name);
        }
        if (request->unique_host && request->unique_host[0] != '\0')
                child_set(child, fleet->traits->host_variable, request->unique_host);
        int r = environment_put_inherited(environment, request->base_environment);
        if (user && r == 0) {
                child_set(child, "HOME", user->pw_dir);
                child_set(child, "USER", user->pw_name);
                child_set(child, "LOGNAME", user->pw_name);
                child_set(child, "SHELL", user->pw_shell);
        }
        for (char **p = fleet->environment_list; p && *p && r == 0; p++)
                r = environment_put(environment, *p);
        if (r < 0)
                child_fail_memory(child);
        if (fleet->environment_file)
                child_read_environment_file(child);
        child_set_identity(child);
        child_compare_redis(child);
}

/* Sends the log to the parent, which reads its tail back. As O_PATH: closing a descriptor that was opened for
 * reading can wait for a file server, and the parent must never wait. */
static void child_send_log(const struct launch_child *child, int fd)
{
        struct launch_message message = {.kind = LAUNCH_MESSAGE_LOG};
        struct stat st;
        char path[64];

        if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
                return;
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        _cleanup_close_ int held = open(path, O_PATH | O_CLOEXEC);
        if (held < 0)
                return;
        message.log_start_bytes = (uint64_t)st.st_size;
        message.log_uid = geteuid();
        message.log_gid = getegid();
        child_send(child, &message, held);
}

static const char *child_journal_name(const struct launch_child *child, char text[static WORKER_ID_MAX])
{
        const char *fleet = child->fleet->name;

        if (!child->request->template)
                return worker_id(fleet, child->request->index, text);
        snprintf(text, WORKER_ID_MAX, "%s/template", fleet);
        return text;
}

static void child_open_output(const struct launch_child *child)
{
        const char *log = log_of_workers(child->fleet->log);
        char name[WORKER_ID_MAX];
        int fd;

        if (strcmp(log, "inherit") == 0)
                return;
        if (strcmp(log, "journal") == 0) {
                /* A journal stream has no custom fields: the identifier names the worker. */
                fd = sd_journal_stream_fd(child_journal_name(child, name), LOG_INFO, true);
                if (fd < 0) {
                        /* A missing journal stops the start only if the fleet's `log` asks for the
                         * journal. */
                        if (!child->fleet->log)
                                return;
                        errno = -fd;
                        child_fail(child,
                                   "cannot connect to the journal: %m; set log to a file or to inherit");
                }
        } else {
                int flags = O_APPEND | O_CREAT | O_CLOEXEC | O_NOCTTY;

                fd = open(log, flags | O_RDWR, 0640);
                bool readable = fd >= 0;
                if (fd < 0 && errno == EACCES)
                        fd = open(log, flags | O_WRONLY, 0640);
                if (fd < 0)
                        child_fail(child, "cannot open log '%s': %m", log);
                if (readable)
                        child_send_log(child, fd);
        }
        if (dup2(fd, STDOUT_FILENO) < 0 || dup2(fd, STDERR_FILENO) < 0)
                child_fail(child, "cannot redirect the worker's output: %m");
        close_fd(fd);
}

static _Noreturn void child_fail_command(const struct launch_child *child, const char *name, int error)
{
        const char *path = environment_get(&child->environment, "PATH");

        if (error == ENOENT && strchr(name, '/') && access(name, F_OK) == 0)
                child_fail(child, "%scannot run '%s': the interpreter of that file does not exist",
                           child->step, name);
        errno = error;
        if (error == ENOENT && !strchr(name, '/'))
                child_fail(child, "%scannot run '%s': %m in PATH '%s'", child->step, name,
                           path ? path : FIND_COMMAND_PATH);
        child_fail(child, "%scannot run '%s': %m", child->step, name);
}

/* Searches PATH as execvp() does. */
static void child_find_command(const struct launch_child *child, const char *name)
{
        int error = find_command(environment_get(&child->environment, "PATH"), name);

        if (error != 0)
                child_fail_command(child, name, error);
}

/* A missing log is created by a start, not by this check. */
static void child_check_log(const struct launch_child *child)
{
        const char *log = child->fleet->log;
        const char *slash = log ? strrchr(log, '/') : NULL;
        char directory[PATH_MAX];

        if (!slash || access(log, W_OK) == 0)
                return;
        snprintf(directory, sizeof(directory), "%.*s", MAX((int)(slash - log), 1), log);
        if (errno != ENOENT || access(directory, W_OK | X_OK) < 0)
                child_fail(child, "cannot open log '%s': %m", log);
}

static _Noreturn void child_execute(struct launch_child *child, char *const *argv)
{
        int r = fd_close_range(STDERR_FILENO + 1, UINT_MAX, true);
        if (r < 0) {
                errno = -r;
                child_fail(child, "cannot close sqmgr's descriptors: %m");
        }
        if (!child->request->template && argv == child->fleet->argv)
                marker_put(&child->environment, &child->report_fd);
        if (child->template_fd >= 0 && argv == child->fleet->argv &&
            fcntl(child->template_fd, F_SETFD, 0) < 0)
                child_fail(child, "cannot hand on the template's socket: %m");
        /* So that conmon, and the container of `podman run`, remain descendants of the worker's process. */
        if (child->fleet->namespaced && program_adopt_orphans() < 0)
                child_fail(child, "cannot keep the processes of a container: %m");
        environ = child->environment.list; /* execvp() takes PATH from here */
        execvp(argv[0], argv);

        child_fail_command(child, argv[0], errno);
}

/* A command that runs before or after the worker. */
struct launch_step {
        const char *name;
        char *const *argv; /* NULL: none */
        usec_t timeout;
        const char *bound; /* explains the source of the timeout */
};

/* Runs in the process that becomes the step's command. The process is killed when its waiting parent ends. */
static _Noreturn void child_execute_step(struct launch_child *child, const struct launch_step *step,
                                         pid_t parent)
{
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(127);
        /* The step must not be mistaken for a worker. */
        environment_remove(&child->environment, "SQMGR_INSTANCE");
        environment_remove(&child->environment, "SQMGR_START");
        child->step = step->name;
        child_execute(child, step->argv);
}

/* Waits here, outside of sqmgr's loop. Returns false after a timeout. */
static bool child_wait(const struct launch_child *child, pid_t pid, const struct launch_step *step,
                       int *ret_status)
{
        usec_t deadline = usec_add(clock_now(CLOCK_MONOTONIC), step->timeout);
        _cleanup_close_ int pidfd = pidfd_open(pid, 0);
        int r = pidfd < 0 ? -1 : 0;

        while (r == 0 || (r < 0 && errno == EINTR)) {
                struct pollfd wait = {.fd = pidfd, .events = POLLIN};
                usec_t left = usec_sub(deadline, clock_now(CLOCK_MONOTONIC));

                if (left == 0)
                        return false;
                r = poll(&wait, 1, (int)MIN(left / USEC_PER_MSEC + 1, (usec_t)INT_MAX));
        }
        if (r < 0 || waitpid(pid, ret_status, 0) < 0)
                child_fail(child, "%scannot wait for the process: %m", step->name);
        return true;
}

/* Runs a step like the worker, in our process group and with our output. */
static void child_run_step(struct launch_child *child, const struct launch_step *step)
{
        char *const *argv = step->argv;
        char span[FORMAT_MAX];
        pid_t parent = getpid();
        int status = 0;

        if (!argv)
                return;
        pid_t pid = fork();
        if (pid == 0)
                child_execute_step(child, step, parent);
        if (pid < 0)
                child_fail(child, "%scannot start a process: %m", step->name);
        if (!child_wait(child, pid, step, &status)) {
                child_report(child, "%s'%s' did not exit within %s%s", step->name, argv[0],
                             format_duration(step->timeout, span, sizeof(span)), step->bound);
                /* Kill the step's whole process group, including this process. */
                (void)kill(0, SIGKILL);
        }
        if (WIFSIGNALED(status))
                child_fail(child, "%s'%s' was killed by signal %d (SIG%s)", step->name, argv[0],
                           WTERMSIG(status), sigabbrev_np(WTERMSIG(status)) ?: "?");
        if (WEXITSTATUS(status) != 0)
                child_fail(child, "%s'%s' exited with status %d", step->name, argv[0], WEXITSTATUS(status));
}

static void child_run_before(struct launch_child *child)
{
        const struct launch_step step = {
                .name = BEFORE_START,
                .argv = child->fleet->before_start_argv,
                .timeout = child->fleet->boot_timeout,
                .bound = " (boot_timeout)",
        };

        child_run_step(child, &step);
}

/* Runs after_exit for a worker that is gone. The name keeps sqmgr from waiting for this process as a
 * start. */
static _Noreturn void child_run_after(struct launch_child *child)
{
        const struct launch_end *end = child->request->end;
        const struct launch_step step = {
                .name = AFTER_EXIT,
                .argv = child->fleet->after_exit_argv,
                .timeout = end->timeout,
                .bound = "",
        };
        char pid[16];

        (void)prctl(PR_SET_NAME, "sqmgr-after");
        snprintf(pid, sizeof(pid), "%d", (int)end->pid);
        if (environment_set(&child->environment, "SQMGR_PID", pid) < 0 ||
            environment_set(&child->environment, "SQMGR_EXIT_CODE", end->code) < 0 ||
            environment_set(&child->environment, "SQMGR_EXIT_STATUS", end->status) < 0)
                child_fail_memory(child);
        child_run_step(child, &step);
        _exit(0);
}

/* Waits until the state that records this template was written, or the attempt failed. A command that does
 * not become a template would otherwise be a worker unknown to the next sqmgr. */
static void child_await_permission(const struct launch_child *child)
{
        char permission[16];

        if (recv(child->template_fd, permission, sizeof(permission), 0) <= 0)
                _exit(0);
}

static bool ends_in(const char *path, const char *tail)
{
        size_t length = strlen(path), n = strlen(tail);

        while (n > 0 && tail[n - 1] == '/')
                n--;
        if (n == 0 || n > length || strncmp(path + length - n, tail, n) != 0)
                return false;
        return n == length || tail[0] == '/' || path[length - n - 1] == '/';
}

/* Runs in the fleet's directory with all links resolved. The name keeps sqmgr from waiting for this process
 * as a start. */
static _Noreturn void child_check_release(const struct launch_child *child)
{
        const char *release = child->request->release;
        char path[PATH_MAX];

        (void)prctl(PR_SET_NAME, "sqmgr-release");
        if (!child->fleet->directory)
                child_fail(child, "cannot check for release '%s': the fleet has no 'directory'", release);
        if (!getcwd(path, sizeof(path)))
                child_fail(child, "cannot resolve directory '%s': %m", child->fleet->directory);
        if (!ends_in(path, release))
                child_fail(child, "directory '%s' resolves to '%s', which does not end in '%s'",
                           child->fleet->directory, path, release);
        _exit(0);
}

/* Ends this process if a new sqmgr has declared the start void. If the ledger is lost, child_check_parent()
 * decides. */
static void child_claim(const struct launch_request *request)
{
        const struct ledger_claim *claim = &request->claim;
        _cleanup_proc_ struct proc *self = NULL;

        if (ledger_is_claimed(claim, getpid()))
                return;
        if (proc_open(getpid(), &self) < 0 || (!ledger_claim(claim, getpid(), proc_start_time(self)) &&
                                               !(request->ledger && ledger_file_is_lost(request->ledger))))
                _exit(0);
}

/* A start whose record is lost ends with the sqmgr that made it: a new sqmgr does not know of it. */
static void child_check_parent(const struct launch_request *request, pid_t parent)
{
        if (request->ledger && getppid() != parent && !ledger_file_is_in_place(request->ledger))
                _exit(0);
}

_Noreturn void launch_child_run(const struct launch_request *request, const struct launch_birth *birth)
{
        struct launch_child child = {
                .request = request,
                .fleet = request->fleet,
                .report_fd = birth->report_fd,
                .template_fd = -1,
                .step = "",
                .status = STATUS_DIR_NONE,
        };

        if (birth->shares)
                child_separate(&child);
        child_claim(request);
        /* A new session, and so a new process group: the worker must not read from sqmgr's terminal. */
        if (setsid() < 0)
                child_fail(&child, "cannot make a session: %m");
        child_reset_signals(&child, birth->actions);
        child_close_inherited(&child);
        if (request->template)
                child_await_permission(&child);
        child_set_limits(&child);

        const struct passwd *user = child_become_user(&child);
        child_enter_status(&child);
        const char *directory = child.fleet->directory;
        if (directory && chdir(directory) < 0)
                child_fail(&child, "cannot change to directory '%s': %m", directory);
        if (request->release)
                child_check_release(&child);
        child_build_environment(&child, user);
        if (request->rehearsal) {
                child_check_log(&child);
                child_find_command(&child, child.fleet->argv[0]);
                child.step = BEFORE_START;
                if (child.fleet->before_start_argv)
                        child_find_command(&child, child.fleet->before_start_argv[0]);
                child.step = AFTER_EXIT;
                if (child.fleet->after_exit_argv)
                        child_find_command(&child, child.fleet->after_exit_argv[0]);
                _exit(0);
        }
        child_open_output(&child);

        int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
        if (null < 0 || dup2(null, STDIN_FILENO) < 0)
                child_fail(&child, "cannot open '/dev/null': %m");
        if (request->end)
                child_run_after(&child);
        child_run_before(&child);
        if (fleet_settings_load_outcomes(child.fleet) && request->outcomes_script &&
            access(request->outcomes_script, R_OK) == 0)
                child_set_outcomes(&child);
        if (request->template)
                child_set_template(&child);
        child_check_parent(request, birth->parent);
        child_execute(&child, child.fleet->argv);
}
