/* SPDX-License-Identifier: MIT */
/* sqmgr-start takes the steps of a start that need more than system calls: files, and commands that run
 * before. sqmgr executes it in a new process, with the descriptors of io/launch_plan.h, and it
 * executes the worker's command. */
#include "base/environment.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/clock.h"
#include "io/file_access.h"
#include "io/launcher.h"
#include "io/statefile.h"
#include "io/status_dir.h"
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
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
        launch_fail(text);
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

/* Makes the directory where heartbeat files are written. */
static void make_status(void)
{
        char path[PATH_MAX];

        if (!plan.status_parent || plan.kind == LAUNCH_REHEARSAL)
                return;
        _cleanup_close_ int fd = status_dir_make(plan.status_parent, plan.fleet.name);
        if (fd < 0)
                fail("cannot create the status directory '%s/%s': %s", plan.status_parent, plan.fleet.name,
                     fd == -EPERM ? "the existing one belongs to another user; move it away"
                                  : strerrordesc_np(-fd));
        status_dir_sweep(fd);
        snprintf(path, sizeof(path), "%s/%s", plan.status_parent, plan.fleet.name);
        set("SQMGR_STATUS_DIR", path);
}

/* Reads environment_file, relative to the worker's directory. */
static void read_environment_file(void)
{
        const char *path = plan.fleet.environment_file, *error;
        _cleanup_free_ char *text = NULL;
        char why[FILE_WHY_MAX];
        size_t length = 0;
        unsigned line;

        _cleanup_close_ int fd = file_access_open(path, why);
        if (fd < 0)
                fail("environment_file '%s': %s", path, why);
        int r = fd_read_whole(fd, ENVIRONMENT_FILE_MAX_BYTES, &text, &length);
        if (r < 0 && r != -ENOMEM)
                fail("environment_file '%s': cannot read: %s", path, strerrordesc_np(-r));
        if (r == 0)
                r = environment_put_lines(&environment, text, length, &line, &error);
        if (r == -ENOMEM)
                fail_memory();
        if (r < 0)
                fail("environment_file %s:%u: %s", path, line, error);
}

/* See build_environment() of io/launch.c. The identity is set first and last. */
static void build_environment(void)
{
        int r = 0;

        for (char **entry = plan.environment; *entry && r == 0; entry++)
                r = environment_put(&environment, *entry);
        if (r < 0)
                fail_memory();
        if (plan.fleet.environment_file)
                read_environment_file();
        for (uint32_t i = 0; i < plan.identity; i++)
                if (environment_put(&environment, plan.environment[i]) < 0)
                        fail_memory();
        make_status();
        launch_plan_compare_redis(&plan, &environment, LAUNCH_REPORT_FD);
}

/* A missing log is created by a start, not by this check. */
static void check_log(void)
{
        const char *slash = strrchr(plan.fleet.log, '/');
        char directory[PATH_MAX], remedy[FILE_REMEDY_MAX];

        if (!slash || access(plan.fleet.log, W_OK) == 0)
                return;
        snprintf(directory, sizeof(directory), "%.*s", MAX((int)(slash - plan.fleet.log), 1), plan.fleet.log);
        if (errno == ENOENT && access(directory, W_OK | X_OK) == 0)
                return;
        file_access_log_remedy(errno, remedy);
        fail("cannot open log '%s': %m%s", plan.fleet.log, remedy);
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
static void prepare(void)
{
        launch_enter_directory(&plan);
        if (plan.kind == LAUNCH_RELEASE)
                check_release();
        build_environment();
}

static _Noreturn void start_worker(void)
{
        const struct step before = {"before_start: ", plan.fleet.before_start_argv, plan.fleet.boot_timeout,
                                    " (boot_timeout)"};

        prepare();
        launch_open_streams(&plan);
        run_step(&before);
        if (launch_plan_add_scripts(&plan, &environment, LAUNCH_REPORT_FD) < 0)
                fail_memory();
        plan.environment = environment.list;
        launch_run(&plan);
}

static _Noreturn void start_template(void)
{
        await_permission();
        start_worker();
}

static _Noreturn void run_after_exit(void)
{
        const struct step after = {"after_exit: ", plan.fleet.after_exit_argv, plan.after_timeout, ""};

        prepare();
        launch_open_streams(&plan);
        run_step(&after);
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
        prepare();
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
                [LAUNCH_RELEASE] = {"sqmgr-release", prepare},
                [LAUNCH_REHEARSAL] = {LAUNCH_COMM, rehearse},
                [LAUNCH_ORDERS] = {"sqmgr-orders", write_orders},
        };
        char *block = NULL, **pointers = NULL;
        size_t size = 0;

        for (int fd = LAUNCH_REPORT_FD; fd <= LAUNCH_TEMPLATE_FD; fd++)
                (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
        int r = fd_read_whole(LAUNCH_BLOCK_FD, SIZE_MAX, &block, &size);
        if (r == 0)
                r = launch_plan_decode(block, size, &plan, &pointers);
        if (r < 0 || plan.kind >= _LAUNCH_KIND_MAX || !entries[plan.kind].run)
                fail("sqmgr-start cannot read its plan: %s", strerrordesc_np(r < 0 ? -r : EBADMSG));
        close_fd(LAUNCH_BLOCK_FD);
        (void)prctl(PR_SET_NAME, entries[plan.kind].comm);
        entries[plan.kind].run();
}
