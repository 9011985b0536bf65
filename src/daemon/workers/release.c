/* SPDX-License-Identifier: MIT */
/* Rehearses a start, or checks whether the code of a release has arrived; see the header. */
#include "daemon/workers/release.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/clock.h"
#include "io/launch.h"
#include "io/signal.h"
#include "model/fleet.h"
#include <signal.h>
#include <string.h>
#include <unistd.h>

/* The directory may be on an unreachable file server. */
#define RELEASE_TIMEOUT_USEC   (30 * USEC_PER_SEC)
#define REHEARSAL_TIMEOUT_USEC (10 * USEC_PER_SEC)

struct release_check {
        struct runtime *runtime;
        struct child child;
        sd_event_source *timer;
        int report_fd;
        usec_t timeout;
        bool late;
        release_fn fn;
        void *userdata;
        char release[]; /* "": a start is rehearsed */
};

struct release_check *release_check_cancel(struct release_check *check)
{
        if (!check)
                return NULL;
        children_remove(&check->runtime->children, &check->child);
        sd_event_source_disable_unref(check->timer);
        close_fd(check->report_fd);
        free(check);
        return NULL;
}

/* release: "": a start was rehearsed. */
static void set_failed(struct error_report *error, const char *release)
{
        if (release[0] == '\0')
                error_report_set(error, "the rehearsal of a start failed");
        else
                error_report_set(error, "release '%s' was not found", release);
}

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct release_check *check =
                (struct release_check *)((char *)child - offsetof(struct release_check, child));
        struct launch_report report = LAUNCH_REPORT_INIT;
        struct error_report error = {0};
        char span[FORMAT_MAX];
        release_fn fn = check->fn;
        void *userdata = check->userdata;

        /* The child has exited, so its report is complete. */
        (void)launch_report_read(check->report_fd, &report);
        if (check->late)
                error_report_set(&error,
                                 "the fleet's files did not respond within %s; check whether a file server "
                                 "is unreachable",
                                 format_duration(check->timeout, span, sizeof(span)));
        else if (report.outcome == LAUNCH_FAILED)
                set_failed(&error, check->release);
        else if (info->si_code != CLD_EXITED || info->si_status != 0)
                error_report_set(&error, "the process that checks the release died");
        if (report.error)
                error.quoted = *report.error;
        close_fd(report.log_fd);
        (void)release_check_cancel(check);
        fn(error.text[0] != '\0' ? &error : NULL, userdata);
        free(report.error);
}

static int on_late(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        struct release_check *check = userdata;

        check->late = true;
        (void)signal_child(check->child.pid, SIGKILL);
        return 0;
}

int release_check_begin(struct runtime *runtime, const struct fleet *fleet, const char *release,
                        release_fn fn, void *userdata, struct release_check **ret)
{
        const struct launch_request request = {
                .fleet = fleet->settings,
                .index = 1,
                .generation = fleet->generation,
                .instance = "",
                .nofile = runtime->nofile,
                .base_environment = environ,
                .rehearsal = !release,
                .release = release,
        };
        size_t size = release ? strlen(release) + 1 : 1;
        struct release_check *check = calloc(1, sizeof(*check) + size);
        struct launched launched;

        if (!check)
                return -ENOMEM;
        check->timeout = release ? RELEASE_TIMEOUT_USEC : REHEARSAL_TIMEOUT_USEC;
        int r = sd_event_add_time(runtime->event, &check->timer, CLOCK_MONOTONIC,
                                  usec_add(clock_now(CLOCK_MONOTONIC), check->timeout), 0, on_late, check);
        if (r >= 0)
                r = launch_start(&request, &launched);
        if (r < 0) {
                sd_event_source_disable_unref(check->timer);
                free(check);
                return r;
        }
        memcpy(check->release, release ?: "", size);
        check->runtime = runtime;
        check->child = (struct child){.pid = launched.pid, .exited = on_exited};
        check->report_fd = launched.report_fd;
        check->fn = fn;
        check->userdata = userdata;
        children_add(&runtime->children, &check->child);
        *ret = check;
        return 0;
}
