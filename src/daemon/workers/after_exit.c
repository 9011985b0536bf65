/* SPDX-License-Identifier: MIT */
/* Runs the after_exit command for workers that have exited. Nothing depends on the result, so the model has
 * no rule for it. */
#include "daemon/workers/after_exit.h"
#include "base/parse.h"
#include "io/clock.h"
#include "io/launch.h"
#include "io/log.h"
#include "io/signal.h"
#include "model/describe.h"
#include "model/names.h"
#include "model/worker_facts.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* Enforced by the process that runs the command, independently of sqmgr. */
#define AFTER_EXIT_TIMEOUT_USEC (30 * USEC_PER_SEC)
/* The user can stop or delay that process, so sqmgr waits no longer than this before it ends. */
#define AFTER_EXIT_LATE_USEC (AFTER_EXIT_TIMEOUT_USEC + 5 * USEC_PER_SEC)

struct after_exit {
        struct runtime *runtime;
        struct child child;
        sd_event_source *timer;
        int report_fd;
        char name[WORKER_ID_MAX + sizeof(" (pid 4294967295)")];
        struct after_exit *next;
};

static struct after_exit *after_exit_free(struct after_exit *after)
{
        if (!after)
                return NULL;
        LIST_UNLINK(after->runtime->after_exits, after);
        children_remove(&after->runtime->children, &after->child);
        sd_event_source_disable_unref(after->timer);
        close_fd(after->report_fd);
        free(after);
        return NULL;
}

static void on_exited(struct child *child, const siginfo_t *info _unused_)
{
        struct after_exit *after = (struct after_exit *)((char *)child - offsetof(struct after_exit, child));
        struct launch_report report = LAUNCH_REPORT_INIT;

        /* The process has exited, so the report is complete. */
        (void)launch_report_read(after->report_fd, &report);
        if (report.outcome == LAUNCH_FAILED)
                log_quoted(LOG_WARNING, report.error, "%s: after_exit failed", after->name);
        launch_report_clear(&report);
        wakeup_arm(after->runtime->wakeup);
        after_exit_free(after);
}

static int on_late(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        const struct after_exit *after = userdata;
        char span[FORMAT_MAX];

        log_warning("%s: after_exit killed (reason: ran longer than %s)", after->name,
                    format_duration(AFTER_EXIT_LATE_USEC, span, sizeof(span)));
        (void)signal_child_group(after->child.pid, SIGKILL);
        return 0;
}

static struct launch_end end_of(const struct worker *worker, const struct exit_status *exit)
{
        struct launch_end end = {
                .pid = worker_pid(worker),
                .code = !exit->known      ? "unknown"
                        : exit->by_signal ? "killed"
                                          : "exited",
                .timeout = AFTER_EXIT_TIMEOUT_USEC,
        };

        if (exit->known && exit->by_signal)
                snprintf(end.status, sizeof(end.status), "%s", sigabbrev_np(exit->status) ?: "?");
        else if (exit->known)
                snprintf(end.status, sizeof(end.status), "%d", exit->status);
        return end;
}

static void report_not_started(const struct worker *worker, int error)
{
        log_warning("%s: cannot start after_exit: %s", WORKER_ID(worker), strerrordesc_np(error));
}

void after_exit_begin(struct runtime *runtime, const struct worker *worker, const struct exit_status *exit)
{
        const struct fleet *fleet = worker->fleet;
        const struct launch_end end = end_of(worker, exit);
        const struct launch_request request = {
                .fleet = fleet->settings,
                .index = worker->index,
                .generation = worker->generation,
                .instance = "",
                .nofile = runtime->nofile,
                .base_environment = environ,
                .end = &end,
        };
        struct launched launched;

        /* If the worker's command never ran, skip after_exit. */
        if (!fleet->settings->after_exit_argv || exit->launch_error)
                return;
        struct after_exit *after = calloc(1, sizeof(*after));
        if (!after) {
                report_not_started(worker, ENOMEM);
                return;
        }
        int r = sd_event_add_time(runtime->event, &after->timer, CLOCK_MONOTONIC,
                                  usec_add(clock_now(CLOCK_MONOTONIC), AFTER_EXIT_LATE_USEC), 0, on_late,
                                  after);
        if (r >= 0)
                r = launch_start(&request, &launched);
        if (r < 0) {
                report_not_started(worker, -r);
                sd_event_source_disable_unref(after->timer);
                free(after);
                return;
        }
        after->runtime = runtime;
        after->child = (struct child){.pid = launched.pid, .exited = on_exited};
        after->report_fd = launched.report_fd;
        after->next = runtime->after_exits;
        snprintf(after->name, sizeof(after->name), "%s (pid %d)", WORKER_ID(worker), (int)end.pid);
        runtime->after_exits = after;
        children_add(&runtime->children, &after->child);
}

bool after_exits_run(const struct runtime *runtime)
{
        return runtime->after_exits;
}

void after_exits_forget(struct runtime *runtime)
{
        while (runtime->after_exits)
                after_exit_free(runtime->after_exits);
}
