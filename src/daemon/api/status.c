/* SPDX-License-Identifier: MIT */
/* Renders the model as the status object that programs read. */
#include "daemon/api/status.h"
#include "frameworks/table.h"
#include "model/culprits.h"

/* Seconds, to the millisecond: more digits would be noise. */
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
        if (worker_fresh(worker, now))
                return "redis";
        if (!worker->fleet->redis_up && worker->title_known)
                return "title";
        return "none";
}

static json_t *render_worker(const struct worker *worker, usec_t now)
{
        enum reason reason = worker->reason != REASON_NONE ? worker->reason : worker->wanted_out;
        usec_t oldest = worker_oldest_job_usec(worker, now);
        char waits_for[256];

        worker_waits_for(worker, now, waits_for, sizeof(waits_for));
        return json_pack("{s:o, s:I, s:I, s:s, s:b, s:b, s:I, s:b, s:I, s:o, s:I, s:I, s:f, s:f, s:o, s:o, "
                         "s:o, s:s, s:o}",
                         "id", varlink_text(WORKER_ID(worker)), "index", (json_int_t)worker->index, "pid",
                         (json_int_t)worker_pid(worker), "state", worker_state_name(worker->state), "ready",
                         (int)worker_ready(worker, now), "hung", (int)worker->hung, "generation",
                         (json_int_t)worker->generation, "outdated", (int)worker_outdated(worker), "busy",
                         (json_int_t)worker->busy, "oldest_job_seconds",
                         oldest > 0 ? json_real(seconds(oldest)) : json_null(), "concurrency",
                         (json_int_t)worker->concurrency, "memory_bytes", (json_int_t)worker->memory_bytes,
                         "uptime_seconds", seconds(usec_sub(now, worker->spawned_at)), "state_seconds",
                         seconds(usec_sub(now, worker->state_at)), "reason", reason_json(reason),
                         "reason_text", varlink_text(reason_text(reason)), "waits_for",
                         varlink_text(waits_for), "evidence", worker_evidence(worker, now),
                         "beat_age_seconds",
                         worker->has_beat ? json_real(seconds(usec_sub(now, worker->beat_at))) : json_null());
}

json_t *status_workers(const struct fleet *fleet, usec_t now)
{
        _cleanup_json_ json_t *workers = json_array();

        for (size_t i = 0; i < fleet->n_workers; i++) {
                if (fleet->workers[i]->state == WORKER_GONE)
                        continue;
                if (json_array_append_new(workers, render_worker(fleet->workers[i], now)) < 0)
                        return NULL;
        }
        return TAKE_PTR(workers);
}

unsigned status_replaced(const struct fleet *fleet, usec_t now)
{
        unsigned outdated = fleet_count(fleet, now).outdated;

        return fleet->rollout.total > outdated ? fleet->rollout.total - outdated : 0;
}

static json_t *render_rollout(const struct fleet *fleet, unsigned outdated, usec_t now)
{
        return json_pack("{s:s, s:I, s:I, s:I, s:o}", "state", rollout_state_name(fleet->rollout.state),
                         "generation", (json_int_t)fleet->generation, "replaced",
                         (json_int_t)status_replaced(fleet, now), "outdated", (json_int_t)outdated, "error",
                         varlink_text(fleet->rollout.error));
}

static json_t *render_crash(const struct fleet *fleet, usec_t now)
{
        bool pending = fleet->crash.count > 0 && fleet->crash.next_at > now;

        return json_pack("{s:I, s:o, s:o}", "count", (json_int_t)fleet->crash.count, "next_start_seconds",
                         pending ? json_real(seconds(fleet->crash.next_at - now)) : json_null(), "last",
                         varlink_text(fleet->crash_last));
}

static json_t *render_classes(const struct culprits *culprits)
{
        _cleanup_json_ json_t *classes = json_array();

        for (size_t i = 0; i < culprits->n_classes; i++) {
                json_t *class = json_pack("{s:o, s:I}", "class", varlink_text(culprits->classes[i].name),
                                          "jobs", (json_int_t)culprits->classes[i].jobs);

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
                        render_classes(culprits), "more_classes", (json_int_t)culprits->more_classes, "text",
                        varlink_text(culprits_text(fleet, culprits, text, sizeof(text))));

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

static json_t *render_fleet(const struct fleet *fleet, usec_t now)
{
        struct fleet_counts counts = fleet_count(fleet, now);
        uint64_t threshold = fleet->settings->memory_threshold;
        char waits_for[512];

        fleet_waits_for(fleet, now, waits_for, sizeof(waits_for));
        return json_pack(
                "{s:o, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:o, s:o, s:o, s:o, s:o, "
                "s:o}",
                "name", varlink_text(fleet->settings->name), "framework", fleet->settings->traits->name,
                "target", (json_int_t)fleet_target(fleet), "active", (json_int_t)counts.active, "starting",
                (json_int_t)counts.starting, "hung", (json_int_t)counts.hung, "quiet",
                (json_int_t)counts.quiet, "stopping", (json_int_t)counts.stopping, "max_processes",
                (json_int_t)fleet_max_processes(fleet), "generation", (json_int_t)fleet->generation,
                "memory_bytes", (json_int_t)counts.memory_bytes, "state",
                fleet_order_name(fleet_order(fleet)), "waits_for", varlink_text(waits_for), "rollout",
                render_rollout(fleet, counts.outdated, now), "crash", render_crash(fleet, now), "workers",
                status_workers(fleet, now), "memory_threshold_bytes",
                threshold > 0 ? json_integer((json_int_t)threshold) : json_null(), "culprits",
                render_culprits(fleet, now));
}

static json_t *render_redis(const struct status_info *info)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < info->n_redis; i++) {
                const struct status_redis *redis = &info->redis[i];
                double rtt_ms = (double)(int64_t)(redis->rtt_ms * 1000 + 0.5) / 1000;
                json_t *entry = json_pack("{s:o, s:o, s:s, s:o}", "url", varlink_text(redis->url), "server",
                                          varlink_text(redis->server), "state", redis->state, "rtt_ms",
                                          redis->rtt_ms < 0 ? json_null() : json_real(rtt_ms));

                if (json_array_append_new(list, entry) < 0)
                        return NULL;
        }
        return TAKE_PTR(list);
}

json_t *status_render(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                      usec_t now)
{
        _cleanup_json_ json_t *list = json_array();

        for (size_t i = 0; i < n_fleets; i++)
                if (json_array_append_new(list, render_fleet(fleets[i], now)) < 0)
                        return NULL;
        return json_pack("{s:s, s:I, s:f, s:o, s:O}", "version", info->version, "pid", (json_int_t)info->pid,
                         "uptime_seconds", seconds(usec_sub(now, info->started_at)), "redis",
                         render_redis(info), "fleets", list);
}
