/* SPDX-License-Identifier: MIT */
/* The command `logs`: reads what workers wrote, from the destination of their `log` option, with the caller's
 * own rights. */
#include "base/argv.h"
#include "base/memstream.h"
#include "base/printable.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "wire/reply.h"
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>

#define LINES_SO_FAR 50

struct log_source {
        struct ctl *ctl;
        const char *name; /* from the command line */
        size_t fleet_length;
        json_t *fleet, *worker; /* from status; worker is NULL for a fleet and for a dead worker */
        double started_at;      /* start of worker, in seconds since 1970 */
        uid_t uid;              /* the instance's user, as whom workers write to the journal */
        char **argv;            /* the program that reads the log; NULL-terminated */
        size_t n;
        bool failed; /* memory was short */
};

static bool is_of_worker(const struct log_source *source)
{
        return source->name[source->fleet_length] != '\0';
}

static void add(struct log_source *source, const char *format, ...) _printf_(2, 3);
static void add(struct log_source *source, const char *format, ...)
{
        va_list arguments;

        if (!ARRAY_RESIZE(source->argv, source->n + 2)) {
                source->failed = true;
                return;
        }
        va_start(arguments, format);
        if (vasprintf(&source->argv[source->n], format, arguments) >= 0)
                source->n++;
        else
                source->failed = true;
        va_end(arguments);
        source->argv[source->n] = NULL;
}

static void add_beginning(struct log_source *source, const char *program, const char *follow)
{
        add(source, "%s", program);
        add(source, "--lines=%ju",
            source->ctl->lines == UINT64_MAX ? (uintmax_t)LINES_SO_FAR : (uintmax_t)source->ctl->lines);
        if (ctl_has(source->ctl, OPTION_FOLLOW))
                add(source, "%s", follow);
}

/* Any user can write under the name of any worker: only entries of the instance's user count. */
static void add_journalctl(struct log_source *source)
{
        add_beginning(source, "journalctl", "--follow");
        add(source, "--no-pager");
        add(source, "_UID=%u", source->uid);
}

/* Each worker has a journal identifier of its own, which remains after the worker is gone. */
static void read_by_name(struct log_source *source)
{
        long long places = MIN(reply_integer(source->fleet, "max_processes"), REPLY_WORKERS_MAX);

        add_journalctl(source);
        if (ctl_has(source->ctl, OPTION_PREVIOUS) && source->worker)
                add(source, "--until=@%.3f", source->started_at);
        if (is_of_worker(source)) {
                add(source, "--identifier=%s", source->name);
                return;
        }
        for (long long i = 1; i <= places && !source->failed; i++)
                add(source, "--identifier=%s/%lld", source->name, i);
}

/* Another process may get the pid of a worker that has exited. */
#define PID_SECONDS 1

/* Adds the processes of lives that have ended, as far as events show them. Returns false if none is known. */
static bool add_former_pids(struct log_source *source)
{
        _cleanup_json_ json_t *reply = NULL, *seen = json_object();
        json_t *event;
        double since = 0, until = 0;
        char pid[24];

        int r = client_call(source->ctl, "GetEvents", json_pack("{s:s}", "worker", source->name), &reply);
        client_close(source->ctl);
        if (r != CTL_DONE)
                return false;
        json_foreach_in(event, reply, "events") {
                double at = json_number_value(json_object_get(event, "at"));

                snprintf(pid, sizeof(pid), "%lld", reply_integer(event, "pid"));
                if (strcmp(pid, "0") == 0 || (source->worker && at >= source->started_at))
                        continue;
                since = since > 0 ? since : at;
                until = at;
                if (!json_object_get(seen, pid) && json_object_set_new(seen, pid, json_true()) == 0)
                        add(source, "_PID=%s", pid);
        }
        if (until > 0) {
                add(source, "--since=@%.3f", since - PID_SECONDS);
                add(source, "--until=@%.3f", until + PID_SECONDS);
        }
        return until > 0;
}

/* With `log = inherit` only the pid distinguishes the lines of workers. Returns false if no process is
 * known. */
static bool read_by_pid(struct log_source *source)
{
        size_t before;
        json_t *worker;

        add_journalctl(source);
        add(source, "--boot");
        if (is_of_worker(source) && (ctl_has(source->ctl, OPTION_PREVIOUS) || !source->worker))
                return add_former_pids(source);
        before = source->n;
        json_foreach_in(worker, source->fleet, "workers")
                if (!is_of_worker(source) || worker == source->worker)
                        add(source, "_PID=%lld", reply_integer(worker, "pid"));
        return source->failed || source->n > before;
}

static void read_file(struct log_source *source, const char *path)
{
        add_beginning(source, "tail", "--follow=name");
        if (ctl_has(source->ctl, OPTION_FOLLOW))
                add(source, "--retry");
        add(source, "--");
        add(source, "%s", path);
}

static int run(char **argv)
{
        execvp(argv[0], argv);
        return output_error(CTL_FAILED, "cannot run '%s': %s", argv[0], strerrordesc_np(errno));
}

/* A log file may contain escape sequences; tail passes them on, journalctl does not. */
static int run_cleaned(char **argv)
{
        _cleanup_free_ char *line = NULL;
        size_t size = 0;
        ssize_t length;
        int ends[2], status = 0;

        if (pipe2(ends, O_CLOEXEC) < 0)
                return output_error(CTL_FAILED, "cannot make a pipe: %s", strerrordesc_np(errno));
        pid_t pid = fork();
        if (pid == 0) {
                if (dup2(ends[1], STDOUT_FILENO) >= 0)
                        (void)run(argv);
                _exit(127);
        }
        (void)close(ends[1]);
        FILE *lines = pid < 0 ? NULL : fdopen(ends[0], "r");
        if (!lines) {
                (void)close(ends[0]);
                return output_error(CTL_FAILED, "cannot start '%s': %s", argv[0], strerrordesc_np(errno));
        }
        while ((length = getline(&line, &size, lines)) >= 0) {
                printable_replace(line, (size_t)length, true);
                if (fwrite(line, 1, (size_t)length, stdout) != (size_t)length || fflush(stdout) != 0)
                        break;
        }
        (void)fclose(lines);
        return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? CTL_DONE
                                                                                                : CTL_FAILED;
}

/* The file may be anything that the caller can read: another user's sqmgr must not choose it. */
static int report_file(const struct log_source *source, const char *path)
{
        const struct passwd *user = geteuid() == 0 ? getpwuid(source->uid) : NULL;
        _cleanup_free_ char *quoted = NULL;
        size_t size;
        FILE *out = open_memstream(&quoted, &size);

        if (out)
                argv_put_quoted(out, path);
        if (memstream_close(out, &quoted) < 0)
                return output_error(CTL_FAILED, "not enough memory");
        return output_error_as("log-is-a-file", CTL_FAILED,
                               "workers of '%.*s' write to a file, and sqmgrctl opens no file that another "
                               "user's sqmgr names. To read it, run '%s%s%stail -n %d -- %s'",
                               (int)source->fleet_length, source->name, user ? "runuser -u " : "",
                               user ? user->pw_name : "", user ? " -- " : "", LINES_SO_FAR, quoted);
}

static int show(struct log_source *source)
{
        const char *log = reply_string(source->fleet, "log");
        bool inherited = strcmp(log, "inherit") == 0, in_file = log[0] == '/';

        if (in_file && source->uid != geteuid())
                return report_file(source, log);
        if (in_file && is_of_worker(source))
                (void)output_error(CTL_DONE, "all workers of '%.*s' write to '%s'%s",
                                   (int)source->fleet_length, source->name, log,
                                   ctl_has(source->ctl, OPTION_PREVIOUS) ? ", earlier ones too" : "");
        if (inherited)
                (void)output_error(CTL_DONE,
                                   "log = inherit: workers write to the output of sqmgr. Only lines in the "
                                   "journal can be shown, by process");
        if (in_file)
                read_file(source, log);
        else if (!inherited)
                read_by_name(source);
        else if (!read_by_pid(source))
                return output_error_as("unknown-worker", CTL_USAGE,
                                       "no %sprocess of '%s' is known. With 'log = journal', lines are found "
                                       "by worker, even after its exit",
                                       ctl_has(source->ctl, OPTION_PREVIOUS) ? "earlier " : "", source->name);
        if (source->failed)
                return output_error(CTL_FAILED, "not enough memory");
        return in_file ? run_cleaned(source->argv) : run(source->argv);
}

int ctl_logs(struct ctl *ctl)
{
        struct log_source source = {
                .ctl = ctl, .name = ctl->arguments[0], .fleet_length = strcspn(ctl->arguments[0], "/")};
        _cleanup_json_ json_t *reply = NULL;
        struct timespec now = {0};
        struct ucred server = {.uid = (uid_t)-1};
        socklen_t size = sizeof(server);
        json_t *worker;

        /* Before the call: lines of the present life are later than started_at, however long the reply takes.
         */
        (void)clock_gettime(CLOCK_REALTIME, &now);
        int r = client_call(ctl, "GetStatus",
                            json_pack("{s:[s%]}", "fleets", source.name, source.fleet_length), &reply);
        if (r == CTL_DONE)
                (void)getsockopt(ctl->fd, SOL_SOCKET, SO_PEERCRED, &server, &size);
        client_close(ctl);
        if (r != CTL_DONE)
                return r;
        source.uid = server.uid;
        source.fleet = json_array_get(json_object_get(reply, "fleets"), 0);
        json_foreach_in(worker, source.fleet, "workers")
                if (reply_is(worker, "id", source.name))
                        source.worker = worker;
        source.started_at = (double)now.tv_sec + (double)now.tv_nsec / 1e9 -
                            json_number_value(json_object_get(source.worker, "uptime_seconds"));
        if (is_of_worker(&source) && !source.worker)
                (void)output_error(CTL_DONE,
                                   "'%s' is not running; to see how it ended, run 'sqmgrctl why %s'",
                                   source.name, source.name);
        r = show(&source);
        for (size_t i = 0; i < source.n; i++)
                free(source.argv[i]);
        free(source.argv);
        return r;
}
