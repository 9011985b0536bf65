/* SPDX-License-Identifier: MIT */
/* Starts a worker's process and reports the outcome: the parent's part. */
#include "io/launch.h"

#include "base/environment.h"
#include "base/fd.h"
#include "io/clock.h"
#include "io/launcher.h"
#include "io/log.h"
#include "io/marker.h"
#include "model/names.h"
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>

static int set_identity(const struct launch_request *request, struct environment *environment)
{
        const char *fleet = request->fleet->name;
        const struct launch_end *end = request->end;
        char index[16], generation[24], started[24], worker[WORKER_ID_MAX], pid[16];

        snprintf(index, sizeof(index), "%u", request->index);
        snprintf(generation, sizeof(generation), "%ju", (uintmax_t)request->generation);
        snprintf(started, sizeof(started), "%ju", (uintmax_t)request->started_at);
        snprintf(pid, sizeof(pid), "%d", end ? (int)end->pid : 0);
        worker_id(fleet, request->index, worker);
        /* Reserve space: the template overwrites these blanks with each forked worker's values, in the place
         * that /proc shows. */
        if (request->kind == LAUNCH_TEMPLATE) {
                snprintf(index, sizeof(index), "%10s", "");
                snprintf(started, sizeof(started), "%20s", "");
                snprintf(worker, sizeof(worker), "%s/%-10s", fleet, "template");
        }
        const struct {
                const char *name, *value;
        } variables[] = {
                {"SQMGR_FLEET", fleet},
                {"SQMGR_WORKER", worker},
                {"SQMGR_INDEX", index},
                {"SQMGR_GENERATION", generation},
                {"SQMGR_START", started},
                {"SQMGR_INSTANCE", request->instance},
                {"SQMGR_PID", end ? pid : NULL},
                {"SQMGR_EXIT_CODE", end ? end->code : NULL},
                {"SQMGR_EXIT_STATUS", end ? end->status : NULL},
        };
        FOREACH_ELEMENT(variable, variables)
                if (variable->value && environment_set(environment, variable->name, variable->value) < 0)
                        return -ENOMEM;
        return 0;
}

/* Later entries win, and the worker's identity overrides all. The fleet's environment, and sqmgr's own, may
 * replace the names of worker and host. The identity also comes first, since only the beginning of a huge
 * environment is read back. What sqmgr-start adds: see build_environment() of start/main.c. */
static int build_environment(const struct launch_request *request, struct launch_plan *plan,
                             struct environment *environment)
{
        const struct fleet_settings *fleet = request->fleet;
        const struct traits *traits = fleet->traits;
        char name[WORKER_ID_MAX + 16];

        int r = set_identity(request, environment);
        plan->identity = (uint32_t)environment->n;
        snprintf(name, sizeof(name), "%s-%u%s", fleet->name, request->index, traits->name_suffix ?: "");
        if (r == 0 && traits->name_variable)
                r = environment_set(environment, traits->name_variable, name);
        if (r == 0 && request->unique_host && request->unique_host[0] != '\0')
                r = environment_set(environment, traits->host_variable, request->unique_host);
        if (r == 0)
                r = environment_put_inherited(environment, request->base_environment);
        for (char **p = fleet->environment_list; p && *p && r == 0; p++)
                r = environment_put(environment, *p);
        return r < 0 ? r : set_identity(request, environment);
}

/* Texts of a plan that are made for it. */
struct texts {
        char identifier[WORKER_ID_MAX], marker[MARKER_MAX], shim_path[PATH_MAX], shim_value[PATH_MAX + 32];
};

static void add_shim(struct launch_plan *plan, const struct shim *shim, const char *folder,
                     struct texts *texts)
{
        snprintf(texts->shim_path, sizeof(texts->shim_path), "%s/%s", folder, shim->file);
        snprintf(texts->shim_value, sizeof(texts->shim_value), "%s%s", shim->option ?: "", texts->shim_path);
        if (!shim->option)
                *strrchr(texts->shim_value, '/') = '\0';
        plan->shim_path = texts->shim_path;
        plan->shim_value = texts->shim_value;
        plan->shim_variable = (char *)shim->variable;
        plan->shim_separator = shim->separator;
}

/* The plan borrows from request and texts. */
static struct launch_plan make_plan(const struct launch_request *request, struct texts *texts)
{
        const struct fleet_settings *fleet = request->fleet;
        const struct ledger_file *ledger = request->ledger;
        struct launch_plan plan = {
                .kind = request->kind,
                .fleet = *fleet,
                .journal_required = fleet->log,
                .nofile = request->nofile,
                .identifier = texts->identifier,
                .supervised = ledger,
                .parent = getpid(),
                .ledger_inode = ledger ? ledger->inode : 0,
                .ledger_path = ledger && !ledger_file_is_lost(ledger) ? ledger->path : NULL,
                .after_timeout = request->end ? request->end->timeout : 0,
                .status_parent = (char *)request->status_parent,
                .release = (char *)request->release,
                .outcomes_script =
                        fleet_settings_load_outcomes(fleet) ? (char *)request->outcomes_script : NULL,
                .redis_url = fleet->traits->url_variable ? NULL : (char *)request->redis_url,
                .template_script = (char *)request->template_script,
        };

        plan.fleet.log = (char *)log_of_workers(fleet->log);
        if (request->kind == LAUNCH_TEMPLATE)
                snprintf(texts->identifier, sizeof(texts->identifier), "%s/template", fleet->name);
        else
                worker_id(fleet->name, request->index, texts->identifier);
        if (fleet->traits->shim && request->shims)
                add_shim(&plan, fleet->traits->shim, request->shims, texts);
        return plan;
}

int launch_start(const struct launch_request *request, struct launched *ret)
{
        _cleanup_environment_ struct environment environment = {0};
        _cleanup_launch_job_ struct launch_job *job = NULL;
        struct texts texts;
        struct launch_plan plan = make_plan(request, &texts);
        int pair[2];

        if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
                return -errno;
        _cleanup_close_ int parent_end = pair[0];
        _cleanup_close_ int child_end = pair[1];

        int r = build_environment(request, &plan, &environment);
        if (r == 0 && !launch_plan_needs_program(&plan)) {
                launch_plan_compare_redis(&plan, &environment, child_end);
                r = launch_plan_add_scripts(&plan, &environment, child_end);
        }
        plan.environment = environment.list;
        if (plan.kind == LAUNCH_WORKER)
                plan.marker = marker_name(&environment, texts.marker);
        if (r == 0)
                r = launch_job_new(&plan, &job);
        if (r < 0)
                return r;
        job->claim = request->claim;
        job->ledger = request->ledger;
        job->report_fd = child_end;
        job->template_fd = request->kind == LAUNCH_TEMPLATE ? request->template_fd : -1;
        pid_t pid = launcher_start(TAKE_PTR(job));
        if (pid < 0)
                return pid;
        *ret = (struct launched){.pid = pid, .report_fd = TAKE_FD(parent_end)};
        return 0;
}

int launch_report_read(int report_fd, struct launch_report *report)
{
        while (report->outcome == LAUNCH_PENDING) {
                struct launch_message message;
                _cleanup_close_ int fd = -1;

                ssize_t n = fd_receive(report_fd, &message, sizeof(message), &fd, MSG_DONTWAIT);
                if (n == -EAGAIN)
                        return 0;
                if (n < 0)
                        return (int)n;
                if (n == 0) {
                        report->outcome = LAUNCH_RUNNING;
                } else if (n != sizeof(message)) {
                        return -EBADMSG;
                } else if (message.kind == LAUNCH_MESSAGE_LOG && fd >= 0 && report->log_fd < 0) {
                        report->log_fd = TAKE_FD(fd);
                        report->log_start_bytes = message.log_start_bytes;
                } else if (message.kind == LAUNCH_MESSAGE_REDIS &&
                           message.redis_difference < _REDIS_DIFFERENCE_MAX) {
                        report->redis = (struct redis_comparison){
                                .difference = (enum redis_difference)message.redis_difference,
                                .db = message.redis_db,
                                .other_db = message.redis_other_db,
                        };
                } else if (message.kind == LAUNCH_MESSAGE_SHIM) {
                        report->shim_error = (int)message.shim_error;
                } else if (message.kind == LAUNCH_MESSAGE_ERROR) {
                        message.text[sizeof(message.text) - 1] = '\0';
                        report->error = malloc(sizeof(*report->error));
                        if (report->error)
                                quoted_set(report->error, message.text);
                        report->outcome = LAUNCH_FAILED;
                }
        }
        return 0;
}

void launch_report_clear(struct launch_report *report)
{
        close_fd(report->log_fd);
        free(report->error);
        *report = LAUNCH_REPORT_INIT;
}

int launch_rehearse(const struct launch_request *request, usec_t timeout, struct launch_report *report)
{
        struct launch_request rehearsal = *request;
        usec_t deadline = usec_add(clock_now(CLOCK_MONOTONIC), timeout);
        struct launched launched = {.report_fd = -1};

        rehearsal.kind = LAUNCH_REHEARSAL;
        int r = launch_start(&rehearsal, &launched);
        if (r < 0)
                return r;
        while (r >= 0 && report->outcome == LAUNCH_PENDING) {
                struct pollfd wait = {.fd = launched.report_fd, .events = POLLIN};
                usec_t left = usec_sub(deadline, clock_now(CLOCK_MONOTONIC));

                if (left == 0)
                        break;
                if (poll(&wait, 1, (int)MIN(left / USEC_PER_MSEC + 1, (usec_t)INT_MAX)) < 0 && errno != EINTR)
                        r = -errno;
                else
                        r = launch_report_read(launched.report_fd, report);
        }
        close_fd(launched.report_fd);
        (void)kill(launched.pid, SIGKILL);
        /* A child that hangs in a file system cannot be reaped now. */
        (void)waitpid(launched.pid, NULL, report->outcome == LAUNCH_PENDING ? WNOHANG : 0);
        return r;
}

int launch_raise_nofile(struct rlimit *ret)
{
        struct rlimit before;

        if (getrlimit(RLIMIT_NOFILE, &before) < 0)
                return -errno;
        struct rlimit raised = {.rlim_cur = before.rlim_max, .rlim_max = before.rlim_max};
        if (setrlimit(RLIMIT_NOFILE, &raised) < 0)
                return -errno;
        *ret = before;
        return 0;
}
