/* SPDX-License-Identifier: MIT */
/* Renders the model as the status object that programs read. */
#include "daemon/api/status.h"
#include "advice/leak.h"
#include "advice/problem_rules.h"
#include "daemon/runtime/subsystem.h"
#include "frameworks/table.h"
#include "io/log.h"
#include "model/counts.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/generation.h"
#include "model/idle_proof.h"
#include "model/names.h"
#include "model/preload.h"
#include "model/rollout.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include "observe/culprits.h"
#include <string.h>

static const struct quoted nothing;

/* Seconds, rounded down to milliseconds. */
static double seconds(usec_t usec)
{
        return (double)(usec / USEC_PER_MSEC) / 1000.0;
}

static json_t *reason_json(enum reason reason)
{
        return reason == REASON_NONE ? json_null() : json_string(reason_name(reason));
}

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

/* Null if the number is not known. */
static json_t *jobs_number(const struct worker *worker, unsigned number)
{
        return worker_shows_busy(worker) ? json_integer(number) : json_null();
}

static json_t *heartbeat_age(const struct worker *worker, usec_t now)
{
        return worker_sends_heartbeats(worker)
                       ? json_real(seconds(usec_sub(now, worker->heartbeat.changed_at)))
                       : json_null();
}

/* Time until the worker is ready; null if it is ready, or if the time is not known. */
static json_t *ready_in(const struct worker *worker, usec_t now)
{
        if (worker->state != WORKER_ACTIVE || !worker_fresh(worker, now) || now >= worker_ready_at(worker))
                return json_null();
        return json_real(seconds(worker_ready_at(worker) - now));
}

static json_t *render_worker(const struct worker *worker, usec_t now)
{
        enum reason reason = worker->reason != REASON_NONE ? worker->reason : worker->verdict.retire_reason;
        usec_t oldest = worker_oldest_job_usec(worker, now);
        usec_t reaches = leak_reaches(worker);
        enum problem_code code = problem_of_worker(worker);
        char waits_for[512], leak[LEAK_TEXT_MAX];

        worker_waits_for(worker, now, waits_for, sizeof(waits_for));
        return json_pack(
                "{s:o, s:I, s:I, s:s, s:b, s:o, s:b, s:I, s:b, s:o, s:o, s:o, s:I, s:f, s:f, s:o, s:o, "
                "s:o, s:s, s:o, s:b, s:s?, s:o, s:o, s:s?, s:b}",
                "id", varlink_text(WORKER_ID(worker)), "index", (json_int_t)worker->index, "pid",
                (json_int_t)worker_pid(worker), "state", worker_state_name(worker->state), "ready",
                (int)worker_ready(worker, now), "ready_seconds", ready_in(worker, now), "hung",
                (int)worker->heartbeat.hung, "generation", (json_int_t)worker->generation, "outdated",
                (int)worker_outdated(worker), "busy", jobs_number(worker, worker->heartbeat.busy),
                "oldest_job_seconds", oldest > 0 ? json_real(seconds(oldest)) : json_null(), "concurrency",
                jobs_number(worker, worker->heartbeat.concurrency), "memory_bytes",
                (json_int_t)worker->memory.bytes, "uptime_seconds",
                seconds(usec_sub(now, worker->spawned_at)), "state_seconds",
                seconds(usec_sub(now, worker->state_at)), "reason", reason_json(reason), "reason_text",
                varlink_text(worker_reason_text(worker)), "waits_for", varlink_text(waits_for), "evidence",
                worker_evidence(worker, now), "beat_age_seconds", heartbeat_age(worker, now), "forked",
                (int)worker->process.forked, "waits_for_code",
                waits_for[0] != '\0' ? wait_code(worker->verdict.waits_for) : NULL, "memory_reaches_seconds",
                reaches != USEC_INFINITY ? json_real(seconds(reaches)) : json_null(), "memory_text",
                varlink_text(leak_worker_text(worker, leak)), "problem",
                code != PROBLEM_NONE ? problem_kinds[code].name : NULL, "remote",
                (int)worker->process.remote);
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
        struct fleet_counts counts = fleet_count(fleet, now);
        uint64_t threshold = fleet->settings->memory_threshold;
        char waits_for[512], ordered[FLEET_ORDERED_MAX], scaled[FLEET_SCALED_MAX];
        bool is_scaled = fleet_is_scaled(fleet);

        fleet_waits_for(fleet, now, waits_for, sizeof(waits_for));
        return json_pack(
                "{s:o, s:s, s:o, s:I, s:I, s:o, s:o, s:o, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, "
                "s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:s?, s:o, s:o, s:o, s:I}",
                "name", varlink_text(fleet->settings->name), "framework", fleet->settings->traits->name,
                "log", varlink_text(log_of_workers(fleet->settings->log)), "target",
                (json_int_t)fleet_target(fleet), "configured",
                (json_int_t)fleet->settings->active_process_count, "scaled_by",
                is_scaled ? status_orderer(&fleet->scale_by) : json_null(), "scaled_at",
                time_of(is_scaled ? fleet->scale_at : 0, info, now), "scaled_text",
                varlink_text(fleet_scaled_text(fleet, now, scaled)), "active", (json_int_t)counts.active,
                "starting", (json_int_t)counts.starting, "hung", (json_int_t)counts.hung, "quiet",
                (json_int_t)counts.quiet, "stopping", (json_int_t)counts.stopping, "max_processes",
                (json_int_t)fleet_max_processes(fleet), "generation", (json_int_t)generation_shown(fleet),
                "memory_bytes", (json_int_t)counts.memory_bytes, "state",
                fleet_order_name(fleet_order(fleet)), "state_text",
                varlink_text(fleet_ordered_text(fleet, now, ordered)), "waits_for", varlink_text(waits_for),
                "rollout", render_rollout(fleet, &counts, now), "crash", render_crash(fleet, now), "workers",
                status_workers(fleet, now), "memory_threshold_bytes",
                threshold > 0 ? json_integer((json_int_t)threshold) : json_null(), "culprits",
                render_culprits(fleet, now), "template", render_template(fleet, now), "waits_for_code",
                waits_for[0] != '\0' ? wait_code(fleet->waits_for) : NULL, "scaling", json_null(), "trial",
                json_null(), "growth", render_leak(fleet), "reload_outdated",
                (json_int_t)generation_outdated_by_reload(fleet));
}

static json_t *render_redis(const struct status_info *info)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < info->n_redis; i++) {
                const struct status_redis *redis = &info->redis[i];
                bool is_up = strcmp(redis->state, "connected") == 0;
                double rtt_ms = (double)(int64_t)(redis->rtt_ms * 1000 + 0.5) / 1000;
                static const struct error_report none;
                const struct error_report *error = is_up || !redis->error ? &none : redis->error;
                json_t *entry = json_pack("{s:s, s:o, s:o, s:s, s:o, s:o}", "kind", redis->kind, "url",
                                          varlink_text(redis->url), "server", varlink_text(redis->server),
                                          "state", redis->state, "error", varlink_text(error->text), "rtt_ms",
                                          redis->rtt_ms < 0 ? json_null() : json_real(rtt_ms));

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
