/* SPDX-License-Identifier: MIT */
/* The command `why`: the story and state of one worker, or a fleet and the reason for its number of
 * workers. */
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "ctl/worker_report.h"
#include "wire/reply.h"
#include <stdio.h>
#include <string.h>

static int print_json(json_t *json)
{
        if (!json)
                return output_error(CTL_FAILED, "not enough memory");
        output_print_json(json);
        json_decref(json);
        return CTL_DONE;
}

static int report_unknown(const struct worker_report *worker_report)
{
        _cleanup_json_ json_t *ids = json_array(), *fleets = json_array();
        size_t length = (size_t)(strrchr(worker_report->id, '/') - worker_report->id);
        json_t *fleet, *worker;
        bool known = false;

        json_foreach_in(fleet, worker_report->status, "fleets") {
                const char *name = reply_string(fleet, "name");

                json_array_append(fleets, json_object_get(fleet, "name"));
                if (strlen(name) != length || strncmp(name, worker_report->id, length) != 0)
                        continue;
                known = true;
                json_foreach_in(worker, fleet, "workers")
                        json_array_append(ids, json_object_get(worker, "id"));
        }
        if (!known)
                return output_error_as("unknown-fleet", CTL_USAGE, "unknown fleet '%.*s'; %s", (int)length,
                                       worker_report->id, output_names(fleets));
        return output_error_as("unknown-worker", CTL_USAGE, "unknown worker '%s'; %s", worker_report->id,
                               output_names(ids));
}

static int report_worker(const struct ctl *ctl, const struct worker_report *worker_report)
{
        struct view view = screen_view();

        if (!worker_report->worker && worker_report->n_own == 0)
                return report_unknown(worker_report);
        if (ctl->json)
                return print_json(json_pack("{s:O?, s:O}", "worker", worker_report->worker, "events",
                                            worker_report->events));
        worker_report_print(stdout, worker_report, &view);
        return CTL_DONE;
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

        if (ctl->json)
                return print_json(json_pack("{s:O, s:O}", "fleet", fleet, "events", events));
        _cleanup_free_ char *summary = render_fleet_summary(fleet);
        if (!summary)
                return output_error(CTL_FAILED, "not enough memory");
        print_events(events, &view);
        text_print_wrapped(stdout, summary, 0, 2, view.columns);
        print_scaling(fleet, &view);
        return CTL_DONE;
}

int ctl_why(struct ctl *ctl)
{
        _cleanup_json_ json_t *status = NULL, *reply = NULL;
        const char *id = ctl->arguments[0];
        bool worker = strchr(id, '/');
        struct worker_report worker_report;

        int r = client_call(ctl, "GetEvents", worker ? json_object() : json_pack("{s:[s]}", "fleets", id),
                            &reply);
        client_close(ctl);
        if (r == CTL_DONE)
                r = client_call(ctl, "GetStatus", worker ? json_object() : json_pack("{s:[s]}", "fleets", id),
                                &status);
        if (r != CTL_DONE)
                return r;
        json_t *events = json_object_get(reply, "events");
        if (!worker)
                return report_fleet(ctl, json_array_get(json_object_get(status, "fleets"), 0), events);
        if (worker_report_find(&worker_report, id, status, events) < 0)
                r = output_error(CTL_FAILED, "not enough memory");
        else
                r = report_worker(ctl, &worker_report);
        json_decref(worker_report.events);
        return r;
}
