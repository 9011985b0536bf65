/* SPDX-License-Identifier: MIT */
/* Collects the metrics of the model. */
#include "advice/leak.h"
#include "advice/problem_rules.h"
#include "base/printable.h"
#include "daemon/api/status.h"
#include "daemon/runtime/subsystem.h"
#include "decide/pass.h"
#include "model/counts.h"
#include "model/generation.h"
#include "model/idle_proof.h"
#include "model/names.h"
#include "model/preload.h"
#include "model/queues.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <string.h>

/* The collection and its sources. */
struct facts {
        struct metrics *metrics;
        const struct status_info *info;
        const struct world *world;
        const struct fleet_counts *counts; /* per fleet */
        usec_t now;
};

/* A family, and a sample of the last one. The value is followed by labels: pairs of name and text. */
#define FAMILY(facts, name, type, help) metrics_family((facts)->metrics, name, type, help)
#define SAMPLE(facts, value, ...)       METRICS_SAMPLE((facts)->metrics, value, __VA_ARGS__)

/* n samples per fleet, counted by i. n, number and the labels after the fleet's are expressions of fleet,
 * counts and i. A negative number means no sample. */
#define PUT_SAMPLES(facts, n, number, ...)                                                                   \
        for (size_t at_ = 0; at_ < (facts)->world->n_fleets; at_++) {                                        \
                const struct fleet *fleet = (facts)->world->fleets[at_];                                     \
                const struct fleet_counts *counts _unused_ = &(facts)->counts[at_];                          \
                for (unsigned i = 0; i < (n); i++) {                                                         \
                        const double number_ = (double)(number);                                             \
                        if (number_ >= 0)                                                                    \
                                SAMPLE(facts, number_, "fleet", fleet->settings->name, ##__VA_ARGS__);       \
                }                                                                                            \
        }

/* A family of PUT_SAMPLES(). */
#define PUT(facts, name, type, help, n, number, ...)                                                         \
        do {                                                                                                 \
                FAMILY(facts, name, type, help);                                                             \
                PUT_SAMPLES(facts, n, number, ##__VA_ARGS__)                                                 \
        } while (0)

/* Prints one sample per fleet. */
#define PUT_FLEETS(facts, name, help, number) PUT(facts, name, "gauge", help, 1, number)

/* Prints one sample per running worker. number is an expression of fleet and worker; a negative value means
 * no sample. */
#define PUT_WORKERS(facts, family, help, number)                                                             \
        do {                                                                                                 \
                FAMILY(facts, family, "gauge", help);                                                        \
                WORLD_FOREACH_FLEET((facts)->world, fleet)                                                   \
                        FLEET_FOREACH_WORKER(fleet, worker) {                                                \
                                const double number_ = (double)(number);                                     \
                                if (worker->state != WORKER_GONE && number_ >= 0)                            \
                                        SAMPLE(facts, number_, "fleet", fleet->settings->name, "worker",     \
                                               WORKER_ID(worker));                                           \
                        }                                                                                    \
        } while (0)

static void put_one(struct facts *facts, const char *name, const char *help, double value)
{
        FAMILY(facts, name, "gauge", help);
        metrics_sample(facts->metrics, value, NULL);
}

static void put_self(struct facts *facts, const struct tick_totals *ticks)
{
        const struct status_info *info = facts->info;
        const struct world *world = facts->world;

        FAMILY(facts, "sqmgr_info", "gauge", "Version of the running sqmgr.");
        SAMPLE(facts, 1, "version", info->version);
        put_one(facts, "sqmgr_uptime_seconds", "Time since sqmgr started; counters began then.",
                usec_seconds(usec_sub(facts->now, info->started_at)));
        FAMILY(facts, "sqmgr_tick_duration_seconds", "summary",
               "Duration of a pass of observing, planning and executing.");
        metrics_sample(facts->metrics, usec_seconds(ticks->usec), NULL);
        metrics_sample(facts->metrics, (double)ticks->n, NULL);
        put_one(facts, "sqmgr_config_last_reload_successful",
                "1 if the last reload of the settings succeeded.", !info->settings->refused);
        put_one(facts, "sqmgr_config_last_reload_success_timestamp_seconds",
                "Unix time at which the active settings were read.", usec_seconds(info->settings->loaded_at));
        if (world->available_bytes > 0)
                put_one(facts, "sqmgr_available_memory_bytes", "Memory available to further processes.",
                        (double)world->available_bytes);
}

/* True if an earlier connection has the same URL. Fleets that log in as different users have separate
 * connections, reported under one URL. */
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

static void put_up(struct facts *facts, bool of_databases)
{
        const struct status_info *info = facts->info;

        for (size_t i = 0; i < info->n_redis; i++)
                if (info->redis[i].is_database == of_databases && !is_repeated(info, i))
                        SAMPLE(facts, all_up(info, info->redis[i].url), "url", info->redis[i].url);
}

static void put_round_trips(struct facts *facts, bool of_databases)
{
        const struct status_info *info = facts->info;

        for (size_t i = 0; i < info->n_redis; i++)
                if (info->redis[i].is_database == of_databases && info->redis[i].rtt_ms >= 0 &&
                    !is_repeated(info, i))
                        SAMPLE(facts, info->redis[i].rtt_ms / 1000, "url", info->redis[i].url);
}

static void put_redis(struct facts *facts)
{
        FAMILY(facts, "sqmgr_redis_up", "gauge", "1 if the connection to this Redis is up.");
        put_up(facts, false);
        FAMILY(facts, "sqmgr_redis_round_trip_seconds", "gauge",
               "Duration of the last answer of this Redis.");
        put_round_trips(facts, false);
        FAMILY(facts, "sqmgr_database_up", "gauge", "1 if the connection to this database is up.");
        put_up(facts, true);
        FAMILY(facts, "sqmgr_database_round_trip_seconds", "gauge",
               "Duration of the last transaction in this database.");
        put_round_trips(facts, true);
}

/* True if name is safe as a label. Invalid text could become equal to another name once replaced, and
 * Prometheus rejects duplicate samples. */
static bool is_label(const char *name)
{
        _cleanup_free_ char *copy = strdup(name);

        if (!copy)
                return false;
        printable_replace(copy, strlen(copy), true);
        return strcmp(copy, name) == 0;
}

/* Returns NULL if the queues are not read or already reported. One Redis user may lack permissions that
 * another has. */
static const struct queues *queues_of(const struct status_info *info, size_t i)
{
        for (size_t j = 0; j < i; j++)
                if (info->redis[j].queues && strcmp(info->redis[j].url, info->redis[i].url) == 0)
                        return NULL;
        return info->redis[i].queues;
}

static void put_queues(struct facts *facts)
{
        const struct status_info *info = facts->info;
        const struct queues *queues;

        FAMILY(facts, "sqmgr_queue_jobs", "gauge", "Jobs waiting in the queue.");
        for (size_t i = 0; i < info->n_redis; i++)
                for (size_t j = 0; (queues = queues_of(info, i)) && j < queues->n; j++)
                        if (is_label(queues->list[j].name))
                                SAMPLE(facts, (double)queues->list[j].size, "url", info->redis[i].url,
                                       "queue", queues->list[j].name);
        FAMILY(facts, "sqmgr_queue_latency_seconds", "gauge",
               "How long the oldest job in the queue has waited.");
        for (size_t i = 0; i < info->n_redis; i++)
                for (size_t j = 0; (queues = queues_of(info, i)) && j < queues->n; j++)
                        if (queues->list[j].latency_known && is_label(queues->list[j].name))
                                SAMPLE(facts, usec_seconds(queues->list[j].latency), "url",
                                       info->redis[i].url, "queue", queues->list[j].name);
        FAMILY(facts, "sqmgr_set_jobs", "gauge", "Jobs that are scheduled, dead, or to be retried.");
        for (size_t i = 0; i < info->n_redis; i++) {
                queues = queues_of(info, i);
                if (!queues)
                        continue;
                SAMPLE(facts, (double)queues->retry, "url", info->redis[i].url, "set", "retry");
                SAMPLE(facts, (double)queues->schedule, "url", info->redis[i].url, "set", "schedule");
                SAMPLE(facts, (double)queues->dead, "url", info->redis[i].url, "set", "dead");
        }
}

static double oldest_job(const struct fleet *fleet, usec_t now)
{
        usec_t oldest = fleet_oldest_job_usec(fleet, now);

        return oldest > 0 ? usec_seconds(oldest) : -1;
}

static void put_fleets(struct facts *facts)
{
        PUT_FLEETS(facts, "sqmgr_fleet_target_workers", "Number of workers that should be active.",
                   fleet_target(fleet));
        PUT_FLEETS(facts, "sqmgr_fleet_configured_workers",
                   "Number of workers that should be active by the settings, regardless of 'sqmgrctl scale'.",
                   fleet->settings->active_process_count);
        PUT_FLEETS(facts, "sqmgr_fleet_memory_threshold_bytes",
                   "Memory beyond which a worker is replaced; only with such a limit.",
                   fleet->settings->memory_threshold > 0 ? (double)fleet->settings->memory_threshold : -1);
        PUT_FLEETS(facts, "sqmgr_fleet_memory_limit_bytes",
                   "Memory beyond which a worker is quieted at once; only with such a limit.",
                   fleet->settings->memory_limit > 0 ? (double)fleet->settings->memory_limit : -1);
        PUT_FLEETS(facts, "sqmgr_fleet_oldest_job_seconds",
                   "How long the oldest job has been running: in draining workers and, with job_warn_after, "
                   "in all; only if known.",
                   oldest_job(fleet, facts->now));
        PUT_FLEETS(facts, "sqmgr_fleet_max_processes", "Maximum number of processes of the fleet.",
                   fleet_max_processes(fleet));
        PUT_FLEETS(facts, "sqmgr_fleet_generation",
                   "Current generation: 1, plus 1 for each restart; a reload that outdates workers counts "
                   "once a worker was started after it.",
                   generation_shown(fleet));
        PUT_FLEETS(facts, "sqmgr_fleet_ready_workers",
                   "Workers that are ready, so that others may be quieted.", counts->ready);
        PUT_FLEETS(facts, "sqmgr_fleet_outdated_workers",
                   "Active workers of another generation than their fleet's.", counts->outdated);
        PUT_FLEETS(facts, "sqmgr_fleet_replaced_workers", "Workers replaced by the last rollout.",
                   fleet_replaced(fleet, facts->now));
        PUT_FLEETS(facts, "sqmgr_fleet_short_lives", "Failed starts in a row; 0 once a worker stays up.",
                   fleet->crash.count);
        PUT(facts, "sqmgr_fleet_info", "gauge", "Framework of the fleet's workers.", 1, 1, "framework",
            fleet->settings->traits->name);
        /* A state set of OpenMetrics: the current state has the value 1, the others 0. */
        PUT(facts, "sqmgr_fleet_state", "gauge", "1 for the state ordered for the fleet.", _FLEET_ORDER_MAX,
            fleet_order(fleet) == (enum fleet_order)i, "state", fleet_order_name((enum fleet_order)i));
        PUT_FLEETS(facts, "sqmgr_fleet_rolled_back",
                   "1 if the fleet has returned to the generation before, until the next restart.",
                   fleet->rollout.returned);
        PUT(facts, "sqmgr_rollout_state", "gauge", "1 for the state of the fleet's last rollout.",
            _ROLLOUT_STATE_MAX, fleet->rollout.state == (enum rollout_state)i, "state",
            rollout_state_name((enum rollout_state)i));
}

/* True if holds is true for any fleet. Otherwise the family is left out. */
static bool any_fleet(const struct facts *facts, bool (*holds)(const struct fleet *fleet))
{
        WORLD_FOREACH_FLEET(facts->world, fleet)
                if (holds(fleet))
                        return true;
        return false;
}

static unsigned count_of(const struct fleet_counts *counts, unsigned state)
{
        const unsigned numbers[] = {
                [WORKER_STARTING] = counts->starting, [WORKER_ACTIVE] = counts->active,
                [WORKER_QUIET] = counts->quiet,       [WORKER_STOPPING] = counts->stopping,
                [WORKER_GONE] = counts->hung,
        };

        static_assert(ELEMENTSOF(numbers) == WORKER_GONE + 1, "each state of a worker that lives, and hung");
        return numbers[state];
}

static double reaches(const struct worker *worker)
{
        usec_t usec = leak_reaches(worker);

        return usec != USEC_INFINITY ? usec_seconds(usec) : -1;
}

static void put_workers(struct facts *facts)
{
        PUT(facts, "sqmgr_workers", "gauge", "Workers by state.", WORKER_GONE + 1, count_of(counts, i),
            "state", i < WORKER_GONE ? worker_state_name((enum worker_state)i) : "hung");
        PUT_WORKERS(facts, "sqmgr_worker_memory_bytes", "Memory used by the worker.",
                    worker->memory.bytes > 0 ? (double)worker->memory.bytes : -1);
        PUT_WORKERS(facts, "sqmgr_worker_busy_threads", "Jobs running in the worker.",
                    worker_shows_busy(worker) ? (double)worker->heartbeat.busy : -1);
        PUT_WORKERS(facts, "sqmgr_worker_threads", "Jobs that the worker can run at once.",
                    worker->heartbeat.concurrency > 0 ? (double)worker->heartbeat.concurrency : -1);
        PUT_WORKERS(facts, "sqmgr_worker_beat_age_seconds", "Time since the worker's heartbeat changed.",
                    worker_sends_heartbeats(worker)
                            ? usec_seconds(usec_sub(facts->now, worker->heartbeat.changed_at))
                            : -1);
        PUT(facts, "sqmgr_worker_starts_total", "counter",
            "Workers started, by the reason why the replaced worker leaves.", _REASON_MAX,
            fleet->totals.starts[i], "reason", reason_name((enum reason)i));
        PUT(facts, "sqmgr_worker_ends_total", "counter",
            "Workers that are gone, by the reason why they left.", _REASON_MAX, fleet->totals.ends[i],
            "reason", reason_name((enum reason)i));
        PUT(facts, "sqmgr_jobs_cut_off_total", "counter",
            "Jobs that were running in workers asked to exit, by the setting or order that asked.",
            fleet->settings->traits->reports_busy ? _CUT_WORD_MAX : 0, fleet->totals.jobs_cut_off[i], "by",
            cut_word_name((enum cut_word)i));
}

/* i counts the classes, and the causes of each. Class names come from Redis; at most CULPRIT_CLASSES_MAX have
 * separate counts. Negative: no class that can be reported. */
static double culprit_times(const struct fleet_totals *totals, unsigned i)
{
        const char *name = totals->culprits[i / _CULPRITS_CAUSE_MAX].name;

        return name[0] != '\0' && is_label(name)
                       ? (double)totals->culprits[i / _CULPRITS_CAUSE_MAX].times[i % _CULPRITS_CAUSE_MAX]
                       : -1;
}

static void put_culprits(struct facts *facts)
{
        PUT(facts, "sqmgr_culprits_total", "counter",
            "How often a worker was running jobs of this class when a memory limit was exceeded, by kind of "
            "limit.",
            CULPRIT_CLASSES_MAX * _CULPRITS_CAUSE_MAX, culprit_times(&fleet->totals, i), "class",
            fleet->totals.culprits[i / _CULPRITS_CAUSE_MAX].name, "cause",
            culprits_cause_name((enum culprits_cause)(i % _CULPRITS_CAUSE_MAX)));
        PUT(facts, "sqmgr_culprits_other_total", "counter",
            "The same for classes without a counter of their own.", _CULPRITS_CAUSE_MAX,
            fleet->totals.other_culprits[i], "cause", culprits_cause_name((enum culprits_cause)i));
}

static bool grows(const struct fleet *fleet)
{
        return fleet->leak.grows;
}

static double growth_ratio(const struct fleet *fleet)
{
        uint64_t than;
        double times = leak_times(fleet, &than);

        return times > 0 ? times : -1;
}

static void put_leak(struct facts *facts)
{
        if (!any_fleet(facts, grows))
                return;
        PUT_FLEETS(facts, "sqmgr_fleet_memory_growth_bytes_per_second",
                   "Memory growth of a worker, of fleets whose workers seem to leak.",
                   grows(fleet) ? fleet->leak.fit.slope : -1);
        PUT_FLEETS(facts, "sqmgr_fleet_memory_growth_times",
                   "Growth relative to the previous generation that grew; only if known.",
                   growth_ratio(fleet));
        PUT_WORKERS(
                facts, "sqmgr_worker_memory_reaches_seconds",
                "Time until the worker reaches memory_threshold, else memory_limit, at the current growth.",
                reaches(worker));
}

static bool is_preloaded(const struct fleet *fleet)
{
        return fleet->settings->preload != 0;
}

static void put_templates(struct facts *facts)
{
        if (!any_fleet(facts, is_preloaded))
                return;
        PUT(facts, "sqmgr_template_ready", "gauge", "1 if workers can be forked from the fleet's template.",
            is_preloaded(fleet), fleet_template(fleet) && fleet_template(fleet)->state == TEMPLATE_READY);
        PUT(facts, "sqmgr_template_refused", "gauge", "1 if workers boot separately despite preload.",
            is_preloaded(fleet), fleet_preload_refused(fleet)[0] != '\0');
        PUT(facts, "sqmgr_template_memory_bytes", "gauge", "Memory used by the template.",
            is_preloaded(fleet), fleet_template(fleet) ? fleet_template(fleet)->memory_bytes : 0);
        PUT(facts, "sqmgr_template_kept_memory_bytes", "gauge",
            "Memory used by the template of the generation before, to which the fleet can return.",
            is_preloaded(fleet), fleet_template_kept(fleet) ? fleet_template_kept(fleet)->memory_bytes : 0);
        PUT(facts, "sqmgr_template_loads_total", "counter", "Templates started.", is_preloaded(fleet),
            fleet->totals.template_loads);
        PUT(facts, "sqmgr_template_failures_total", "counter",
            "Templates that did not load, died or did not fork.", is_preloaded(fleet),
            fleet->totals.template_failures);
        PUT(facts, "sqmgr_template_forks_total", "counter", "Workers forked.", is_preloaded(fleet),
            fleet->totals.forks);
}

static void put_events(struct facts *facts)
{
        const struct world *world = facts->world;

        FAMILY(facts, "sqmgr_events_total", "counter", "Events by kind, as shown by 'sqmgrctl events'.");
        for (enum event_kind kind = 0; kind < _EVENT_MAX; kind++)
                if (world->event_totals[kind] > 0)
                        SAMPLE(facts, (double)world->event_totals[kind], "fleet", "", "event",
                               event_kinds[kind].name);
        PUT_SAMPLES(facts, _EVENT_MAX, fleet->totals.events[i], "event", event_kinds[i].name);
}

/* Several problems of a fleet may have one code, as those of queues: one sample stands for all. */
static bool is_counted_before(const struct problems *problems, size_t i)
{
        const struct problem *list = problems->list;

        for (size_t j = i; j > 0 && list[j - 1].fleet == list[i].fleet; j--)
                if (list[j - 1].code == list[i].code)
                        return true;
        return false;
}

/* No label names a worker: problems of many workers are one sample with a count. */
static void put_problems(struct facts *facts)
{
        const struct world *world = facts->world;
        struct problems problems = {0};

        problems_judge(&problems, facts->info->facts, world, world->fleets, world->n_fleets, facts->now);
        FAMILY(facts, "sqmgr_problem", "gauge",
               "Problems reported by 'sqmgrctl status': number of workers, or 1.");
        for (size_t i = 0; i < problems.n; i++) {
                const struct problem *problem = &problems.list[i];

                if (!is_counted_before(&problems, i))
                        SAMPLE(facts, problem->count, "code", problem_kinds[problem->code].name, "severity",
                               problem_severity_name(problem->severity), "fleet",
                               problem->fleet ? problem->fleet->settings->name : "");
        }
        problems_clear(&problems);
}

static void put_all(struct facts *facts, const struct tick_totals *ticks)
{
        put_self(facts, ticks);
        if (facts->info->n_redis > 0) {
                put_redis(facts);
                put_queues(facts);
        }
        put_problems(facts);
        put_fleets(facts);
        subsystems_metrics(facts->info->subsystems, facts->world, facts->metrics);
        put_workers(facts);
        put_culprits(facts);
        put_leak(facts);
        put_templates(facts);
        put_events(facts);
}

char *metrics_collect(const struct status_info *info, const struct tick_totals *ticks, usec_t now)
{
        const struct world *world = info->world;
        _cleanup_free_ struct fleet_counts *counts = calloc(world->n_fleets + 1, sizeof(*counts));
        struct metrics metrics;
        struct facts facts = {
                .metrics = &metrics, .info = info, .world = world, .counts = counts, .now = now};
        size_t size;
        char *text;

        if (!counts)
                return NULL;
        for (size_t i = 0; i < world->n_fleets; i++)
                counts[i] = fleet_count(world->fleets[i], now);
        metrics_begin(&metrics);
        put_all(&facts, ticks);
        (void)metrics_end(&metrics, &text, &size);
        return text;
}
