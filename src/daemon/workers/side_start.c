/* SPDX-License-Identifier: MIT */
/* Starts of short processes that are no workers; see the header. */
#include "daemon/workers/side_start.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/launch.h"
#include "io/log.h"
#include "model/worker_facts.h"
#include <stdio.h>

/* Enforced by the process that runs the command, independently of sqmgr. */
#define AFTER_EXIT_TIMEOUT_USEC (30 * USEC_PER_SEC)
/* The user can stop or delay that process, so sqmgr waits no longer than this before it ends. */
#define AFTER_EXIT_LATE_USEC (AFTER_EXIT_TIMEOUT_USEC + 5 * USEC_PER_SEC)
/* The directory may be on an unreachable file server. */
#define RELEASE_TIMEOUT_USEC   (30 * USEC_PER_SEC)
#define REHEARSAL_TIMEOUT_USEC (10 * USEC_PER_SEC)

struct side_start {
        struct runtime *runtime;
        struct child child;
        int report_fd;
        usec_t timeout;
        release_fn fn; /* with userdata: of a check */
        void *userdata;
        struct side_start *next; /* after_exit: the next in the list */
        char name[];             /* after_exit: of the worker; else the release; "": a start is rehearsed */
};

static struct side_start *side_start_free(struct side_start *side)
{
        if (!side)
                return NULL;
        LIST_UNLINK(side->runtime->after_exits, side);
        children_remove(&side->runtime->children, &side->child);
        close_fd(side->report_fd);
        free(side);
        return NULL;
}

/* Completes the request, and starts its process. Returns 0 with *ret, or -errno. */
static int side_start_begin(struct runtime *runtime, struct launch_request *request, const char *name,
                            usec_t timeout, void (*exited)(struct child *child, const siginfo_t *info),
                            struct side_start **ret)
{
        size_t size = strlen(name) + 1;
        struct side_start *side = calloc(1, sizeof(*side) + size);
        struct launched launched = {.report_fd = -1};

        if (!side)
                return -ENOMEM;
        request->instance = "";
        request->nofile = runtime->nofile;
        request->base_environment = environ;
        memcpy(side->name, name, size);
        side->runtime = runtime;
        side->timeout = timeout;
        int r = child_limit(&side->child, runtime->event, timeout);
        if (r >= 0)
                r = launch_start(request, &launched);
        side->report_fd = launched.report_fd;
        if (r < 0) {
                side_start_free(side);
                return r;
        }
        side->child.pid = launched.pid;
        side->child.exited = exited;
        children_add(&runtime->children, &side->child);
        *ret = side;
        return 0;
}

static void on_after_exited(struct child *child, const siginfo_t *info _unused_)
{
        struct side_start *after = CHILD_OWNER(child, struct side_start);
        struct launch_report report = LAUNCH_REPORT_INIT;

        /* The process has exited, so the report is complete. */
        (void)launch_report_read(after->report_fd, &report);
        if (child->late)
                log_warning("%s: after_exit killed (reason: ran longer than %s)", after->name,
                            FORMAT_DURATION(after->timeout));
        if (report.outcome == LAUNCH_FAILED)
                log_quoted(LOG_WARNING, report.error, "%s: after_exit failed", after->name);
        launch_report_clear(&report);
        wakeup_arm(after->runtime->wakeup);
        side_start_free(after);
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

void after_exit_begin(struct runtime *runtime, const struct worker *worker, const struct exit_status *exit)
{
        const struct fleet *fleet = worker->fleet;
        const struct launch_end end = end_of(worker, exit);
        struct launch_request request = {
                .kind = LAUNCH_AFTER_EXIT,
                .fleet = fleet->settings,
                .index = worker->index,
                .generation = worker->generation,
                .end = &end,
        };
        char name[WORKER_ID_MAX + sizeof(" (pid 4294967295)")];
        struct side_start *after;

        /* If the worker's command never ran, skip after_exit. */
        if (!fleet->settings->after_exit_argv || exit->launch_error)
                return;
        snprintf(name, sizeof(name), "%s (pid %d)", WORKER_ID(worker), (int)end.pid);
        int r = side_start_begin(runtime, &request, name, AFTER_EXIT_LATE_USEC, on_after_exited, &after);
        if (r < 0) {
                log_warning("%s: cannot start after_exit: %s", WORKER_ID(worker), strerrordesc_np(-r));
                return;
        }
        after->next = runtime->after_exits;
        runtime->after_exits = after;
}

bool after_exits_run(const struct runtime *runtime)
{
        return runtime->after_exits;
}

void after_exits_forget(struct runtime *runtime)
{
        while (runtime->after_exits)
                side_start_free(runtime->after_exits);
}

struct side_start *release_check_cancel(struct side_start *check)
{
        return side_start_free(check);
}

static void on_checked(struct child *child, const siginfo_t *info)
{
        struct side_start *check = CHILD_OWNER(child, struct side_start);
        struct launch_report report = LAUNCH_REPORT_INIT;
        struct error_report error = {0};
        release_fn fn = check->fn;
        void *userdata = check->userdata;

        (void)launch_report_read(check->report_fd, &report);
        if (child->late)
                error_report_set(&error,
                                 "the fleet's files did not respond within %s; check whether a file server "
                                 "is unreachable",
                                 FORMAT_DURATION(check->timeout));
        else if (report.outcome == LAUNCH_FAILED && check->name[0] == '\0')
                error_report_set(&error, "the rehearsal of a start failed");
        else if (report.outcome == LAUNCH_FAILED)
                error_report_set(&error, "release '%s' was not found", check->name);
        else if (info->si_code != CLD_EXITED || info->si_status != 0)
                error_report_set(&error, "the process that checks the release died");
        if (report.error)
                error.quoted = *report.error;
        launch_report_clear(&report);
        side_start_free(check);
        fn(error.text[0] != '\0' ? &error : NULL, userdata);
}

int release_check_begin(struct runtime *runtime, const struct fleet *fleet, const char *release,
                        release_fn fn, void *userdata, struct side_start **ret)
{
        struct launch_request request = {
                .fleet = fleet->settings,
                .index = 1,
                .generation = fleet->generation,
                .kind = release ? LAUNCH_RELEASE : LAUNCH_REHEARSAL,
                .release = release,
        };
        int r = side_start_begin(runtime, &request, release ?: "",
                                 release ? RELEASE_TIMEOUT_USEC : REHEARSAL_TIMEOUT_USEC, on_checked, ret);

        if (r < 0)
                return r;
        (*ret)->fn = fn;
        (*ret)->userdata = userdata;
        return 0;
}
