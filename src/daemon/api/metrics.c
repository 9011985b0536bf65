/* SPDX-License-Identifier: MIT */
/* Renders the model as text for Prometheus. */
#include "daemon/api/metrics.h"
#include "advice/growth.h"
#include "base/printable.h"
#include "daemon/run/subsystem.h"
#include "decide/pass.h"
#include "model/counts.h"
#include "model/idle_proof.h"
#include "model/names.h"
#include "model/preload.h"
#include "model/queues.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include "wire/withhold.h"
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct metrics {
        FILE *out;
        const struct world *world;
        const struct subsystems *subsystems;
        const struct fleet_counts *counts; /* of each fleet */
        usec_t now;
};

#define SAMPLE METRICS_SAMPLE

const struct world *metrics_world(const struct metrics *metrics)
{
        return metrics->world;
}

void metrics_family(const struct metrics *metrics, const char *name, const char *type, const char *help)
{
        fprintf(metrics->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}

static void put_label(FILE *out, const char *name, const char *text)
{
        _cleanup_free_ char *copy = strdup(text);
        const char *value = copy ? copy : "";

        /* A path may be anything; Prometheus takes UTF-8 alone. */
        if (copy)
                printable_replace(copy, strlen(copy), true);
        fprintf(out, "%s=\"", name);
        for (; *value != '\0'; value++) {
                if (*value == '\\' || *value == '"')
                        fputc('\\', out);
                if (*value == '\n')
                        fputs("\\n", out);
                else
                        fputc(*value, out);
        }
        fputc('"', out);
}

void metrics_sample(const struct metrics *metrics, const char *name, double value, const char *const *labels)
{
        const char *separator = "{";

        fputs(name, metrics->out);
        for (; *labels; labels += 2) {
                fputs(separator, metrics->out);
                put_label(metrics->out, labels[0], labels[1]);
                separator = ",";
        }
        fprintf(metrics->out, "%s %.15g\n", strcmp(separator, ",") == 0 ? "}" : "", value);
}

static double seconds(usec_t usec)
{
        return (double)usec / (double)USEC_PER_SEC;
}

static void put_self(const struct metrics *metrics, const struct status_info *info,
                     const struct tick_totals *ticks)
{
        metrics_family(metrics, "sqmgr_info", "gauge", "The version that runs.");
        SAMPLE(metrics, "sqmgr_info", 1, "version", info->version, NULL);
        metrics_family(metrics, "sqmgr_uptime_seconds", "gauge",
                       "Time since sqmgr started; counters began then.");
        SAMPLE(metrics, "sqmgr_uptime_seconds", seconds(usec_sub(metrics->now, info->started_at)), NULL);
        metrics_family(metrics, "sqmgr_tick_duration_seconds", "summary",
                       "How long a pass of observing, planning and executing takes.");
        SAMPLE(metrics, "sqmgr_tick_duration_seconds_sum", seconds(ticks->usec), NULL);
        SAMPLE(metrics, "sqmgr_tick_duration_seconds_count", (double)ticks->n, NULL);
        metrics_family(metrics, "sqmgr_config_last_reload_successful", "gauge",
                       "1 where the settings that were read last are in force.");
        SAMPLE(metrics, "sqmgr_config_last_reload_successful", !info->settings->refused, NULL);
        metrics_family(metrics, "sqmgr_config_last_reload_success_timestamp_seconds", "gauge",
                       "When the settings in force were read, since 1970.");
        SAMPLE(metrics, "sqmgr_config_last_reload_success_timestamp_seconds",
               seconds(info->settings->loaded_at), NULL);
        if (metrics->world->settings->pressure_limit > 0) {
                metrics_family(
                        metrics, "sqmgr_memory_pressure", "gauge",
                        "1 while memory is short by pressure_limit; only where there is such a limit.");
                SAMPLE(metrics, "sqmgr_memory_pressure", relief_holds(metrics->world), NULL);
        }
        if (metrics->world->available_bytes == 0)
                return;
        metrics_family(metrics, "sqmgr_available_memory_bytes", "gauge",
                       "Memory available to further processes.");
        SAMPLE(metrics, "sqmgr_available_memory_bytes", (double)metrics->world->available_bytes, NULL);
}

/* Fleets that log in to one Redis as different users have a connection each, and one URL is told of them. */
static bool is_repeated(const struct status_info *info, size_t i)
{
        for (size_t j = 0; j < i; j++)
                if (strcmp(info->redis[j].url, info->redis[i].url) == 0)
                        return true;
        return false;
}

static bool all_up(const struct status_info *info, const char *url)
{
        for (size_t i = 0; i < info->n_redis; i++)
                if (strcmp(info->redis[i].url, url) == 0 && strcmp(info->redis[i].state, "connected") != 0)
                        return false;
        return true;
}

static void put_redis(const struct metrics *metrics, const struct status_info *info)
{
        metrics_family(metrics, "sqmgr_redis_up", "gauge", "Whether the connection to this Redis is up.");
        for (size_t i = 0; i < info->n_redis; i++)
                if (!is_repeated(info, i))
                        SAMPLE(metrics, "sqmgr_redis_up", all_up(info, info->redis[i].url), "url",
                               info->redis[i].url, NULL);
        metrics_family(metrics, "sqmgr_redis_round_trip_seconds", "gauge", "How long its last answer took.");
        for (size_t i = 0; i < info->n_redis; i++)
                if (info->redis[i].rtt_ms >= 0 && !is_repeated(info, i))
                        SAMPLE(metrics, "sqmgr_redis_round_trip_seconds", info->redis[i].rtt_ms / 1000, "url",
                               info->redis[i].url, NULL);
}

/* Names that are no text could look alike once they are made one, and of two samples with the same labels
 * Prometheus refuses all. Where one that is hostile holds a phrase of wire/withhold.h, the text would end
 * there for those who may only look. */
static bool is_label(const char *name)
{
        _cleanup_free_ char *copy = strdup(name);

        if (!copy)
                return false;
        printable_replace(copy, strlen(copy), true);
        return strcmp(copy, name) == 0 && !withhold_finds(name);
}

static void put_queue(const struct metrics *metrics, const char *name, double value, const char *url,
                      const struct queue *queue)
{
        if (is_label(queue->name))
                SAMPLE(metrics, name, value, "url", url, "queue", queue->name, NULL);
}

/* NULL: they are not read, or told already: one user may be forbidden what another one may read. */
static const struct queues *queues_of(const struct status_info *info, size_t i)
{
        for (size_t j = 0; j < i; j++)
                if (info->redis[j].queues && strcmp(info->redis[j].url, info->redis[i].url) == 0)
                        return NULL;
        return info->redis[i].queues;
}

static void put_queues(const struct metrics *metrics, const struct status_info *info)
{
        const struct queues *queues;

        metrics_family(metrics, "sqmgr_queue_jobs", "gauge", "Jobs that wait in the queue.");
        for (size_t i = 0; i < info->n_redis; i++)
                for (size_t j = 0; (queues = queues_of(info, i)) && j < queues->n; j++)
                        put_queue(metrics, "sqmgr_queue_jobs", (double)queues->list[j].size,
                                  info->redis[i].url, &queues->list[j]);
        metrics_family(metrics, "sqmgr_queue_latency_seconds", "gauge",
                       "How long its oldest job has waited.");
        for (size_t i = 0; i < info->n_redis; i++)
                for (size_t j = 0; (queues = queues_of(info, i)) && j < queues->n; j++)
                        if (queues->list[j].latency_known)
                                put_queue(metrics, "sqmgr_queue_latency_seconds",
                                          seconds(queues->list[j].latency), info->redis[i].url,
                                          &queues->list[j]);
        metrics_family(metrics, "sqmgr_set_jobs", "gauge", "Jobs that are to be retried, scheduled or dead.");
        for (size_t i = 0; i < info->n_redis; i++) {
                queues = queues_of(info, i);
                if (!queues)
                        continue;
                SAMPLE(metrics, "sqmgr_set_jobs", (double)queues->retry, "url", info->redis[i].url, "set",
                       "retry", NULL);
                SAMPLE(metrics, "sqmgr_set_jobs", (double)queues->schedule, "url", info->redis[i].url, "set",
                       "schedule", NULL);
                SAMPLE(metrics, "sqmgr_set_jobs", (double)queues->dead, "url", info->redis[i].url, "set",
                       "dead", NULL);
        }
}

/* One number of each fleet; below 0: it has none. */
static void put_fleets(const struct metrics *metrics, const char *name, const char *help,
                       double (*value)(const struct fleet *fleet, const struct fleet_counts *counts,
                                       usec_t now))
{
        metrics_family(metrics, name, "gauge", help);
        for (size_t i = 0; i < metrics->world->n_fleets; i++) {
                const struct fleet *fleet = metrics->world->fleets[i];
                double number = value(fleet, &metrics->counts[i], metrics->now);

                if (number >= 0)
                        SAMPLE(metrics, name, number, "fleet", fleet->settings->name, NULL);
        }
}

static double value_target(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                           usec_t now _unused_)
{
        return fleet_target(fleet);
}

static double value_configured(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                               usec_t now _unused_)
{
        return fleet->settings->active_process_count;
}

static double value_threshold(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                              usec_t now _unused_)
{
        uint64_t bytes = fleet->settings->memory_threshold;

        return bytes > 0 ? (double)bytes : -1;
}

static double value_growth(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                           usec_t now _unused_)
{
        return fleet->growth.grows ? fleet->growth.fit.slope : -1;
}

static double value_growth_times(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                                 usec_t now _unused_)
{
        uint64_t than;
        double times = growth_times(fleet, &than);

        return times > 0 ? times : -1;
}

static double value_limit(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                          usec_t now _unused_)
{
        uint64_t bytes = fleet->settings->memory_limit;

        return bytes > 0 ? (double)bytes : -1;
}

static double value_oldest_job(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                               usec_t now)
{
        usec_t oldest = fleet_oldest_job_usec(fleet, now);

        return oldest > 0 ? seconds(oldest) : -1;
}

static double value_places(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                           usec_t now _unused_)
{
        return fleet_max_processes(fleet);
}

static double value_generation(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                               usec_t now _unused_)
{
        return (double)fleet->generation;
}

static double value_ready(const struct fleet *fleet _unused_, const struct fleet_counts *counts,
                          usec_t now _unused_)
{
        return counts->ready;
}

static double value_outdated(const struct fleet *fleet _unused_, const struct fleet_counts *counts,
                             usec_t now _unused_)
{
        return counts->outdated;
}

static double value_replaced(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                             usec_t now)
{
        return fleet_replaced(fleet, now);
}

static double value_short_lives(const struct fleet *fleet, const struct fleet_counts *counts _unused_,
                                usec_t now _unused_)
{
        return fleet->crash.count;
}

/* One of the names holds: it has the value 1, the others 0. */
static void put_orders(const struct metrics *metrics)
{
        metrics_family(metrics, "sqmgr_fleet_state", "gauge", "1 for the state that the fleet is to be in.");
        for (size_t i = 0; i < metrics->world->n_fleets; i++)
                for (enum fleet_order order = 0; order < _FLEET_ORDER_MAX; order++)
                        SAMPLE(metrics, "sqmgr_fleet_state", fleet_order(metrics->world->fleets[i]) == order,
                               "fleet", metrics->world->fleets[i]->settings->name, "state",
                               fleet_order_name(order), NULL);
}

static void put_rollouts(const struct metrics *metrics)
{
        metrics_family(metrics, "sqmgr_rollout_state", "gauge",
                       "1 for the state of the fleet's last rollout.");
        for (size_t i = 0; i < metrics->world->n_fleets; i++)
                for (enum rollout_state state = 0; state < _ROLLOUT_STATE_MAX; state++)
                        SAMPLE(metrics, "sqmgr_rollout_state",
                               metrics->world->fleets[i]->rollout.state == state, "fleet",
                               metrics->world->fleets[i]->settings->name, "state", rollout_state_name(state),
                               NULL);
}

static void put_states(const struct metrics *metrics)
{
        metrics_family(metrics, "sqmgr_workers", "gauge", "Workers by state.");
        for (size_t i = 0; i < metrics->world->n_fleets; i++) {
                const struct fleet_counts *counts = &metrics->counts[i];
                const unsigned numbers[] = {
                        [WORKER_STARTING] = counts->starting,
                        [WORKER_ACTIVE] = counts->active,
                        [WORKER_QUIET] = counts->quiet,
                        [WORKER_STOPPING] = counts->stopping,
                };

                static_assert(ELEMENTSOF(numbers) == WORKER_GONE, "each state of a worker that lives");
                for (enum worker_state state = 0; state < WORKER_GONE; state++)
                        SAMPLE(metrics, "sqmgr_workers", numbers[state], "fleet",
                               metrics->world->fleets[i]->settings->name, "state", worker_state_name(state),
                               NULL);
                SAMPLE(metrics, "sqmgr_workers", counts->hung, "fleet",
                       metrics->world->fleets[i]->settings->name, "state", "hung", NULL);
        }
}

/* One number of each worker that lives; below 0: it has none. */
static void put_workers(const struct metrics *metrics, const char *name, const char *help,
                        double (*value)(const struct worker *worker, usec_t now))
{
        metrics_family(metrics, name, "gauge", help);
        for (size_t i = 0; i < metrics->world->n_fleets; i++) {
                const struct fleet *fleet = metrics->world->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++) {
                        const struct worker *worker = fleet->workers[j];
                        double number = value(worker, metrics->now);

                        if (worker->state == WORKER_GONE || number < 0)
                                continue;
                        SAMPLE(metrics, name, number, "fleet", fleet->settings->name, "worker",
                               WORKER_ID(worker), NULL);
                }
        }
}

static double value_memory(const struct worker *worker, usec_t now _unused_)
{
        return worker->memory.bytes > 0 ? (double)worker->memory.bytes : -1;
}

static double value_reaches(const struct worker *worker, usec_t now _unused_)
{
        usec_t reaches = growth_reaches(worker);

        return reaches != USEC_INFINITY ? seconds(reaches) : -1;
}

static double value_busy(const struct worker *worker, usec_t now _unused_)
{
        return worker->fleet->settings->traits->tells_busy ? (double)worker->heartbeat.busy : -1;
}

static double value_concurrency(const struct worker *worker, usec_t now _unused_)
{
        return worker->heartbeat.concurrency > 0 ? (double)worker->heartbeat.concurrency : -1;
}

static double value_beat_age(const struct worker *worker, usec_t now)
{
        return worker_beats(worker) ? seconds(usec_sub(now, worker->heartbeat.changed_at)) : -1;
}

/* Those of each fleet, by reason. */
static void put_by_reason(const struct metrics *metrics, const char *name, const char *help, size_t offset)
{
        metrics_family(metrics, name, "counter", help);
        for (size_t i = 0; i < metrics->world->n_fleets; i++) {
                const struct fleet *fleet = metrics->world->fleets[i];
                const uint64_t *totals =
                        (const uint64_t *)(const void *)((const char *)&fleet->totals + offset);

                for (enum reason reason = 0; reason < _REASON_MAX; reason++)
                        SAMPLE(metrics, name, (double)totals[reason], "fleet", fleet->settings->name,
                               "reason", reason_name(reason), NULL);
        }
}

static void put_cut_off(const struct metrics *metrics)
{
        metrics_family(
                metrics, "sqmgr_jobs_cut_off_total", "counter",
                "Jobs that ran in workers as these were told to exit, by the setting or the order that did "
                "so.");
        for (size_t i = 0; i < metrics->world->n_fleets; i++) {
                const struct fleet *fleet = metrics->world->fleets[i];

                for (enum cut_word word = 0; fleet->settings->traits->tells_busy && word < _CUT_WORD_MAX;
                     word++)
                        SAMPLE(metrics, "sqmgr_jobs_cut_off_total", (double)fleet->totals.jobs_cut_off[word],
                               "fleet", fleet->settings->name, "by", cut_word_name(word), NULL);
        }
}

/* Names of classes come from Redis; so many of them have a number of their own as the totals have places. */
static void put_culprits(const struct metrics *metrics)
{
        const struct world *world = metrics->world;

        metrics_family(
                metrics, "sqmgr_culprits_total", "counter",
                "How often a worker was running jobs of this class as its memory ran out, and of which kind "
                "that was.");
        for (size_t i = 0; i < world->n_fleets; i++) {
                const struct fleet_totals *totals = &world->fleets[i]->totals;

                for (size_t k = 0; k < CULPRIT_CLASSES_MAX && totals->culprits[k].name[0] != '\0'; k++)
                        for (enum culprits_cause cause = 0; cause < _CULPRITS_CAUSE_MAX; cause++)
                                if (is_label(totals->culprits[k].name))
                                        SAMPLE(metrics, "sqmgr_culprits_total",
                                               (double)totals->culprits[k].times[cause], "fleet",
                                               world->fleets[i]->settings->name, "class",
                                               totals->culprits[k].name, "cause", culprits_cause_name(cause),
                                               NULL);
        }
        metrics_family(metrics, "sqmgr_culprits_other_total", "counter",
                       "How often that was so of classes that have no number of their own.");
        for (size_t i = 0; i < world->n_fleets; i++)
                for (enum culprits_cause cause = 0; cause < _CULPRITS_CAUSE_MAX; cause++)
                        SAMPLE(metrics, "sqmgr_culprits_other_total",
                               (double)world->fleets[i]->totals.other_culprits[cause], "fleet",
                               world->fleets[i]->settings->name, "cause", culprits_cause_name(cause), NULL);
}

static void put_fleet_info(const struct metrics *metrics)
{
        metrics_family(metrics, "sqmgr_fleet_info", "gauge", "What the fleet's workers speak.");
        for (size_t i = 0; i < metrics->world->n_fleets; i++)
                SAMPLE(metrics, "sqmgr_fleet_info", 1, "fleet", metrics->world->fleets[i]->settings->name,
                       "framework", metrics->world->fleets[i]->settings->traits->name, NULL);
}

static double template_ready(const struct fleet *fleet)
{
        const struct template *template = fleet_template(fleet);

        return template && template->state == TEMPLATE_READY;
}

static double template_refused(const struct fleet *fleet)
{
        return fleet_preload_refused(fleet)[0] != '\0';
}

static double template_memory(const struct fleet *fleet)
{
        const struct template *template = fleet_template(fleet);

        return template ? (double)template->memory_bytes : 0;
}

static double template_loads(const struct fleet *fleet)
{
        return (double)fleet->totals.template_loads;
}

static double template_failures(const struct fleet *fleet)
{
        return (double)fleet->totals.template_failures;
}

static double template_forks_total(const struct fleet *fleet)
{
        return (double)fleet->totals.forks;
}

/* Of the fleets that are preloaded, where there are any. */
static void put_templates(const struct metrics *metrics)
{
        static const struct {
                const char *name, *type, *help;
                double (*value)(const struct fleet *fleet);
        } numbers[] = {
                {"sqmgr_template_ready", "gauge", "1 where workers can be forked from the fleet's template.",
                 template_ready},
                {"sqmgr_template_refused", "gauge", "1 where workers boot separately in spite of preload.",
                 template_refused},
                {"sqmgr_template_memory_bytes", "gauge", "Memory that the template holds.", template_memory},
                {"sqmgr_template_loads_total", "counter", "Templates started.", template_loads},
                {"sqmgr_template_failures_total", "counter",
                 "Templates that did not load, died or did not fork.", template_failures},
                {"sqmgr_template_forks_total", "counter", "Workers forked.", template_forks_total},
        };
        const struct world *world = metrics->world;
        bool any = false;

        for (size_t i = 0; i < world->n_fleets; i++)
                any |= world->fleets[i]->settings->preload != 0;
        for (size_t k = 0; any && k < ELEMENTSOF(numbers); k++) {
                metrics_family(metrics, numbers[k].name, numbers[k].type, numbers[k].help);
                for (size_t i = 0; i < world->n_fleets; i++)
                        if (world->fleets[i]->settings->preload)
                                SAMPLE(metrics, numbers[k].name, numbers[k].value(world->fleets[i]), "fleet",
                                       world->fleets[i]->settings->name, NULL);
        }
}

/* Where workers of any fleet grow. */
static void put_growth(const struct metrics *metrics)
{
        const struct world *world = metrics->world;
        bool any = false;

        for (size_t i = 0; i < world->n_fleets; i++)
                any |= world->fleets[i]->growth.grows;
        if (!any)
                return;
        put_fleets(metrics, "sqmgr_fleet_memory_growth_bytes_per_second",
                   "How fast a worker grows, of fleets whose workers seem to leak.", value_growth);
        put_fleets(
                metrics, "sqmgr_fleet_memory_growth_times",
                "How many times as fast as in the generation that grew before it; only where that is known.",
                value_growth_times);
        put_workers(metrics, "sqmgr_worker_memory_reaches_seconds",
                    "Time until it holds memory_threshold, else memory_limit, as it grows now.",
                    value_reaches);
}

static void put_events(const struct metrics *metrics)
{
        const struct world *world = metrics->world;

        metrics_family(metrics, "sqmgr_events_total", "counter",
                       "Events by kind, as 'sqmgrctl events' tells them.");
        for (enum event_kind kind = 0; kind < _EVENT_MAX; kind++)
                if (world->event_totals[kind] > 0)
                        SAMPLE(metrics, "sqmgr_events_total", (double)world->event_totals[kind], "event",
                               event_kind_name(kind), NULL);
        for (size_t i = 0; i < world->n_fleets; i++)
                for (enum event_kind kind = 0; kind < _EVENT_MAX; kind++)
                        SAMPLE(metrics, "sqmgr_events_total", (double)world->fleets[i]->totals.events[kind],
                               "fleet", world->fleets[i]->settings->name, "event", event_kind_name(kind),
                               NULL);
}

static void put_all(const struct metrics *metrics, const struct status_info *info,
                    const struct tick_totals *ticks)
{
        put_self(metrics, info, ticks);
        if (info->n_redis > 0) {
                put_redis(metrics, info);
                put_queues(metrics, info);
        }
        put_fleets(metrics, "sqmgr_fleet_target_workers", "How many workers should take jobs.", value_target);
        put_fleets(metrics, "sqmgr_fleet_configured_workers",
                   "How many workers the settings say should take jobs, whatever 'sqmgrctl scale' has made "
                   "of it.",
                   value_configured);
        put_fleets(metrics, "sqmgr_fleet_memory_threshold_bytes",
                   "Memory beyond which a worker is replaced; only where there is such a limit.",
                   value_threshold);
        put_fleets(metrics, "sqmgr_fleet_memory_limit_bytes",
                   "Memory beyond which a worker is quieted at once; only where there is such a limit.",
                   value_limit);
        put_fleets(metrics, "sqmgr_fleet_oldest_job_seconds",
                   "How long the oldest job has been running: of workers that drain and, with "
                   "job_warn_after, of "
                   "all; only where that is known.",
                   value_oldest_job);
        put_fleets(metrics, "sqmgr_fleet_max_processes", "How many processes the fleet may have at once.",
                   value_places);
        put_fleets(metrics, "sqmgr_fleet_generation", "Counts the fleet's restarts, from 1.",
                   value_generation);
        put_fleets(metrics, "sqmgr_fleet_ready_workers", "Workers on whose account others may be quieted.",
                   value_ready);
        put_fleets(metrics, "sqmgr_fleet_outdated_workers", "Workers of an older generation that take jobs.",
                   value_outdated);
        put_fleets(metrics, "sqmgr_fleet_replaced_workers", "Workers that the last rollout has replaced.",
                   value_replaced);
        put_fleets(metrics, "sqmgr_fleet_short_lives", "Short lives in a row, 0 once they are over.",
                   value_short_lives);
        put_fleet_info(metrics);
        put_orders(metrics);
        put_rollouts(metrics);
        subsystems_metrics(metrics->subsystems, metrics);
        put_states(metrics);
        put_workers(metrics, "sqmgr_worker_memory_bytes", "Memory that the worker holds.", value_memory);
        put_workers(metrics, "sqmgr_worker_busy_threads", "Jobs that the worker runs.", value_busy);
        put_workers(metrics, "sqmgr_worker_threads", "Jobs that the worker can run at once.",
                    value_concurrency);
        put_workers(metrics, "sqmgr_worker_beat_age_seconds", "Time since the worker's heartbeat changed.",
                    value_beat_age);
        put_by_reason(metrics, "sqmgr_worker_starts_total",
                      "Workers started, by why another leaves that they replace.",
                      offsetof(struct fleet_totals, starts));
        put_by_reason(metrics, "sqmgr_worker_ends_total", "Workers that are gone, by why they left.",
                      offsetof(struct fleet_totals, ends));
        put_cut_off(metrics);
        put_culprits(metrics);
        put_growth(metrics);
        put_templates(metrics);
        put_events(metrics);
}

char *metrics_render(const struct status_info *info, const struct tick_totals *ticks,
                     const struct world *world, const struct subsystems *subsystems, usec_t now)
{
        _cleanup_free_ struct fleet_counts *counts = calloc(world->n_fleets + 1, sizeof(*counts));
        char *text = NULL;
        size_t size = 0;

        if (!counts)
                return NULL;
        for (size_t i = 0; i < world->n_fleets; i++)
                counts[i] = fleet_count(world->fleets[i], now);
        struct metrics metrics = {.out = open_memstream(&text, &size),
                                  .world = world,
                                  .subsystems = subsystems,
                                  .counts = counts,
                                  .now = now};
        if (!metrics.out)
                return NULL;
        put_all(&metrics, info, ticks);
        bool failed = ferror(metrics.out) != 0;
        if (fclose(metrics.out) != 0 || failed) {
                free(text);
                return NULL;
        }
        return text;
}
