/* SPDX-License-Identifier: MIT */
/* Registers autoscaling as a subsystem of the daemon, and shows it in status, metrics and doctor. */
#include "autoscaling/autoscaling.h"
#include "advice/problem.h"
#include "autoscaling/autoscale_rules.h"
#include "autoscaling/foreign_consumers.h"
#include "autoscaling/scaler.h"
#include "autoscaling/trouble_rules.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/subsystem.h"
#include "model/fleet.h"
#include "model/world.h"
#include "wire/metrics.h"
#include "wire/varlink.h"
#include <stdio.h>
#include <string.h>

static json_t *arithmetic(const struct fleet *fleet)
{
        _cleanup_json_ json_t *lines = json_array();
        char text[AUTOSCALE_TEXT_MAX];

        for (size_t i = 0; autoscale_line(fleet, i, text); i++)
                if (json_array_append_new(lines, varlink_text(text)) < 0)
                        return NULL;
        return TAKE_PTR(lines);
}

static int scaling_status(const void *self _unused_, const struct fleet *fleet, json_t *object)
{
        const struct fleet_settings *settings = fleet->settings;
        char because[AUTOSCALE_TEXT_MAX];

        if (!fleet_scales(fleet))
                return 0;
        json_t *scaling = json_pack(
                "{s:I, s:I, s:I, s:b, s:o, s:o}", "min", (json_int_t)settings->active_process_count, "max",
                (json_int_t)settings->active_process_max, "wanted", (json_int_t)autoscale_wanted(fleet),
                "automatic", (int)(fleet->scale == 0), "because",
                varlink_text(autoscale_text(fleet, because)), "arithmetic", arithmetic(fleet));

        return json_object_set_new(object, "scaling", scaling) < 0 ? -ENOMEM : 0;
}

/* The value functions return the value of a sample; below 0: the fleet has no such sample. */
static double value_max(const struct fleet *fleet)
{
        return fleet->settings->active_process_max;
}

static double value_wanted(const struct fleet *fleet)
{
        return autoscale_wanted(fleet);
}

static double value_automatic(const struct fleet *fleet)
{
        return fleet->scale == 0;
}

static bool has_verdict(const struct fleet *fleet)
{
        return autoscale_of(fleet)->read_at != 0 && autoscale_of(fleet)->verdict.cause != SCALING_HELD;
}

static double value_need(const struct fleet *fleet)
{
        return has_verdict(fleet) ? autoscale_of(fleet)->verdict.need : -1;
}

static double value_oldest(const struct fleet *fleet)
{
        const struct scaling_verdict *verdict = &autoscale_of(fleet)->verdict;

        return has_verdict(fleet) && verdict->target > 0 ? (double)verdict->age / (double)verdict->target
                                                         : -1;
}

static void scaling_metrics(const void *self _unused_, const struct world *world, struct metrics *metrics)
{
        static const struct {
                const char *name, *help;
                double (*value)(const struct fleet *fleet);
        } families[] = {
                {"sqmgr_fleet_scaling_max_workers",
                 "Number of workers that the settings allow; like the other metrics of scaling, only for "
                 "autoscaled fleets.",
                 value_max},
                {"sqmgr_fleet_scaling_wanted_workers", "Number of workers that the queues need.",
                 value_wanted},
                {"sqmgr_fleet_scaling_automatic",
                 "1 if autoscaling sets the count, 0 if an operator has ordered one.", value_automatic},
                {"sqmgr_fleet_scaling_need_threads",
                 "Number of threads needed for running and waiting jobs; only if known.", value_need},
                {"sqmgr_fleet_scaling_oldest_ratio",
                 "Waiting time of the oldest job divided by its target, of the queue where that is the "
                 "greatest; only if known.",
                 value_oldest},
        };

        for (size_t i = 0; i < ELEMENTSOF(families); i++) {
                metrics_family(metrics, families[i].name, "gauge", families[i].help);
                WORLD_FOREACH_FLEET(world, fleet) {
                        double value = fleet_scales(fleet) ? families[i].value(fleet) : -1;

                        if (value >= 0)
                                METRICS_SAMPLE(metrics, value, "fleet", fleet->settings->name);
                }
        }
}

static void scaling_diagnose(const void *self _unused_, const struct fleet *fleet, struct problems *findings)
{
        char about[PROBLEM_ABOUT_MAX];

        if (!fleet_scales(fleet) || fleet->settings->traits->records_workers)
                return;
        problem_about(&(struct problem){.fleet = fleet}, about);
        problems_note(findings, PROBLEM_OK, about, NULL,
                      "scales as if this host alone served its queues, up to active_process_max = %u: "
                      "%s does not show the workers of other hosts",
                      fleet->settings->active_process_max, fleet->settings->traits->title);
}

struct queue_servers {
        const struct foreign_consumers *foreign;
        usec_t now;
};

static bool foreign_serve(const char *queue, void *userdata)
{
        const struct queue_servers *queue_servers = userdata;
        struct foreign_count count = {0};
        char names[512] = "";

        /* The list ends with two NULs. */
        if (strlen(queue) > sizeof(names) - 2)
                return true;
        snprintf(names, sizeof(names) - 1, "%s", queue);
        return !foreign_consumers_count(queue_servers->foreign, names, queue_servers->now, &count) ||
               count.serving > 0;
}

static void scaling_diagnose_link(const void *self _unused_, const struct link *link,
                                  struct problems *findings, usec_t now)
{
        const struct scaled_link *scaled = scaled_link_of(link);
        struct queue_servers queue_servers = {scaled ? scaled->foreign : NULL, now};

        if (link->queues && queue_servers.foreign)
                doctor_queues(findings, &(struct doctor_queues){
                                                .world = link->links->world,
                                                .link = link,
                                                .queues = link->queues,
                                                .foreign_serve = foreign_serve,
                                                .userdata = &queue_servers,
                                        });
}

const struct subsystem autoscaling_subsystem = {
        .name = "autoscaling",
        .begin = scaler_begin,
        .join = scaler_join,
        .poll = scaler_poll,
        .observe = scaler_observe,
        .metrics = scaling_metrics,
        .problems = autoscale_problems,
        .diagnose = scaling_diagnose,
        .diagnose_link = scaling_diagnose_link,
        .status = scaling_status,
        .pack = scaler_pack,
        .unpack = scaler_unpack,
        .end = scaler_end,
};
