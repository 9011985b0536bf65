/* SPDX-License-Identifier: MIT */
/* Publishes events to the log, to clients and to alert_command, and the status to systemd. alert_command has
 * one run at a time, each with a time limit, similar events grouped. */
#include "daemon/lifecycle/alerts.h"
#include "advice/alert_queue.h"
#include "base/argv.h"
#include "base/environment.h"
#include "base/fd.h"
#include "base/parse.h"
#include "io/clock.h"
#include "io/launcher.h"
#include "io/log.h"
#include "io/systemd.h"
#include "io/timer.h"
#include "model/counts.h"
#include "model/world.h"
#include <systemd/sd-daemon.h>

/* Delay before a failed start is retried. */
#define RETRY_USEC (5 * USEC_PER_SEC)

struct alerts {
        struct runtime *runtime;
        usec_t timeout;
        struct alert_queue queue;
        int start_error; /* -errno of the last attempt to start the command; 0: started */
        bool losing;     /* the queue overflowed, which was logged */
        struct child child;
        const char *running;    /* name of the event whose command runs */
        sd_event_source *timer; /* fires when the next alert is due */
};

static void run_due(struct alerts *alerts);

static int on_timer(sd_event_source *source _unused_, uint64_t usec _unused_, void *userdata)
{
        run_due(userdata);
        return 0;
}

static void on_exited(struct child *child, const siginfo_t *info)
{
        struct alerts *alerts = CHILD_OWNER(child, struct alerts);
        char span[FORMAT_MAX];

        if (child->late)
                log_warning("alert_command for '%s' killed (reason: no exit within %s)", alerts->running,
                            format_duration(alerts->timeout, span, sizeof(span)));
        else if (info->si_code != CLD_EXITED)
                log_warning("alert_command for '%s' ended by SIG%s", alerts->running,
                            sigabbrev_np(info->si_status) ?: "?");
        else if (info->si_status != 0)
                log_warning("alert_command for '%s' failed (exit status %d)", alerts->running,
                            info->si_status);
        run_due(alerts);
}

/* Starts the command in a session of its own, with sqmgr's own output. If it cannot run, the child writes the
 * reason there and exits with status 127. */
static int start_command(const struct alerts *alerts, const struct alert *alert, const char *input,
                         char *const *argv, pid_t *ret)
{
        _cleanup_environment_ struct environment environment = {0};
        _cleanup_launch_job_ struct launch_job *job = NULL;
        char worker[WORKER_ID_MAX] = "";
        struct launch_plan plan = {
                .kind = LAUNCH_ALERT,
                .fleet = {.argv = (char **)argv},
                .nofile = alerts->runtime->nofile,
        };
        _cleanup_close_ int input_fd = fd_memory("sqmgr-alert", input, strlen(input));

        if (input_fd < 0)
                return input_fd;
        if (alert->index > 0)
                worker_id(alert->fleet, alert->index, worker);
        if (environment_put_inherited(&environment, environ) < 0 ||
            environment_set(&environment, "SQMGR_EVENT", event_kinds[alert->kind].name) < 0 ||
            environment_set(&environment, "SQMGR_FLEET", alert->fleet) < 0 ||
            environment_set(&environment, "SQMGR_WORKER", worker) < 0)
                return -ENOMEM;
        plan.environment = environment.list;
        int r = launch_job_new(&plan, &job);
        if (r < 0)
                return r;
        job->input_fd = input_fd;
        /* A backstop: SIGALRM ends the command even if sqmgr is gone. */
        job->seconds = (unsigned)(alerts->timeout / USEC_PER_SEC) + 2;
        *ret = launcher_start(TAKE_PTR(job));
        return MIN(*ret, 0);
}

static int start(struct alerts *alerts, const struct alert *alert, const char *input, char *const *argv)
{
        struct child *child = &alerts->child;

        *child = (struct child){.exited = on_exited};
        int r = child_limit(child, alerts->runtime->event, alerts->timeout);
        if (r >= 0)
                r = start_command(alerts, alert, input, argv, &child->pid);
        if (r < 0) {
                children_remove(&alerts->runtime->children, child);
                child->pid = 0;
                return r;
        }
        children_add(&alerts->runtime->children, child);
        alerts->running = event_kinds[alert->kind].name;
        alerts->losing = false;
        return 0;
}

/* Runs the command for an alert, or schedules a retry. */
static void run(struct alerts *alerts, struct alert *alert)
{
        const char *command = alerts->runtime->world->settings->alert_command, *error;
        _cleanup_argv_ char **argv = NULL;
        _cleanup_free_ char *object = NULL, *input = NULL;
        int r = -ENOMEM;

        /* A reload has removed the command meanwhile. */
        if (!command) {
                alert_queue_clear(&alerts->queue);
                return;
        }
        if (json_object_set_new(alert->event, "count", json_integer(alert->count)) == 0)
                object = json_dumps(alert->event, JSON_COMPACT | JSON_REAL_PRECISION(15));
        if (object && asprintf(&input, "%s\n", object) < 0)
                input = NULL;
        if (input)
                r = argv_split(command, &argv, &error);
        if (r >= 0)
                r = start(alerts, alert, input, argv);
        if (r < 0 && r != alerts->start_error)
                log_error("cannot start alert_command for '%s': %s; retrying", event_kinds[alert->kind].name,
                          strerrordesc_np(-r));
        alerts->start_error = MIN(r, 0);
        if (r < 0)
                alert_queue_delay(&alerts->queue, alert, usec_add(clock_now(CLOCK_MONOTONIC), RETRY_USEC));
        else
                alert_queue_sent(alert);
}

static void run_due(struct alerts *alerts)
{
        struct alert *next;

        while (alerts->child.pid == 0 && (next = alert_queue_next(&alerts->queue))) {
                if (next->due > clock_now(CLOCK_MONOTONIC)) {
                        timer_set(alerts->timer, next->due);
                        return;
                }
                run(alerts, next);
        }
}

void alerts_event(struct alerts *alerts, const struct event *event, usec_t realtime)
{
        const struct settings *settings = alerts->runtime->world->settings;

        if (!settings->alert_command || event_alert_level(event) > settings->alert_level)
                return;
        json_t *rendered = event_render(event, realtime);
        if (!rendered)
                return;
        if (!alert_queue_add(&alerts->queue, event, rendered, clock_now(CLOCK_MONOTONIC)) &&
            !alerts->losing) {
                log_warning("alerts dropped: %d alerts already wait for alert_command", ALERTS_MAX);
                alerts->losing = true;
        }
        run_due(alerts);
}

int alerts_new(struct runtime *runtime, usec_t timeout, struct alerts **ret)
{
        struct alerts *alerts = calloc(1, sizeof(*alerts));

        if (!alerts)
                return -ENOMEM;
        alerts->runtime = runtime;
        alerts->timeout = timeout;
        int r = timer_new(runtime->event, on_timer, alerts, &alerts->timer);
        *ret = r < 0 ? alerts_free(alerts) : alerts;
        return r;
}

struct alerts *alerts_free(struct alerts *alerts)
{
        if (!alerts)
                return NULL;
        children_remove(&alerts->runtime->children, &alerts->child);
        sd_event_source_disable_unref(alerts->timer);
        alert_queue_clear(&alerts->queue);
        free(alerts);
        return NULL;
}

#define STOP_EXTEND_USEC (60 * USEC_PER_SEC)

void notify_events(struct world *world, struct events *events, struct alerts *alerts)
{
        usec_t realtime = clock_now(CLOCK_REALTIME);

        for (size_t i = 0; i < world->n_events; i++) {
                log_event(&world->events[i]);
                events_add(events, &world->events[i], realtime);
                alerts_event(alerts, &world->events[i], realtime);
        }
        world_events_clear(world);
}

static void running_text(const struct world *world, usec_t now, char *text, size_t size)
{
        unsigned target = 0, active = 0, starting = 0, hung = 0, leaving = 0;

        WORLD_FOREACH_FLEET(world, fleet) {
                struct fleet_counts counts = fleet_count(fleet, now);

                target += fleet_target(fleet);
                active += counts.active;
                starting += counts.starting;
                hung += counts.hung;
                leaving += counts.quiet + counts.stopping;
        }
        int n = snprintf(text, size, "STATUS=%u of %u worker%s active, %u starting, %u draining", active,
                         target, plural(target), starting, leaving);
        if (hung > 0 && n > 0 && (size_t)n < size)
                snprintf(text + n, size - (size_t)n, ", %u hung", hung);
}

/* Extends the stop timeout of the unit while the loop runs: a drain may last longer. */
static void extend_stop(const struct settings *settings)
{
        usec_t more = 2 * settings->check_interval + STOP_EXTEND_USEC;
        char text[64];

        snprintf(text, sizeof(text), "EXTEND_TIMEOUT_USEC=%llu", (unsigned long long)more);
        systemd_notify(text);
}

void notify_systemd(struct notify *notify, const struct world *world, usec_t now)
{
        char text[sizeof(notify->status_text)], stopping[128];

        if (notify->watchdog_usec > 0 && now >= usec_add(notify->fed_at, notify->watchdog_usec / 4)) {
                systemd_notify("WATCHDOG=1");
                notify->fed_at = now;
        }
        if (world->shutting_down) {
                (void)snprintf(text, sizeof(text), "STATUS=Stopping: %s",
                               world_stopping_text(world, now, stopping, sizeof(stopping)));
                extend_stop(world->settings);
        } else {
                running_text(world, now, text, sizeof(text));
        }
        if (strcmp(text, notify->status_text) == 0)
                return;
        snprintf(notify->status_text, sizeof(notify->status_text), "%s", text);
        systemd_notify(text);
}

usec_t notify_wake_at(const struct notify *notify, usec_t now)
{
        return notify->watchdog_usec > 0 ? usec_add(now, notify->watchdog_usec / 4) : USEC_INFINITY;
}

void notify_ready(struct notify *notify)
{
        uint64_t watchdog_usec;

        if (sd_watchdog_enabled(false, &watchdog_usec) > 0)
                notify->watchdog_usec = watchdog_usec;
        systemd_notify("READY=1");
}
