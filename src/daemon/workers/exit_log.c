/* SPDX-License-Identifier: MIT */
/* Reads the log tail of exited workers from the journal, and observes it when it arrives. */
#include "daemon/workers/exit_log.h"
#include "base/fd.h"
#include "io/launch.h"
#include "io/launcher.h"
#include "io/log.h"
#include "io/log_tail.h"
#include "io/own_program.h"
#include "model/world.h"
#include "observe/observe.h"
#include "observe/observe_template.h"
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The program is killed after this time. If even that hangs, we give up a second later. */
#define DEADLINE_SECONDS 5

/* When many workers die at once, the log tails of some are enough. */
#define READS_MAX 4

/* A reading of the journal in progress. */
struct exit_log {
        struct exit_log *next;
        struct runtime *runtime;
        sd_event_source *answer;
        sd_event_source *deadline;
        int fd;
        uint64_t token;
        char fleet[]; /* name of the fleet */
};

static void exit_log_free(struct exit_log *log)
{
        LIST_UNLINK(log->runtime->exit_log, log);
        sd_event_source_disable_unref(log->answer);
        sd_event_source_disable_unref(log->deadline);
        close_fd(log->fd);
        free(log);
}

void exit_log_forget(struct runtime *runtime)
{
        while (runtime->exit_log)
                exit_log_free(runtime->exit_log);
}

/* The journal may lag behind the end of a process: the answer comes after about 500 ms, or 1 s if there are
 * no lines. */
static void finish(struct exit_log *log, const char *lines)
{
        struct runtime *runtime = log->runtime;
        struct fleet *fleet = world_fleet(runtime->world, log->fleet);
        struct quoted text;

        quoted_set(&text, lines);
        if (fleet) {
                template_observe_log_tail(fleet, log->token, &text, runtime->preload_script);
                observe_log_tail(fleet, log->token, &text);
        }
        wakeup_arm(runtime->wakeup);
        exit_log_free(log);
}

static int on_answer(sd_event_source *source _unused_, int fd, uint32_t events _unused_, void *userdata)
{
        char lines[LOG_TAIL_MAX_BYTES + 1];
        ssize_t n = recv(fd, lines, sizeof(lines) - 1, MSG_DONTWAIT);

        if (n < 0 && (errno == EAGAIN || errno == EINTR))
                return 0;
        lines[MAX(n, (ssize_t)0)] = '\0';
        finish(userdata, lines);
        return 0;
}

static int on_deadline(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        finish(userdata, "");
        return 0;
}

/* Starts the program, which reads stdout and stderr of these processes. Earlier output under their pids
 * belongs to other processes. Returns the pid or -errno. The process ends by itself. */
static pid_t start_program(const struct exit_log_source *of, int socket_fd)
{
        _cleanup_close_ int program_fd = own_program_open("sqmgr-journal", JOURNAL_PROGRAM);
        _cleanup_launch_job_ struct launch_job *job = NULL;
        char pids[2][16], since[24], *argv[] = {(char *)"sqmgr-journal", pids[0], pids[1], since, NULL};
        const struct launch_plan plan = {.fleet = {.argv = argv}};

        snprintf(pids[0], sizeof(pids[0]), "%d", (int)of->pids[0]);
        snprintf(pids[1], sizeof(pids[1]), "%d", of->pids[1] != of->pids[0] ? (int)of->pids[1] : 0);
        snprintf(since, sizeof(since), "%ju", (uintmax_t)of->since);
        int r = program_fd < 0 ? program_fd : launch_job_new(&plan, &job);
        if (r < 0)
                return r;
        job->program_fd = program_fd;
        job->input_fd = socket_fd;
        job->seconds = DEADLINE_SECONDS;
        return launcher_start(TAKE_PTR(job));
}

static int start_reading(struct exit_log *log, const struct exit_log_source *of)
{
        sd_event *event = log->runtime->event;
        int fds[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
                return -errno;
        log->fd = fds[0];
        _cleanup_close_ int child_end = fds[1];
        int r = sd_event_add_io(event, &log->answer, log->fd, EPOLLIN, on_answer, log);
        if (r >= 0)
                r = sd_event_add_time_relative(event, &log->deadline, CLOCK_MONOTONIC,
                                               (DEADLINE_SECONDS + 1) * USEC_PER_SEC, 0, on_deadline, log);
        return r < 0 ? r : start_program(of, child_end);
}

static bool writes_to_journal(const struct fleet_settings *settings)
{
        const char *log = log_of_workers(settings->log);

        return strcmp(log, "journal") == 0 || (strcmp(log, "inherit") == 0 && log_is_journal());
}

/* Starts reading the journal. Returns the token of the answer, or 0 if none will come. */
static uint64_t read_journal(struct runtime *runtime, const struct exit_log_source *of)
{
        const char *name = of->fleet->settings->name;
        unsigned n = 0;

        for (const struct exit_log *i = runtime->exit_log; i; i = i->next)
                n++;
        if (n >= READS_MAX || !writes_to_journal(of->fleet->settings))
                return 0;
        size_t size = strlen(name) + 1;
        struct exit_log *log = calloc(1, sizeof(*log) + size);
        if (!log)
                return 0;
        log->runtime = runtime;
        log->fd = -1;
        memcpy(log->fleet, name, size);
        if (start_reading(log, of) < 0) {
                exit_log_free(log);
                return 0;
        }
        log->token = ++runtime->lines_token;
        log->next = runtime->exit_log;
        runtime->exit_log = log;
        return log->token;
}

/* Returns true if another process writes to the log file, or has written to it since and failed. */
static bool is_shared(const struct world *world, const struct exit_log_source *of)
{
        const char *log = log_of_workers(of->fleet->settings->log);
        unsigned n = 0;

        WORLD_FOREACH_FLEET(world, fleet) {
                if (strcmp(log_of_workers(fleet->settings->log), log) != 0)
                        continue;
                n += fleet->crash.failed_at > of->since;
                FLEET_FOREACH_WORKER(fleet, worker)
                        n += worker->state != WORKER_GONE;
                FLEET_FOREACH_TEMPLATE(fleet, template)
                        n += template_is_alive(template);
        }
        return n > 1;
}

/* Of a file that several processes write to, only lines that name the process are known to be its own. */
static int read_file(struct runtime *runtime, const struct exit_log_source *of,
                     const struct launch_report *report, char text[static LOG_TAIL_MAX_BYTES + 1])
{
        /* A command may run the worker in a child, whose pid is known only after a heartbeat. */
        const struct proc_log log = {
                .fd = report->log_fd,
                .start_bytes = report->log_start_bytes,
                .other_pid = is_shared(runtime->world, of) ? of->pids[1] : LOG_TAIL_ANY_PID,
        };

        return proc_facts_log_tail(runtime->proc_facts, of->main, &log, text, LOG_TAIL_MAX_BYTES + 1);
}

void exit_log_ask(struct runtime *runtime, const struct exit_log_source *of,
                  const struct launch_report *report)
{
        char text[LOG_TAIL_MAX_BYTES + 1];

        if (report->log_fd >= 0)
                (void)read_file(runtime, of, report, text);
}

int exit_log_add(struct runtime *runtime, const struct exit_log_source *of,
                 const struct launch_report *report, bool expected, struct quoted *lines,
                 struct exit_status *exit)
{
        static const struct quoted unprepared = {"the start could not be prepared"};
        char text[LOG_TAIL_MAX_BYTES + 1];
        int r = -ENODATA;

        if (report->log_fd >= 0 && !expected)
                r = read_file(runtime, of, report, text);
        if (r == -EINPROGRESS)
                return r;
        if (report->outcome == LAUNCH_FAILED)
                exit->launch_error = report->error ?: &unprepared;
        if (r == 0) {
                quoted_set(lines, text);
                exit->log_tail = lines;
        }
        if (!exit->launch_error && !exit->log_tail && !expected)
                exit->lines_token = read_journal(runtime, of);
        return 0;
}
