/* SPDX-License-Identifier: MIT */
/* sqmgr-start takes the steps of a start that need more than system calls: users, files, and commands that
 * run before. sqmgr executes it in a new process, with the descriptors of privileged/launch_plan.h, and it
 * executes the worker's command. */
#include "base/environment.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/clock.h"
#include "privileged/launch_steps.h"
#include "privileged/launcher.h"
#include "privileged/statefile.h"
#include "privileged/status_dir.h"
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <poll.h>
#include <pwd.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define ENVIRONMENT_FILE_MAX_BYTES ((size_t)1 << 20)

static struct launch_plan plan;
static struct environment environment; /* of the command */

/* Reports one sentence and exits. */
static _Noreturn _printf_(1, 2) void fail(const char *format, ...)
{
        char text[LAUNCH_ERROR_MAX];
        va_list ap;

        va_start(ap, format);
        (void)vsnprintf(text, sizeof(text), format, ap);
        va_end(ap);
        launch_fail(plan.kind == LAUNCH_ALERT ? "alert_command: " : "", text);
}

static _Noreturn void fail_memory(void)
{
        fail("out of memory while starting the worker");
}

static void set(const char *name, const char *value)
{
        if (environment_set(&environment, name, value) < 0)
                fail_memory();
}

/* Returns the gid of `group`, or else the user's primary group. */
static gid_t find_group(const struct passwd *user)
{
        if (!plan.fleet.group)
                return user->pw_gid;

        errno = 0;
        const struct group *group = getgrnam(plan.fleet.group);
        if (!group && errno != 0 && errno != ENOENT && errno != ESRCH)
                fail("cannot look up group '%s': %m", plan.fleet.group);
        if (!group)
                fail("group '%s' does not exist", plan.fleet.group);
        return group->gr_gid;
}

/* The directory where heartbeat files are written. */
struct status {
        struct status_dir dir;
        char name[STATUS_NAME_MAX];
        char path[PATH_MAX];
};

/* Runs as sqmgr's own user, which alone may create the directory. */
static void make_status(struct status *status, uid_t uid, gid_t gid)
{
        if (!plan.status_parent || plan.kind == LAUNCH_REHEARSAL)
                return;
        int r = status_dir_make(plan.status_parent, plan.fleet.name, uid, gid, &status->dir, status->name);
        if (r < 0)
                fail("cannot create the status directory '%s/%s': %s", plan.status_parent, plan.fleet.name,
                     r == -EPERM ? "the existing one is owned or writable by others; move it away"
                                 : strerrordesc_np(-r));
}

/* Runs as the fleet's user, who must be able to reach the directory by its path. */
static void enter_status(struct status *status)
{
        const char *parent = plan.status_parent;
        bool made = status->dir.fd >= 0;

        if (!parent)
                return;
        int above = (int)(strrchr(parent, '/') - parent);
        if (made)
                snprintf(status->path, sizeof(status->path), "%s/%s", parent, status->name);
        else
                snprintf(status->path, sizeof(status->path), "%.*s", MAX(above, 1), parent);
        if (access(status->path, made ? W_OK | X_OK : X_OK) == 0)
                status_dir_sweep(&status->dir);
        else if (made || errno != ENOENT)
                fail("cannot reach the status directory below '%.*s': %m; let others enter that directory "
                     "(chmod o+x)",
                     MAX(above, 1), parent);
}

/* Becomes the fleet's user. Returns the user, or NULL if the fleet has none. */
static const struct passwd *become_user(struct status *status)
{
        if (!plan.fleet.user && !plan.fleet.group) {
                make_status(status, geteuid(), getegid());
                return NULL;
        }

        errno = 0;
        const struct passwd *user = plan.fleet.user ? getpwnam(plan.fleet.user) : getpwuid(geteuid());
        const char *name = plan.fleet.user ?: "(sqmgr's own)";
        if (!user && errno != 0 && errno != ENOENT && errno != ESRCH)
                fail("cannot look up user '%s': %m", name);
        if (!user)
                fail("user '%s' does not exist", name);
        gid_t gid = find_group(user);
        make_status(status, user->pw_uid, gid);

        if (geteuid() != 0 && (user->pw_uid == geteuid() || plan.kind == LAUNCH_ALERT)) {
                if (plan.fleet.group && gid != getegid() && setresgid(gid, gid, gid) < 0)
                        fail("cannot change to group '%s': %m", plan.fleet.group);
                return plan.fleet.user ? user : NULL;
        }
        if (initgroups(user->pw_name, gid) < 0 || setresgid(gid, gid, gid) < 0 ||
            setresuid(user->pw_uid, user->pw_uid, user->pw_uid) < 0)
                fail("cannot become user '%s': %m%s", name, geteuid() == 0 ? "" : "; run sqmgr as root");
        return plan.fleet.user ? user : NULL;
}

/* Reads environment_file as the worker's user, relative to the worker's directory. */
static void read_environment_file(void)
{
        const char *path = plan.fleet.environment_file, *error;
        _cleanup_free_ char *text = NULL;
        size_t length = 0;
        unsigned line;

        _cleanup_close_ int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
        int r = fd < 0 ? -errno : fd_read_whole(fd, ENVIRONMENT_FILE_MAX_BYTES, &text, &length);
        if (r < 0 && r != -ENOMEM)
                fail("cannot read environment_file '%s': %s", path, strerrordesc_np(-r));
        if (r == 0)
                r = environment_put_lines(&environment, text, length, &line, &error);
        if (r == -ENOMEM)
                fail_memory();
        if (r < 0)
                fail("environment_file %s:%u: %s", path, line, error);
}

/* See build_environment() of privileged/launch.c. The identity is set first and last. */
static void build_environment(const struct passwd *user, const struct status *status)
{
        static const char *const names[] = {LAUNCH_USER_VARIABLES};
        const char *values[] = {user ? user->pw_dir : NULL, user ? user->pw_name : NULL,
                                user ? user->pw_name : NULL, user ? user->pw_shell : NULL};
        int r = 0;

        for (char **entry = plan.environment; *entry && r == 0; entry++)
                r = environment_put(&environment, *entry);
        if (r < 0)
                fail_memory();
        for (size_t i = 0; user && i < ELEMENTSOF(names); i++)
                if (!(plan.own_variables & 1U << i))
                        set(names[i], values[i]);
        if (plan.fleet.environment_file)
                read_environment_file();
        for (uint32_t i = 0; i < plan.identity; i++)
                if (environment_put(&environment, plan.environment[i]) < 0)
                        fail_memory();
        if (status->dir.fd >= 0)
                set("SQMGR_STATUS_DIR", status->path);
        launch_plan_compare_redis(&plan, &environment, LAUNCH_REPORT_FD);
}

/* A missing log is created by a start, not by this check. */
static void check_log(void)
{
        const char *slash = strrchr(plan.fleet.log, '/');
        char directory[PATH_MAX];

        if (!slash || access(plan.fleet.log, W_OK) == 0)
                return;
        snprintf(directory, sizeof(directory), "%.*s", MAX((int)(slash - plan.fleet.log), 1), plan.fleet.log);
        if (errno != ENOENT || access(directory, W_OK | X_OK) < 0)
                fail("cannot open log '%s': %m", plan.fleet.log);
}

/* A command that runs before or after the worker. */
struct step {
        const char *name; /* prefix of messages */
        char **argv;
        usec_t timeout;
        const char *bound; /* explains the source of the timeout */
};

/* Runs in the process that becomes the step's command. The process is killed when its waiting parent ends. */
static _Noreturn void execute_step(const struct step *step, pid_t parent)
{
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
                _exit(127);
        /* The step must not be mistaken for a worker. */
        environment_remove(&environment, "SQMGR_INSTANCE");
        environment_remove(&environment, "SQMGR_START");
        launch_execute(step->name, false, step->argv, environment.list);
}

/* Returns false after a timeout. */
static bool await_step(pid_t pid, const struct step *step, int *ret_status)
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
                fail("%scannot wait for the process: %m", step->name);
        return true;
}

/* Runs a step like the worker, in our process group and with our output. */
static void run_step(const struct step *step)
{
        char span[FORMAT_MAX];
        pid_t parent = getpid();
        int status = 0;

        if (!step->argv)
                return;
        pid_t pid = fork();
        if (pid == 0)
                execute_step(step, parent);
        if (pid < 0)
                fail("%scannot start a process: %m", step->name);
        if (!await_step(pid, step, &status)) {
                struct launch_message message = {.kind = LAUNCH_MESSAGE_ERROR};

                snprintf(message.text, sizeof(message.text), "%s'%s' did not exit within %s%s", step->name,
                         step->argv[0], format_duration(step->timeout, span, sizeof(span)), step->bound);
                (void)launch_send(LAUNCH_REPORT_FD, &message, -1);
                /* Kill the step's whole process group, including this process. */
                (void)kill(0, SIGKILL);
        }
        if (WIFSIGNALED(status))
                fail("%s'%s' was killed by signal %d (SIG%s)", step->name, step->argv[0], WTERMSIG(status),
                     sigabbrev_np(WTERMSIG(status)) ?: "?");
        if (WEXITSTATUS(status) != 0)
                fail("%s'%s' exited with status %d", step->name, step->argv[0], WEXITSTATUS(status));
}

/* Waits until the state that records this template was written, or the attempt failed. A command that does
 * not become a template would otherwise be a worker unknown to the next sqmgr. */
static void await_permission(void)
{
        char permission[16];

        if (recv(LAUNCH_TEMPLATE_FD, permission, sizeof(permission), 0) <= 0)
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

/* The fleet's directory is resolved by entering it. */
static _Noreturn void check_release(void)
{
        char path[PATH_MAX];

        if (!plan.fleet.directory)
                fail("cannot check for release '%s': the fleet has no 'directory'", plan.release);
        if (!getcwd(path, sizeof(path)))
                fail("cannot resolve directory '%s': %m", plan.fleet.directory);
        if (!ends_in(path, plan.release))
                fail("directory '%s' resolves to '%s', which does not end in '%s'", plan.fleet.directory,
                     path, plan.release);
        exit(0);
}

/* Takes the steps up to the environment, which all kinds have in common. */
static void become_fleet(void)
{
        struct status status = {.dir = STATUS_DIR_NONE};

        const struct passwd *user = become_user(&status);
        enter_status(&status);
        launch_enter_directory(&plan);
        if (plan.kind == LAUNCH_RELEASE)
                check_release();
        build_environment(user, &status);
        /* A look-up of the user may have opened files that are for nobody else. */
        (void)fd_close_range(STDERR_FILENO + 1, UINT_MAX, true);
}

static _Noreturn void run_command(void)
{
        const struct step before = {"before_start: ", plan.fleet.before_start_argv, plan.fleet.boot_timeout,
                                    " (boot_timeout)"};

        launch_open_streams(&plan);
        run_step(&before);
        if (launch_plan_add_scripts(&plan, &environment, LAUNCH_REPORT_FD) < 0)
                fail_memory();
        plan.environment = environment.list;
        launch_run(&plan);
}

static _Noreturn void start_worker(void)
{
        become_fleet();
        run_command();
}

static _Noreturn void start_template(void)
{
        await_permission();
        become_fleet();
        run_command();
}

static _Noreturn void run_after_exit(void)
{
        const struct step after = {"after_exit: ", plan.fleet.after_exit_argv, plan.after_timeout, ""};

        become_fleet();
        launch_open_streams(&plan);
        run_step(&after);
        exit(0);
}

static _Noreturn void run_alert(void)
{
        become_fleet();
        plan.environment = environment.list;
        launch_run(&plan);
}

static _Noreturn void connect_server(void)
{
        int fd = fd_connect(plan.fleet.argv[0], 0, USEC_INFINITY);
        int error = fd < 0 ? fd : fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ? -errno : 0;

        (void)fd_send(LAUNCH_TEMPLATE_FD, &error, sizeof(error), error < 0 ? -1 : fd, MSG_DONTWAIT);
        exit(0);
}

/* The exit status is an errno. */
static _Noreturn void write_orders(void)
{
        char *bytes = NULL;
        size_t size = 0;
        int r = fd_read_whole(STDIN_FILENO, SIZE_MAX, &bytes, &size);

        if (r == 0)
                r = statefile_write_synced(plan.fleet.argv[0], plan.fleet.argv[1], (const uint8_t *)bytes,
                                           size);
        exit(-r);
}

static _Noreturn void rehearse(void)
{
        become_fleet();
        check_log();
        if (launch_plan_add_scripts(&plan, &environment, LAUNCH_REPORT_FD) < 0)
                fail_memory();
        launch_check_command("", plan.fleet.argv[0], environment.list);
        if (plan.fleet.before_start_argv)
                launch_check_command("before_start: ", plan.fleet.before_start_argv[0], environment.list);
        if (plan.fleet.after_exit_argv)
                launch_check_command("after_exit: ", plan.fleet.after_exit_argv[0], environment.list);
        exit(0);
}

int main(void)
{
        static const struct {
                const char *comm; /* LAUNCH_COMM has sqmgr wait for this process as a start */
                void (*run)(void);
        } entries[_LAUNCH_KIND_MAX] = {
                [LAUNCH_WORKER] = {LAUNCH_COMM, start_worker},
                [LAUNCH_TEMPLATE] = {LAUNCH_COMM, start_template},
                [LAUNCH_AFTER_EXIT] = {"sqmgr-after", run_after_exit},
                [LAUNCH_RELEASE] = {"sqmgr-release", become_fleet},
                [LAUNCH_REHEARSAL] = {LAUNCH_COMM, rehearse},
                [LAUNCH_CONNECT] = {"sqmgr-connect", connect_server},
                [LAUNCH_ORDERS] = {"sqmgr-orders", write_orders},
                [LAUNCH_ALERT] = {"sqmgr-alert", run_alert},
        };
        char *block = NULL, **pointers = NULL;
        size_t size = 0;

        for (int fd = LAUNCH_REPORT_FD; fd <= LAUNCH_TEMPLATE_FD; fd++)
                (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        int r = lseek(LAUNCH_BLOCK_FD, 0, SEEK_SET) < 0
                        ? -errno
                        : fd_read_whole(LAUNCH_BLOCK_FD, SIZE_MAX, &block, &size);
        if (r == 0)
                r = launch_plan_decode(block, size, &plan, &pointers);
        if (r < 0 || plan.kind >= _LAUNCH_KIND_MAX || !entries[plan.kind].run)
                fail("sqmgr-start cannot read its plan: %s", strerrordesc_np(r < 0 ? -r : EBADMSG));
        close_fd(LAUNCH_BLOCK_FD);
        (void)prctl(PR_SET_NAME, entries[plan.kind].comm);
        entries[plan.kind].run();
}
