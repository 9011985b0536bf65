/* SPDX-License-Identifier: MIT */
/* Renders the model as the status object that programs read, and as metrics. */
#include "daemon/api/status.h"
#include "advice/leak.h"
#include "advice/problem_rules.h"
#include "base/printable.h"
#include "daemon/runtime/subsystem.h"
#include "decide/pass.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/idle_proof.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/culprits.h"
#include "servers/server.h"

static const struct quoted nothing;

/* Seconds, rounded down to milliseconds. */
static double seconds(usec_t usec)
{
        return (double)(usec / USEC_PER_MSEC) / 1000.0;
}

static json_t *word(const char *text)
{
        return text ? json_string(text) : json_null();
}

/* Kinds of values. A member that is NULL stands for a failed allocation, so what is not known is JSON null.
 */
#define TEXT(text)                varlink_text(text) /* null if empty */
#define WORD(text)                word(text)
#define NUMBER(number)            json_integer((json_int_t)(number))
#define FLAG(flag)                json_boolean(flag)
#define SECONDS(usec)             json_real(seconds(usec))
#define NULL_UNLESS(known, value) ((known) ? (value) : json_null())

static const char *worker_evidence(const struct worker *worker, usec_t now)
{
        static const char *const places[] = {
                [HEARTBEAT_REDIS] = "redis",
                [HEARTBEAT_FILE] = "file",
                [HEARTBEAT_NONE] = "proc",
                [HEARTBEAT_DATABASE] = "database",
        };

        static_assert(ELEMENTSOF(places) == _HEARTBEAT_PLACE_MAX, "a word for each");
        if (worker_fresh(worker, now))
                return places[worker->process.shimless ? HEARTBEAT_NONE
                                                       : fleet_settings_heartbeat(worker->fleet->settings)];
        if (!worker->fleet->redis_up && worker->evidence.title_known)
                return "title";
        return "none";
}

static json_t *render_worker(const struct worker *worker, usec_t now)
{
        enum reason reason = worker->reason != REASON_NONE ? worker->reason : worker->verdict.retire_reason;
        usec_t oldest = worker_oldest_job_usec(worker, now), reaches = leak_reaches(worker);
        usec_t ready_at = worker_ready_at(worker);
        bool becomes_ready = worker->state == WORKER_ACTIVE && worker_fresh(worker, now) && now < ready_at;
        bool shows_busy = worker_shows_busy(worker);
        enum problem_code code = problem_of_worker(worker);
        char waits_for[512], leak[LEAK_TEXT_MAX];

        worker_waits_for(worker, now, waits_for, sizeof(waits_for));
        const struct json_member members[] = {
                {"id", TEXT(WORKER_ID(worker))},
                {"index", NUMBER(worker->index)},
                {"pid", NUMBER(worker_pid(worker))},
                {"state", WORD(worker_state_name(worker->state))},
                {"ready", FLAG(worker_ready(worker, now))},
                {"ready_seconds", NULL_UNLESS(becomes_ready, SECONDS(ready_at - now))},
                {"hung", FLAG(worker->heartbeat.hung)},
                {"generation", NUMBER(worker->generation)},
                {"outdated", FLAG(worker_outdated(worker))},
                {"busy", NULL_UNLESS(shows_busy, NUMBER(worker->heartbeat.busy))},
                {"oldest_job_seconds", NULL_UNLESS(oldest > 0, SECONDS(oldest))},
                {"concurrency", NULL_UNLESS(shows_busy, NUMBER(worker->heartbeat.concurrency))},
                {"memory_bytes", NUMBER(worker->memory.bytes)},
                {"uptime_seconds", SECONDS(usec_sub(now, worker->spawned_at))},
                {"state_seconds", SECONDS(usec_sub(now, worker->state_at))},
                {"reason", NULL_UNLESS(reason != REASON_NONE, WORD(reason_name(reason)))},
                {"reason_text", TEXT(worker_reason_text(worker))},
                {"waits_for", TEXT(waits_for)},
                {"evidence", WORD(worker_evidence(worker, now))},
                {"beat_age_seconds", NULL_UNLESS(worker_sends_heartbeats(worker),
                                                 SECONDS(usec_sub(now, worker->heartbeat.changed_at)))},
                {"forked", FLAG(worker->process.forked)},
                {"waits_for_code",
                 NULL_UNLESS(waits_for[0] != '\0', WORD(wait_code(worker->verdict.waits_for)))},
                {"memory_reaches_seconds", NULL_UNLESS(reaches != USEC_INFINITY, SECONDS(reaches))},
                {"memory_text", TEXT(leak_worker_text(worker, leak))},
                {"problem", NULL_UNLESS(code != PROBLEM_NONE, WORD(problem_kinds[code].name))},
                {"remote", FLAG(worker->process.remote)},
        };
        return json_object_of(members, ELEMENTSOF(members));
}

json_t *status_workers(const struct fleet *fleet, usec_t now)
{
        _cleanup_json_ json_t *workers = json_array();

        FLEET_FOREACH_WORKER(fleet, worker)
                if (worker->state != WORKER_GONE &&
                    json_array_append_new(workers, render_worker(worker, now)) < 0)
                        return NULL;
        return TAKE_PTR(workers);
}

json_t *status_rolled_back(const struct fleet *fleet)
{
        if (!fleet || !fleet->rollout.returned)
                return json_null();
        return json_integer((json_int_t)fleet->newest_generation);
}

static json_t *render_rollout(const struct fleet *fleet, const struct fleet_counts *counts, usec_t now)
{
        json_t *object = json_pack(
                "{s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:o, s:o}", "state",
                rollout_state_name(fleet->rollout.state), "generation", (json_int_t)fleet->generation,
                "total", (json_int_t)fleet->rollout.total, "replaced", (json_int_t)fleet_replaced(fleet, now),
                "outdated", (json_int_t)counts->outdated, "draining", (json_int_t)counts->draining, "failed",
                (json_int_t)fleet->rollout.failures, "error", varlink_text(fleet->rollout.error),
                "rolled_back", status_rolled_back(fleet));

        return quoted_put(object, &fleet->rollout.quoted);
}

static json_t *render_crash(const struct fleet *fleet, usec_t now)
{
        enum crash_state state = fleet_crash_state(fleet, now);
        usec_t next_at = state == CRASH_NONE ? 0 : fleet_next_start_at(fleet, now);
        char text[CRASH_TEXT_MAX];

        fleet_crash_text(fleet, now, text, sizeof(text));
        json_t *object = json_pack(
                "{s:I, s:s, s:o, s:o, s:o, s:o}", "count", (json_int_t)fleet->crash.count, "state",
                crash_state_name(state), "next_start_seconds",
                next_at != 0 ? json_real(seconds(next_at - now)) : json_null(), "over_seconds",
                state == CRASH_RECOVERING ? json_real(seconds(usec_sub(fleet_recovered_at(fleet), now)))
                                          : json_null(),
                "last", varlink_text(fleet->crash_last), "text", varlink_text(text));

        return quoted_put(object, &fleet->crash_quoted);
}

static json_t *render_classes(const struct job_classes *list)
{
        _cleanup_json_ json_t *classes = json_array();

        for (size_t i = 0; i < list->n; i++) {
                json_t *class = json_pack("{s:o, s:I}", "class", varlink_text(list->list[i].name), "jobs",
                                          (json_int_t)list->list[i].jobs);

                if (json_array_append_new(classes, class) < 0)
                        return NULL;
        }
        return TAKE_PTR(classes);
}

static json_t *render_culprits(const struct fleet *fleet, usec_t now)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < CULPRITS_KEPT && fleet->culprits[i].at != 0; i++) {
                const struct culprits *culprits = &fleet->culprits[i];
                char text[CULPRITS_TEXT_MAX];

                json_t *entry = json_pack(
                        "{s:o, s:I, s:s, s:I, s:I, s:f, s:f, s:o, s:I, s:o}", "worker",
                        varlink_text(WORKER_ID_OF(fleet->settings->name, culprits->index)), "pid",
                        (json_int_t)culprits->pid, "cause", culprits_cause_name(culprits->cause),
                        "memory_bytes", (json_int_t)culprits->memory_bytes, "growth_bytes",
                        (json_int_t)culprits->growth_bytes, "growth_seconds", seconds(culprits->growth_usec),
                        "age_seconds", seconds(usec_sub(now, culprits->at)), "classes",
                        render_classes(&culprits->classes), "more_classes",
                        (json_int_t)culprits->classes.more, "text",
                        varlink_text(culprits_text(fleet, culprits, text, sizeof(text))));

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

json_t *status_orderer(const struct orderer *by)
{
        if (!by->known)
                return json_null();
        return json_pack("{s:I, s:o}", "uid", (json_int_t)by->uid, "name", varlink_text(by->name));
}

/* Seconds since 1970; null if not known. */
static json_t *time_of(usec_t at, const struct status_info *info, usec_t now)
{
        return at == 0 ? json_null() : json_real(seconds(usec_sub(info->realtime, usec_sub(now, at))));
}

/* Renders the template that workers are or will be forked from; null if there is none. */
static json_t *render_template(const struct fleet *fleet, usec_t now)
{
        const char *refused = fleet_preload_refused(fleet);
        const struct template *template = fleet_template(fleet), *kept = fleet_template_kept(fleet);

        if (!fleet->settings->preload || (!template && !kept && refused[0] == '\0'))
                return json_null();
        usec_t end_at =
                fleet->rollout.kept_since != 0 ? usec_add(fleet->rollout.kept_since, TEMPLATE_KEEP_USEC) : 0;
        json_t *object = json_pack(
                "{s:o, s:s?, s:I, s:I, s:o, s:o, s:o, s:o}", "pid",
                template ? json_integer(template_pid(template)) : json_null(), "state",
                template ? template_state_name(template->state) : NULL, "generation",
                (json_int_t)fleet->generation, "memory_bytes",
                (json_int_t)(template ? template->memory_bytes : 0), "refused", varlink_text(refused),
                "kept_generation", kept ? json_integer((json_int_t)kept->generation) : json_null(),
                "kept_memory_bytes", kept ? json_integer((json_int_t)kept->memory_bytes) : json_null(),
                "kept_seconds",
                kept && end_at != 0 ? json_real(seconds(usec_sub(end_at, now))) : json_null());
        return quoted_put(object, fleet_preload_is_refused(fleet) ? &fleet->preload.quoted : &nothing);
}

/* Null if the workers do not grow. */
static json_t *render_leak(const struct fleet *fleet)
{
        const struct worker *first = leak_first(fleet);
        uint64_t than = 0;
        double times = leak_times(fleet, &than);
        char text[LEAK_TEXT_MAX];

        if (!fleet->leak.grows)
                return json_null();
        return json_pack("{s:I, s:I, s:o, s:o, s:o, s:o}", "bytes_per_hour",
                         (json_int_t)leak_bytes_per_hour(fleet), "generation",
                         (json_int_t)fleet->leak.generation, "reaches_seconds",
                         first ? json_real(seconds(leak_reaches(first))) : json_null(), "times",
                         times > 0 ? json_real((double)(int64_t)(times * 10 + 0.5) / 10) : json_null(),
                         "than_generation", than > 0 ? json_integer((json_int_t)than) : json_null(), "text",
                         varlink_text(leak_text(fleet, text)));
}

static json_t *render_fleet(const struct fleet *fleet, const struct status_info *info, usec_t now)
{
        const struct fleet_settings *settings = fleet->settings;
        struct fleet_counts counts = fleet_count(fleet, now);
        char waits_for[512], ordered[FLEET_ORDERED_MAX], scaled[FLEET_SCALED_MAX];
        bool is_scaled = fleet_is_scaled(fleet);

        fleet_waits_for(fleet, now, waits_for, sizeof(waits_for));
        const struct json_member members[] = {
                {"name", TEXT(settings->name)},
                {"framework", WORD(settings->traits->name)},
                {"log", TEXT(log_of_workers(settings->log))},
                {"target", NUMBER(fleet_target(fleet))},
                {"configured", NUMBER(settings->active_process_count)},
                {"scaled_by", NULL_UNLESS(is_scaled, status_orderer(&fleet->scale_by))},
                {"scaled_at", time_of(is_scaled ? fleet->scale_at : 0, info, now)},
                {"scaled_text", TEXT(fleet_scaled_text(fleet, now, scaled))},
                {"active", NUMBER(counts.active)},
                {"starting", NUMBER(counts.starting)},
                {"hung", NUMBER(counts.hung)},
                {"quiet", NUMBER(counts.quiet)},
                {"stopping", NUMBER(counts.stopping)},
                {"max_processes", NUMBER(fleet_max_processes(fleet))},
                {"generation", NUMBER(generation_shown(fleet))},
                {"memory_bytes", NUMBER(counts.memory_bytes)},
                {"state", WORD(fleet_order_name(fleet_order(fleet)))},
                {"state_text", TEXT(fleet_ordered_text(fleet, now, ordered))},
                {"waits_for", TEXT(waits_for)},
                {"rollout", render_rollout(fleet, &counts, now)},
                {"crash", render_crash(fleet, now)},
                {"workers", status_workers(fleet, now)},
                {"memory_threshold_bytes",
                 NULL_UNLESS(settings->memory_threshold > 0, NUMBER(settings->memory_threshold))},
                {"culprits", render_culprits(fleet, now)},
                {"template", render_template(fleet, now)},
                {"waits_for_code", NULL_UNLESS(waits_for[0] != '\0', WORD(wait_code(fleet->waits_for)))},
                {"scaling", json_null()},
                {"trial", json_null()},
                {"growth", render_leak(fleet)},
                {"reload_outdated", NUMBER(generation_outdated_by_reload(fleet))},
        };
        return json_object_of(members, ELEMENTSOF(members));
}

static json_t *render_redis(const struct status_info *info)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < info->facts->n_redis; i++) {
                const struct problem_redis *redis = &info->facts->redis[i];
                double rtt_ms = (double)redis->rtt_usec / (double)USEC_PER_MSEC;
                static const struct error_report none;
                const struct error_report *error =
                        reader_state_answers(redis->state) || !redis->error ? &none : redis->error;
                json_t *entry =
                        json_pack("{s:s, s:o, s:o, s:s, s:o, s:o}", "kind", redis->kind, "url",
                                  varlink_text(redis->url), "server", varlink_text(redis->server), "state",
                                  reader_state_name(redis->state), "error", varlink_text(error->text),
                                  "rtt_ms", redis->rtt_usec > 0 ? json_real(rtt_ms) : json_null());

                if (json_array_append_new(list, quoted_put(entry, &error->quoted)) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

/* Null while sqmgr is not shutting down. */
static json_t *render_shutdown(const struct world *world, usec_t now)
{
        usec_t at = world->shutdown_now ? 0 : usec_add(world->shutdown_at, world->settings->shutdown_timeout);
        char text[128];

        if (!world->shutting_down)
                return json_null();
        return json_pack("{s:f, s:s}", "seconds_left", seconds(usec_sub(at, now)), "text",
                         world_stopping_text(world, now, text, sizeof(text)));
}

static json_t *render_problem(const struct problem *problem, const struct status_info *info, usec_t now)
{
        const struct problem_kind *kind = &problem_kinds[problem->code];
        _cleanup_free_ char *command =
                problem_command(problem, info->facts->instance, info->facts->config_path);
        _cleanup_free_ char *summary = NULL;
        char about[PROBLEM_ABOUT_MAX];

        if (!command || asprintf(&summary, "%s: %s", problem_about(problem, about), problem->text) < 0)
                return NULL;
        json_t *object =
                json_pack("{s:s, s:s, s:o, s:o, s:I, s:o, s:s, s:o, s:o, s:b}", "code", kind->name,
                          "severity", problem_severity_name(problem->severity), "fleet",
                          varlink_text(problem->fleet ? problem->fleet->settings->name : NULL), "worker",
                          varlink_text(problem->worker ? WORKER_ID(problem->worker) : NULL), "count",
                          (json_int_t)problem->count, "summary", varlink_text(summary), "remedy",
                          problem_remedy(problem), "command", varlink_text(command), "since",
                          time_of(problem->since, info, now), "unready", (int)problem->unready);
        return quoted_put(object, problem->quoted ?: &nothing);
}

/* Lists the problems, the worst first. */
static json_t *render_problems(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                               usec_t now)
{
        _cleanup_json_ json_t *list = json_array();
        struct problems problems = {0};

        problems_judge(&problems, info->facts, info->world, fleets, n_fleets, now);
        problems_sort(&problems);
        bool failed = problems.lost;
        for (size_t i = 0; i < problems.n && !failed; i++)
                failed = json_array_append_new(list, render_problem(&problems.list[i], info, now)) < 0;
        problems_clear(&problems);
        return failed ? NULL : TAKE_PTR(list);
}

json_t *status_render(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                      usec_t now)
{
        _cleanup_json_ json_t *list = json_array();

        FOREACH_POINTER(fleet, fleets, n_fleets) {
                json_t *entry = render_fleet(fleet, info, now);

                if (json_array_append_new(list, entry) < 0 ||
                    subsystems_status(info->subsystems, fleet, entry) < 0)
                        return NULL;
        }
        return json_pack("{s:s, s:s, s:I, s:f, s:o, s:o, s:O, s:o}", "instance", info->instance, "version",
                         info->version, "pid", (json_int_t)info->pid, "uptime_seconds",
                         seconds(usec_sub(now, info->started_at)), "shutdown",
                         render_shutdown(info->world, now), "redis", render_redis(info), "fleets", list,
                         "problems", render_problems(info, fleets, n_fleets, now));
}

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
static bool is_repeated(const struct problem_facts *known, size_t i)
{
        for (size_t j = 0; j < i; j++)
                if (strcmp(known->redis[j].url, known->redis[i].url) == 0)
                        return true;
        return false;
}

static bool all_up(const struct problem_facts *known, const char *url)
{
        for (size_t i = 0; i < known->n_redis; i++)
                if (strcmp(known->redis[i].url, url) == 0 && !reader_state_answers(known->redis[i].state))
                        return false;
        return true;
}

/* Prints whether each server is up, or the duration of its last answer if known. */
static void put_servers(struct facts *facts, const char *name, const char *help, bool of_databases, bool up)
{
        const struct problem_facts *known = facts->info->facts;

        FAMILY(facts, name, "gauge", help);
        for (size_t i = 0; i < known->n_redis; i++) {
                const struct problem_redis *redis = &known->redis[i];

                if (!!redis->database != of_databases || is_repeated(known, i))
                        continue;
                if (up)
                        SAMPLE(facts, all_up(known, redis->url), "url", redis->url);
                else if (redis->rtt_usec > 0)
                        SAMPLE(facts, usec_seconds(redis->rtt_usec), "url", redis->url);
        }
}

static void put_redis(struct facts *facts)
{
        put_servers(facts, "sqmgr_redis_up", "1 if the connection to this Redis is up.", false, true);
        put_servers(facts, "sqmgr_redis_round_trip_seconds", "Duration of the last answer of this Redis.",
                    false, false);
        put_servers(facts, "sqmgr_database_up", "1 if the connection to this database is up.", true, true);
        put_servers(facts, "sqmgr_database_round_trip_seconds",
                    "Duration of the last transaction in this database.", true, false);
}

/* True if name is safe as a label. Invalid text could become equal to another name once replaced, and
 * Prometheus rejects duplicate samples. */
static bool is_label(const char *name)
{
        _cleanup_free_ char *copy = printable_copy(name, true);

        return copy && strcmp(copy, name) == 0;
}

/* Returns NULL if the queues are not read or already reported. One Redis user may lack permissions that
 * another has. */
static const struct queues *queues_of(const struct problem_facts *known, size_t i)
{
        for (size_t j = 0; j < i; j++)
                if (known->redis[j].queues && strcmp(known->redis[j].url, known->redis[i].url) == 0)
                        return NULL;
        return known->redis[i].queues;
}

static void put_queues(struct facts *facts)
{
        const struct problem_facts *known = facts->info->facts;
        const struct queues *queues;

        FAMILY(facts, "sqmgr_queue_jobs", "gauge", "Jobs waiting in the queue.");
        for (size_t i = 0; i < known->n_redis; i++)
                for (size_t j = 0; (queues = queues_of(known, i)) && j < queues->n; j++)
                        if (is_label(queues->list[j].name))
                                SAMPLE(facts, (double)queues->list[j].size, "url", known->redis[i].url,
                                       "queue", queues->list[j].name);
        FAMILY(facts, "sqmgr_queue_latency_seconds", "gauge",
               "How long the oldest job in the queue has waited.");
        for (size_t i = 0; i < known->n_redis; i++)
                for (size_t j = 0; (queues = queues_of(known, i)) && j < queues->n; j++)
                        if (queues->list[j].latency_known && is_label(queues->list[j].name))
                                SAMPLE(facts, usec_seconds(queues->list[j].latency), "url",
                                       known->redis[i].url, "queue", queues->list[j].name);
        FAMILY(facts, "sqmgr_set_jobs", "gauge", "Jobs that are scheduled, dead, or to be retried.");
        for (size_t i = 0; i < known->n_redis; i++) {
                queues = queues_of(known, i);
                if (!queues)
                        continue;
                SAMPLE(facts, (double)queues->retry, "url", known->redis[i].url, "set", "retry");
                SAMPLE(facts, (double)queues->schedule, "url", known->redis[i].url, "set", "schedule");
                SAMPLE(facts, (double)queues->dead, "url", known->redis[i].url, "set", "dead");
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
        if (facts->info->facts->n_redis > 0) {
                put_redis(facts);
                put_queues(facts);
        }
        put_problems(facts);
        put_fleets(facts);
        SUBSYSTEMS_CALL(facts->info->subsystems, metrics, facts->world, facts->metrics);
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
