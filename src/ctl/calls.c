/* SPDX-License-Identifier: MIT */
/* Commands of one call each: the method, its parameters, and how the reply is shown; `ping` and `why`. */
#include "base/memstream.h"
#include "base/text.h"
#include "ctl/ctl.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "wire/reply.h"

/* In the output of `doctor` the text begins after the level. */
#define TEXT_INDENT 9

struct call_row {
        const char *command, *method;
        json_t *(*parameters)(const struct ctl *ctl); /* NULL: no parameters */
        void (*show)(const struct ctl *ctl, json_t *reply);
        /* Instead of show, if the exit code depends on the reply. Prints nothing with --json. */
        int (*judge)(const struct ctl *ctl, json_t *reply);
};

static json_t *fleets_parameter(const struct ctl *ctl)
{
        return json_pack("{s:o}", "fleets", client_fleets(ctl));
}

static json_t *fleet_parameter(const struct ctl *ctl)
{
        return json_pack("{s:s}", "fleet", ctl->arguments[0]);
}

static void show_aborted(const struct ctl *ctl _unused_, json_t *reply)
{
        json_t *names = json_object_get(reply, "aborted"), *name;
        json_t *acknowledged = json_object_get(reply, "acknowledged");

        json_foreach(name, names)
                output_line("%s: restart aborted; remaining old workers keep running",
                            json_string_value(name));
        json_foreach(name, acknowledged)
                output_line("%s: halted restart acknowledged; workers stay as they are",
                            json_string_value(name));
        if (json_array_size(names) == 0 && json_array_size(acknowledged) == 0)
                output_line("no restart in progress");
}

static json_t *quiet_parameters(const struct ctl *ctl)
{
        return json_pack("{s:s}", "target", ctl->arguments[0]);
}

/* Returns true if the order does not change the target now, after printing that. */
static bool show_delay(const char *target, json_t *reply)
{
        bool leaving = reply_is_true(reply, "leaving"), kept = reply_is_true(reply, "kept"),
             waits = reply_is_true(reply, "waits");

        if (leaving)
                output_line("%s: already quiet or stopping", target);
        else if (kept)
                output_line("%s: order recorded; it is carried out once a heartbeat is found, or title and "
                            "job threads show that the worker is idle. To stop the worker now, run 'sqmgrctl "
                            "stop %s --force'",
                            target, target);
        else if (waits)
                output_line("%s: order recorded; it is carried out once a heartbeat is found", target);
        return leaving || kept || waits;
}

static void show_quieted(const struct ctl *ctl, json_t *reply)
{
        const char *target = ctl->arguments[0];
        bool exits = reply_is_true(reply, "exits");

        if (show_delay(target, reply))
                return;
        if (strchr(target, '/'))
                output_line("%s: %s; a new worker replaces it", target, exits ? "asked to exit" : "quieted");
        else
                output_line("%s: %s. To accept jobs again, run 'sqmgrctl start %s'", target,
                            exits ? "workers asked to exit; none is started" : "quieted", target);
}

static json_t *stop_parameters(const struct ctl *ctl)
{
        return json_pack("{s:s, s:b}", "fleet", ctl->arguments[0], "force", (int)ctl_has(ctl, OPTION_FORCE));
}

static void show_stopped(const struct ctl *ctl, json_t *reply)
{
        bool worker = strchr(ctl->arguments[0], '/');

        if (worker && show_delay(ctl->arguments[0], reply))
                return;
        if (worker)
                output_line("%s: %s; a new worker replaces it", ctl->arguments[0],
                            ctl_has(ctl, OPTION_FORCE) ? "stopping now, without waiting for its jobs"
                                                       : "stopping once its jobs are done");
        else
                output_line("%s: %s", ctl->arguments[0],
                            ctl_has(ctl, OPTION_FORCE) ? "stopping now, without waiting for running jobs"
                                                       : "stopping, each worker once its jobs are done");
}

static void show_started(const struct ctl *ctl, json_t *reply _unused_)
{
        output_line("%s: starting", ctl->arguments[0]);
}

static bool is_auto(const struct ctl *ctl)
{
        return strcmp(ctl->arguments[1], "auto") == 0;
}

/* ctl_scale() has validated the count. */
static long long count_of(const struct ctl *ctl)
{
        return strtoll(ctl->arguments[1], NULL, 10);
}

static json_t *scale_parameters(const struct ctl *ctl)
{
        const char *fleet = ctl->arguments[0];

        return is_auto(ctl) ? json_pack("{s:s, s:b}", "fleet", fleet, "auto", 1)
                            : json_pack("{s:s, s:I}", "fleet", fleet, "count", count_of(ctl));
}

static void show_scaled(const struct ctl *ctl, json_t *reply _unused_)
{
        if (is_auto(ctl))
                output_line("%s: the count follows the queues", ctl->arguments[0]);
        else
                output_line("%s: scaling to %lld", ctl->arguments[0], count_of(ctl));
}

static void show_reloaded(const struct ctl *ctl _unused_, json_t *reply)
{
        json_t *changes = json_object_get(reply, "changes"), *line;

        json_foreach(line, changes)
                output_line("%s", json_string_value(line));
        if (json_array_size(changes) == 0)
                output_line("reloaded; nothing changed");
}

static void show_reexec(const struct ctl *ctl _unused_, json_t *reply)
{
        output_line("sqmgr %s has taken over (pid %lld)", reply_string(reply, "version"),
                    reply_integer(reply, "pid"));
}

static void show_metrics(const struct ctl *ctl _unused_, json_t *reply)
{
        fputs(reply_string(reply, "text"), stdout);
}

static void show_answer(const struct ctl *ctl _unused_, json_t *reply _unused_)
{
        output_line("sqmgr answers");
}

static void show_version(const struct ctl *ctl _unused_, json_t *reply)
{
        output_line("sqmgr %s", reply_string(reply, "version"));
}

static void print_finding(json_t *finding, const struct view *view)
{
        const char *level = reply_string(finding, "level"), *remedy = reply_string(finding, "remedy");
        const char *begin = strcmp(level, "problem") == 0   ? "\033[31m"
                            : strcmp(level, "warning") == 0 ? "\033[33m"
                                                            : "\033[32m";

        char quoting[REPLY_QUOTING_MAX];
        _cleanup_free_ char *text = NULL;

        reply_quoting(finding, reply_string(finding, "text"), quoting);
        if (asprintf(&text, "%s: %s%s%s", reply_string(finding, "about"), quoting,
                     remedy[0] == '\0'                            ? ""
                     : view->columns > 0 || strchr(quoting, '\n') ? "\nremedy: "
                                                                  : ". ",
                     remedy) < 0)
                text = NULL;
        printf("%s%-*s%s", view->colour ? begin : "", TEXT_INDENT, level, view->colour ? "\033[0m" : "");
        text_print_wrapped(stdout, text ?: reply_string(finding, "text"), TEXT_INDENT, TEXT_INDENT,
                           view->columns);
}

static int judge_findings(const struct ctl *ctl, json_t *reply)
{
        struct view view = screen_view();
        int r = CTL_DONE;
        json_t *finding;

        json_foreach_in(finding, reply, "findings") {
                if (reply_is(finding, "level", "problem"))
                        r = CTL_FAILED;
                if (!ctl_has(ctl, OPTION_JSON))
                        print_finding(finding, &view);
        }
        return r;
}

static int judge_jobs(const struct ctl *ctl, json_t *reply)
{
        json_t *jobs = json_object_get(reply, "jobs"), *errors = json_object_get(reply, "errors"), *error;
        char quoting[REPLY_QUOTING_MAX];
        struct view view = screen_view();
        int r = CTL_DONE;

        if (ctl_has(ctl, OPTION_JSON))
                return json_array_size(errors) > 0 ? CTL_FAILED : CTL_DONE;
        if (json_array_size(jobs) > 0 && job_table_print(stdout, jobs, time(NULL), &view) < 0)
                r = output_error(CTL_FAILED, "not enough memory");
        if (json_array_size(jobs) == 0 && json_array_size(errors) == 0)
                printf("no running jobs known\n");
        json_foreach(error, errors)
                r = output_error(CTL_FAILED, "%s", reply_quoting(reply, json_string_value(error), quoting));
        return r;
}

static const char *latency_text(json_t *queue, char text[FORMAT_MAX])
{
        if (!json_is_number(json_object_get(queue, "latency_seconds")))
                return "?";
        return format_duration(reply_usec(queue, "latency_seconds"), text, FORMAT_MAX);
}

static bool was_read(json_t *redis)
{
        return !json_is_string(json_object_get(redis, "error"));
}

static void print_redis(json_t *redis)
{
        json_t *queues = json_object_get(redis, "queues"), *queue;
        char quoting[REPLY_QUOTING_MAX];
        int width = (int)strlen("QUEUE");

        if (!was_read(redis)) {
                output_line("%s: cannot read queues: %s", reply_string(redis, "url"),
                            reply_quoting(redis, reply_string(redis, "error"), quoting));
                return;
        }
        output_line("%s: %lld retries, %lld scheduled, %lld dead", reply_string(redis, "url"),
                    reply_integer(redis, "retry"), reply_integer(redis, "schedule"),
                    reply_integer(redis, "dead"));
        if (json_array_size(queues) == 0) {
                printf("  no queues\n");
                return;
        }
        json_foreach(queue, queues)
                width = MAX(width, text_width(reply_string(queue, "name")));
        printf("  %-*s  %9s  %9s\n", width, "QUEUE", "SIZE", "LATENCY");
        json_foreach(queue, queues) {
                char latency[FORMAT_MAX];

                fputs("  ", stdout);
                text_print_cell(stdout, reply_string(queue, "name"), width);
                printf("  %9lld  %9s%s\n", reply_integer(queue, "size"), latency_text(queue, latency),
                       reply_is_true(queue, "paused") ? "  paused" : "");
        }
        if (reply_integer(redis, "queues_left_out") > 0)
                printf("  %lld more queues are not read\n", reply_integer(redis, "queues_left_out"));
}

static int judge_queues(const struct ctl *ctl, json_t *reply)
{
        int r = CTL_DONE;
        json_t *redis;

        json_foreach_in(redis, reply, "redis") {
                if (!ctl_has(ctl, OPTION_JSON))
                        print_redis(redis);
                if (!was_read(redis))
                        r = CTL_FAILED;
        }
        return r;
}

static const struct call_row calls[] = {
        {"abort", "Abort", fleets_parameter, show_aborted, NULL},
        {"doctor", "GetDiagnosis", NULL, NULL, judge_findings},
        {"jobs", "GetJobs", fleets_parameter, NULL, judge_jobs},
        {"metrics", "GetMetrics", NULL, show_metrics, NULL},
        {"ping", "Ping", NULL, show_answer, NULL},
        {"queues", "GetQueues", NULL, NULL, judge_queues},
        {"quiet", "Quiet", quiet_parameters, show_quieted, NULL},
        {"reexec", "Reexec", NULL, show_reexec, NULL},
        {"reload", "Reload", NULL, show_reloaded, NULL},
        {"scale", "Scale", scale_parameters, show_scaled, NULL},
        {"start", "Start", fleet_parameter, show_started, NULL},
        {"stop", "Stop", stop_parameters, show_stopped, NULL},
        {"version", "GetVersion", NULL, show_version, NULL},
};

int ctl_call(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        const struct call_row *call = calls;

        while (strcmp(call->command, ctl->command->name) != 0)
                call++;
        int r = client_call(ctl, call->method, call->parameters ? call->parameters(ctl) : json_object(),
                            &reply);
        if (r != CTL_DONE)
                return r;
        if (ctl_has(ctl, OPTION_JSON))
                output_print_json(reply);
        else if (call->show)
                call->show(ctl, reply);
        return call->judge ? call->judge(ctl, reply) : CTL_DONE;
}

int ctl_scale(struct ctl *ctl)
{
        uint64_t count;

        if (!is_auto(ctl) && parse_unsigned(ctl->arguments[1], 0, UINT32_MAX, &count) < 0)
                return output_error(CTL_USAGE, "'%s' is not a count of workers: give a whole number, or auto",
                                    ctl->arguments[1]);
        return ctl_call(ctl);
}

static int report_lacks(json_t *lacks)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        json_t *sentence;
        FILE *out = open_memstream(&text, &size);

        /* -fanalyzer: skip the loop if open_memstream() failed. */
        json_foreach(sentence, out ? lacks : NULL)
                fprintf(out, "%s%s", sentence == json_array_get(lacks, 0) ? "" : ". ",
                        json_string_value(sentence));
        if (memstream_close(out, &text) < 0)
                return output_error(CTL_FAILED, "not enough memory");
        return output_error_as("not-ready", CTL_FAILED, "not ready: %s", text);
}

static int ask_ready(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL, *lacks = NULL;
        int r = client_call(ctl, "GetStatus", json_object(), &reply);

        if (r != CTL_DONE)
                return r;
        lacks = reply_lacks(reply);
        if (!lacks)
                return output_error(CTL_FAILED, "not enough memory");
        if (json_array_size(lacks) > 0)
                return report_lacks(lacks);
        if (ctl_has(ctl, OPTION_JSON))
                return output_json_new(json_pack("{s:b}", "ready", 1));
        output_line("sqmgr is ready: each running fleet has its workers");
        return CTL_DONE;
}

int ctl_ping(struct ctl *ctl)
{
        return ctl_has(ctl, OPTION_READY) ? ask_ready(ctl) : ctl_call(ctl);
}

/* Prints only the fleet's events; each worker has its own report. */
static void print_events(json_t *events, const struct view *view)
{
        json_t *event;

        json_foreach(event, events)
                if (reply_string(event, "worker")[0] == '\0')
                        render_event(stdout, event, view);
}

static void print_scaling(json_t *fleet, const struct view *view)
{
        json_t *scaling = json_object_get(fleet, "scaling"), *line;
        char text[REPLY_SCALING_MAX];

        if (!json_is_object(scaling)) {
                text_print_wrapped(stdout,
                                   "The count does not follow the queues: active_process_max is not set", 0,
                                   2, view->columns);
                return;
        }
        reply_scaling(scaling, text);
        text_print_wrapped(stdout, text, 0, 2, view->columns);
        json_foreach_in(line, scaling, "arithmetic") {
                fputs("  ", stdout);
                text_print_wrapped(stdout, json_string_value(line) ?: "", 2, 4, view->columns);
        }
}

static int report_fleet(const struct ctl *ctl, json_t *fleet, json_t *events)
{
        struct view view = screen_view();

        if (ctl_has(ctl, OPTION_JSON))
                return output_json_new(json_pack("{s:O, s:O}", "fleet", fleet, "events", events));
        _cleanup_free_ char *summary = render_fleet_summary(fleet);
        if (!summary)
                return output_error(CTL_FAILED, "not enough memory");
        print_events(events, &view);
        text_print_wrapped(stdout, summary, 0, 2, view.columns);
        print_scaling(fleet, &view);
        return CTL_DONE;
}

static int report_worker(const struct ctl *ctl, const char *id, json_t *status, json_t *events)
{
        struct worker_report worker_report;
        struct view view = screen_view();
        int r = CTL_DONE;

        if (worker_report_find(&worker_report, id, status, events) < 0)
                r = output_error(CTL_FAILED, "not enough memory");
        else if (ctl_has(ctl, OPTION_JSON))
                r = output_json_new(json_pack("{s:O?, s:O}", "worker", worker_report.worker, "events",
                                              worker_report.events));
        else
                worker_report_print(stdout, &worker_report, &view);
        json_decref(worker_report.events);
        return r;
}

int ctl_why(struct ctl *ctl)
{
        _cleanup_json_ json_t *own = NULL, *reply = NULL, *status = NULL;
        const char *id = ctl->arguments[0];
        bool worker = strchr(id, '/');
        int r = CTL_DONE;

        /* The report needs the events of the fleet and of sqmgr, too. This call shows whether sqmgr knows the
         * worker. */
        if (worker)
                r = client_call(ctl, "GetEvents", json_pack("{s:s}", "worker", id), &own);
        client_close(ctl);
        if (r == CTL_DONE)
                r = client_call(ctl, "GetEvents", worker ? json_object() : json_pack("{s:[s]}", "fleets", id),
                                &reply);
        client_close(ctl);
        if (r == CTL_DONE)
                r = client_call(ctl, "GetStatus", worker ? json_object() : json_pack("{s:[s]}", "fleets", id),
                                &status);
        if (r != CTL_DONE)
                return r;
        json_t *events = json_object_get(reply, "events");
        return worker ? report_worker(ctl, id, status, events)
                      : report_fleet(ctl, json_array_get(json_object_get(status, "fleets"), 0), events);
}
