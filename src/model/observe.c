/* SPDX-License-Identifier: MIT */
/* Folds what was observed into the model. */
#include "model/observe.h"
#include "base/parse.h"
#include "base/printable.h"
#include "model/backoff.h"
#include "model/rollout.h"
#include "wire/control.h"
#include <stdio.h>
#include <string.h>

/* A suspend or a clock step: more than clocks drift apart between two ticks. */
#define CLOCK_STEP_USEC ((int64_t)USEC_PER_SEC)
/* A worker that was active for less is a short life. */
#define SHORT_LIFE_USEC (10 * USEC_PER_SEC)
/* One that has been active for this long ends a row of short lives. */
#define STABLE_USEC (60 * USEC_PER_SEC)
/* A replacement that breaches the threshold within this time of its first beat is churn. */
#define CHURN_USEC         (10 * USEC_PER_MIN)
#define MEMORY_SAMPLES     3
#define STALL_MINIMUM_USEC (5 * USEC_PER_SEC)

static void worker_set_state(struct worker *worker, enum worker_state state, enum reason reason, usec_t now)
{
        worker->state = state;
        worker->reason = reason;
        worker->state_at = now;
}

static const char *worker_event_name(const struct worker *worker, char text[static 300])
{
        snprintf(text, 300, "%s (pid %d)", WORKER_ID(worker), (int)worker_pid(worker));
        return text;
}

bool observe_clocks(struct world *world, usec_t monotonic, usec_t boottime, usec_t realtime)
{
        struct doubt *doubt = &world->doubt;
        usec_t interval = world->settings->check_interval;
        int64_t boot_lag = (int64_t)(boottime - monotonic), real_lag = (int64_t)(realtime - monotonic);
        const char *why = NULL;

        if (doubt->due != 0) {
                if (llabs(boot_lag - doubt->boot_lag) > CLOCK_STEP_USEC)
                        why = "the machine was suspended";
                else if (llabs(real_lag - doubt->real_lag) > CLOCK_STEP_USEC)
                        why = "the clock was stepped";
                else if (monotonic > usec_add(doubt->due, MAX(2 * interval, STALL_MINIMUM_USEC)))
                        why = "sqmgr itself was stalled";
        }
        doubt->boot_lag = boot_lag;
        doubt->real_lag = real_lag;
        doubt->due = usec_add(monotonic, interval);
        if (!why)
                return false;
        doubt->since = monotonic;
        world_event(world, EVENT_TIME_DOUBT, NULL, NULL,
                    "%s: nothing is quieted or stopped before a fresh beat", why);
        return true;
}

static void crash_observe_time(struct fleet *fleet, usec_t now)
{
        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state != WORKER_ACTIVE)
                        continue;
                if (worker->active_at >= fleet->crash.failed_at &&
                    now >= usec_add(worker->active_at, STABLE_USEC))
                        backoff_reset(&fleet->crash);
                if (worker->active_at >= fleet->churn.failed_at &&
                    now >= usec_add(worker->active_at, CHURN_USEC))
                        backoff_reset(&fleet->churn);
        }
}

static void stale_observe_time(struct world *world, struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;
        char name[300], span[32];

        if (worker->stale_told || worker->state > WORKER_QUIET ||
            worker_silent_usec(worker, now) <= worker_stale_usec(worker))
                return;
        worker->stale_told = true;
        format_duration(usec_sub(now, worker->beat_at), span, sizeof(span));
        world_event(world, EVENT_STALE, fleet, worker, "%s: its beat stopped %s ago, it is kept as it is",
                    worker_event_name(worker, name), span);
}

/* Is there one by which to tell that Redis takes beats? */
static void heard_observe_time(struct fleet *fleet, usec_t now)
{
        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state <= WORKER_QUIET && worker_fresh(worker, now)) {
                        fleet->heard_at = fleet->heard_at == 0 ? now : fleet->heard_at;
                        return;
                }
        }
        fleet->heard_at = 0;
}

/* The later stage of stale. */
static void hang_observe_time(struct world *world, struct worker *worker, usec_t now)
{
        char name[300], span[32];

        if (worker->hung || worker->state > WORKER_QUIET || !worker_silent_too_long(worker, now))
                return;
        worker->hung = true;
        format_duration(usec_sub(now, worker->beat_at), span, sizeof(span));
        world_event(world, EVENT_HUNG, worker->fleet, worker, "%s hangs: its beat stopped %s ago, %s",
                    worker_event_name(worker, name), span,
                    worker->state == WORKER_ACTIVE ? "it no longer counts as active"
                                                   : "and it has not finished its jobs");
}

/* Told once, where it keeps the fleet below its count, and is not for want of Redis. */
static void loop_observe_time(struct fleet *fleet, usec_t now)
{
        struct backoff *crash = &fleet->crash;
        char span[32];

        if (crash->loop_told || crash->count < FLEET_CRASH_LOOP || now >= crash->next_at ||
            fleet->waits_for != WAIT_BACKOFF || !fleet->redis_up)
                return;
        crash->loop_told = true;
        format_duration(usec_sub(crash->next_at, now), span, sizeof(span));
        world_event(
                fleet->world, EVENT_CRASH_LOOP, fleet, NULL,
                "fleet '%s' is in a crash loop: %u short lives in a row, the next start in %s; the last: %s",
                fleet->settings->name, crash->count, span, fleet->crash_last);
}

/* A place that a boot takes, or a drain without jobs, is soon free again. */
static bool wait_may_last(const struct fleet *fleet)
{
        if (fleet->waits_for == WAIT_MEMORY || fleet->waits_for == WAIT_HUNG)
                return true;
        for (size_t i = 0; i < fleet->n_workers && fleet->waits_for == WAIT_PLACES; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker_hangs(worker) ||
                    (worker->busy > 0 && (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING)))
                        return true;
        }
        return false;
}

static void wait_observe_time(struct fleet *fleet, usec_t now)
{
        enum wait wait = wait_may_last(fleet) ? fleet->waits_for : WAIT_NONE;
        char text[512];

        if (wait != WAIT_NONE && wait != fleet->wait_told)
                world_event(fleet->world, EVENT_PLACES_HELD, fleet, NULL, "fleet '%s' %s",
                            fleet->settings->name, fleet_waits_for(fleet, now, text, sizeof(text)));
        fleet->wait_told = wait;
}

void observe_time(struct world *world, usec_t now)
{
        for (size_t i = 0; i < world->n_fleets; i++) {
                struct fleet *fleet = world->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++) {
                        stale_observe_time(world, fleet->workers[j], now);
                        hang_observe_time(world, fleet->workers[j], now);
                }
                heard_observe_time(fleet, now);
                crash_observe_time(fleet, now);
                loop_observe_time(fleet, now);
                rollout_observe_time(fleet, now);
                wait_observe_time(fleet, now);
        }
}

void observe_available_memory(struct world *world, uint64_t bytes)
{
        world->available_bytes = bytes;
}

void observe_oom_kills(struct world *world, uint64_t kills, usec_t now)
{
        if (world->oom_known && kills > world->oom_kills)
                world->oom_at = now;
        world->oom_known = true;
        world->oom_kills = kills;
}

void observe_redis(struct fleet *fleet, bool up, usec_t now)
{
        /* A first connection says nothing of the failures before this sqmgr: Redis need not have been away.
         */
        bool continued = fleet->continued;
        fleet->continued = false;
        if (fleet->redis_up == up)
                return;
        bool first = up && fleet->redis_at == 0;
        fleet->redis_up = up;
        fleet->redis_at = now;
        if (up && !continued)
                backoff_reset(&fleet->crash);
        if (first)
                return;
        world_event(fleet->world, up ? EVENT_REDIS_UP : EVENT_REDIS_DOWN, fleet, NULL,
                    up ? "fleet '%s': Redis is back"
                       : "fleet '%s': Redis is away, its workers are kept as they are",
                    fleet->settings->name);
}

void observe_failover(struct fleet *fleet, const char *from, const char *to)
{
        world_event(fleet->world, EVENT_REDIS_FAILOVER, fleet, NULL,
                    "fleet '%s': Redis failed over from %s to %s", fleet->settings->name, from, to);
}

/* Puts a copy of model in its place. NULL: memory is short. */
static struct worker *fleet_add_worker(struct fleet *fleet, const struct worker *model)
{
        if (fleet->n_workers == fleet->workers_allocated) {
                size_t allocated = MAX((size_t)8, 2 * fleet->workers_allocated);
                struct worker **workers = realloc(fleet->workers, allocated * sizeof(struct worker *));

                if (!workers)
                        return NULL;
                fleet->workers = workers;
                fleet->workers_allocated = allocated;
        }
        struct worker *worker = calloc(1, sizeof(*worker));
        if (!worker)
                return NULL;
        *worker = *model;
        worker->fleet = fleet;
        size_t at = fleet->n_workers;
        while (at > 0 && fleet->workers[at - 1]->index > worker->index) {
                fleet->workers[at] = fleet->workers[at - 1];
                at--;
        }
        fleet->workers[at] = worker;
        fleet->n_workers++;
        return worker;
}

struct worker *observe_started(struct fleet *fleet, unsigned index, enum reason started_for, pid_t pid,
                               uint64_t pid_start, usec_t now)
{
        const struct worker model = {
                .index = index,
                .generation = fleet->generation,
                .pid = pid,
                .pid_start = pid_start,
                .state = WORKER_STARTING,
                .started_for = started_for,
                .spawned_at = now,
                .state_at = now,
        };
        struct worker *worker = fleet_add_worker(fleet, &model);
        if (!worker)
                return NULL;
        fleet->totals.starts[started_for]++;
        if (fleet->crash.freed > 0)
                fleet->crash.freed--;

        char name[300];
        world_event(fleet->world, EVENT_STARTED, fleet, worker, "%s started%s%s",
                    worker_event_name(worker, name),
                    started_for != REASON_NONE ? ", to replace one that leaves: " : "",
                    started_for != REASON_NONE ? reason_name(started_for) : "");
        return worker;
}

struct worker *observe_adopted(struct fleet *fleet, const struct worker *known, uint64_t pid_start,
                               uint64_t beat_pid_start, usec_t now)
{
        bool main_lives = pid_start == known->pid_start;
        bool beat_lives = known->beat_pid != 0 && beat_pid_start == known->beat_pid_start;
        struct worker *worker = fleet_add_worker(fleet, known);

        if (!worker)
                return NULL;
        if (!main_lives && !beat_lives)
                observe_exit(worker, &(struct exit_status){.known = false}, now);
        else if (!main_lives)
                observe_promoted(worker, now);
        else if (known->beat_pid != 0 && !beat_lives)
                observe_beat_process(worker, 0, 0, now);
        /* What ran then has been told. */
        if (known->reason == REASON_MEMORY)
                worker->breach = BREACH_LIMIT;
        else if (known->over_threshold)
                worker->breach = BREACH_THRESHOLD;
        return worker;
}

void observe_unadopted(struct worker *worker)
{
        worker->state = WORKER_GONE;
}

void observe_hold(struct fleet *fleet, usec_t until)
{
        fleet->hold_until = until;
}

void observe_generation(struct fleet *fleet, uint64_t generation)
{
        fleet->generation = MAX(fleet->generation, generation);
}

/* A life that ended too soon. Those of a time without Redis say nothing of the release. */
static void fleet_observe_failure(struct fleet *fleet, uint64_t generation, usec_t spawned_at,
                                  bool short_life, usec_t now)
{
        if (short_life)
                backoff_fail(&fleet->crash, fleet->settings->backoff_min, fleet->settings->backoff_max,
                             &fleet->random, now);
        if (generation == fleet->generation && fleet->redis_up && fleet->redis_at <= spawned_at)
                rollout_observe_failure(fleet, now);
}

void observe_start_failed(struct fleet *fleet, unsigned index, const char *why, usec_t now)
{
        /* A try uses a freed place up, too: the next one waits. */
        if (fleet->crash.freed > 0)
                fleet->crash.freed--;
        snprintf(fleet->crash_last, sizeof(fleet->crash_last), "%s could not be started: %s",
                 WORKER_ID_OF(fleet->settings->name, index), why);
        world_event(fleet->world, EVENT_START_FAILED, fleet, NULL, "%s", fleet->crash_last);
        fleet->lines_token = 0;
        fleet_observe_failure(fleet, fleet->generation, now, true, now);
}

/* Back to a worker that has not beaten: its beating process has gone while a wrapper around it lives. */
static void worker_observe_silent(struct worker *worker, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char name[300];

        snprintf(fleet->crash_last, sizeof(fleet->crash_last),
                 "%s: the process that beats is gone, its wrapper lives", worker_event_name(worker, name));
        fleet->lines_token = 0;
        world_event(fleet->world, EVENT_CRASHED, fleet, worker, "%s", fleet->crash_last);
        usec_t life = usec_sub(now, worker->active_at);
        if (life < rollout_trial_usec(fleet))
                fleet_observe_failure(fleet, worker->generation, worker->spawned_at, life < SHORT_LIFE_USEC,
                                      now);
        worker->has_beat = false;
        worker->active_at = 0;
        worker->last_life = MAX(life, (usec_t)1);
        worker->busy = 0;
        worker->hung = false;
        worker_set_state(worker, WORKER_STARTING, worker->reason, now);
}

void observe_beat_process(struct worker *worker, pid_t pid, uint64_t pid_start, usec_t now)
{
        if (pid == 0 && worker->state == WORKER_ACTIVE)
                worker_observe_silent(worker, now);
        if (worker->beat_pid != pid || worker->beat_pid_start != pid_start) {
                /* What another process said proves nothing of this one. */
                worker->idle_beats = 0;
                worker->oldest_job_at = 0;
                worker->threads_known = worker->threads_witness = false;
                worker->mark_at = 0;
        }
        worker->beat_pid = pid;
        worker->beat_pid_start = pid_start;
}

static bool memory_is_over(const struct fleet_settings *settings, uint64_t bytes)
{
        return (settings->memory_threshold > 0 && bytes > settings->memory_threshold) ||
               (settings->memory_limit > 0 && bytes > settings->memory_limit);
}

/* Its growth is counted from here on; but what took it over a limit still counts when its job has ended. */
static void worker_mark_memory(struct worker *worker, uint64_t bytes, usec_t now)
{
        if (bytes == 0 || (worker->mark_at != 0 && memory_is_over(worker->fleet->settings, bytes)))
                return;
        worker->mark_bytes = bytes;
        worker->mark_at = now;
}

static void worker_observe_first_beat(struct worker *worker, const struct heartbeat *beat, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char name[300];

        worker->has_beat = true;
        worker->last_life = 0;
        worker->booted = false;
        worker->beat_usec = beat->beat_usec;
        worker->beat_at = now;
        worker->busy = beat->busy;
        worker->idle_beats = beat->quiet && beat->busy == 0;
        worker_mark_memory(worker, beat->rss_bytes ?: worker->memory_bytes, now);
        if (worker->state != WORKER_STARTING)
                return;
        worker->active_at = now;
        if (beat->quiet) {
                worker->quiet_at = now;
                worker_set_state(worker, WORKER_QUIET, REASON_EXTERNAL, now);
                world_event(fleet->world, EVENT_QUIET, fleet, worker, "%s was quieted by someone else",
                            worker_event_name(worker, name));
                return;
        }
        worker_set_state(worker, WORKER_ACTIVE, REASON_NONE, now);
        rollout_observe_progress(fleet, now);
        world_event(fleet->world, EVENT_ACTIVE, fleet, worker, "%s takes jobs",
                    worker_event_name(worker, name));
}

/* A beat that counts as evidence: newer than the last, and both read while time and Redis were trusted. */
static void worker_observe_fresh_beat(struct worker *worker, const struct heartbeat *beat, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char name[300];

        worker->beat_at = now;
        worker->busy = beat->busy;
        worker->idle_beats = beat->quiet && beat->busy == 0 ? worker->idle_beats + 1 : 0;
        /* A sample may be of a job that began since the beat: what the beat says of its own moment is better.
         */
        if (beat->busy == 0)
                worker_mark_memory(worker, beat->rss_bytes ?: worker->memory_bytes, now);
        if (worker->stale_told || worker->hung) {
                world_event(fleet->world, EVENT_BEATS_AGAIN, fleet, worker, "%s beats again%s",
                            worker_event_name(worker, name),
                            worker_hangs(worker) ? ", and counts as active" : "");
                worker->stale_told = worker->hung = false;
        }
        if (worker->state == WORKER_ACTIVE && beat->quiet) {
                worker->quiet_at = now;
                worker_set_state(worker, WORKER_QUIET, REASON_EXTERNAL, now);
                world_event(fleet->world, EVENT_QUIET, fleet, worker, "%s was quieted by someone else",
                            worker_event_name(worker, name));
        } else if (worker->state == WORKER_QUIET && !beat->quiet) {
                worker->loud_beats++;
        }
}

void observe_heartbeat(struct worker *worker, const struct heartbeat *beat, usec_t now)
{
        const struct fleet *fleet = worker->fleet;
        /* What was read before a doubt, or over another connection, may be older than it looks: the first
         * reading after it is only the mark from which change is judged. */
        bool mark = worker->read_at <= fleet->world->doubt.since || worker->read_at < fleet->redis_at;
        usec_t read_before = worker->read_at;

        worker->read_at = now;
        if (beat->concurrency > 0)
                worker->concurrency = beat->concurrency;
        /* A list read at an earlier beat says nothing of this one. */
        if (beat->work_list_known || beat->beat_usec != worker->beat_usec)
                worker->work_list_empty = beat->work_list_known && beat->work_list_empty;

        if (!worker->has_beat) {
                worker_observe_first_beat(worker, beat, now);
                return;
        }
        if (beat->beat_usec == worker->beat_usec)
                return;
        bool older = beat->beat_usec < worker->beat_usec;
        worker->beat_usec = beat->beat_usec;
        if (older || beat->busy > 0 || !beat->quiet)
                worker->idle_beats = 0;
        if (mark || older)
                return;
        worker->beat_after = read_before;
        worker_observe_fresh_beat(worker, beat, now);
}

void observe_threads(struct worker *worker, unsigned job_threads)
{
        worker->threads_known = true;
        worker->threads = job_threads;
        if (worker->state == WORKER_ACTIVE && job_threads > 0)
                worker->threads_witness = true;
}

void observe_title(struct worker *worker, bool known, unsigned busy)
{
        worker->title_known = known;
        if (known && !worker->fleet->redis_up)
                worker->busy = busy;
}

void observe_booted(struct worker *worker, bool booted, usec_t now)
{
        char name[300];

        worker->boot_looked_at = now;
        if (booted && !worker->booted && worker->state == WORKER_STARTING)
                world_event(worker->fleet->world, EVENT_ELSEWHERE, worker->fleet, worker,
                            "%s has booted but its beat is not to be found: check redis_url, namespace, host "
                            "name",
                            worker_event_name(worker, name));
        /* Seen once, it stays true: a later look may have failed. */
        worker->booted |= booted;
}

/* since: when it can have begun. */
static void worker_observe_breach(struct worker *worker, enum breach breach, usec_t since)
{
        if (breach <= worker->breach)
                return;
        worker->breach = breach;
        if (worker->fleet->settings->traits->has_work_list)
                worker->breach_at = MAX(since, (usec_t)1);
}

static void worker_observe_over_threshold(struct worker *worker, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        const struct fleet_settings *settings = fleet->settings;
        char name[300], bytes[32], threshold[32];

        worker->over_threshold = true;
        /* The first of the samples in a row was one over it. */
        worker_observe_breach(worker, BREACH_THRESHOLD,
                              usec_sub(now, (MEMORY_SAMPLES - 1) * fleet->world->settings->check_interval));
        format_size(worker->memory_bytes, bytes, sizeof(bytes));
        format_size(settings->memory_threshold, threshold, sizeof(threshold));
        world_event(fleet->world, EVENT_MEMORY_OVER, fleet, worker, "%s holds %s, over memory_threshold %s",
                    worker_event_name(worker, name), bytes, threshold);
        /* One that outgrows it while it boots does so before its first beat. */
        bool late = worker->active_at != 0 && usec_sub(now, worker->active_at) >= CHURN_USEC;
        if (worker->started_for != REASON_MEMORY || late)
                return;
        backoff_fail(&fleet->churn, settings->backoff_min, settings->backoff_max, &fleet->random, now);
        world_event(
                fleet->world, EVENT_MEMORY_CHURN, fleet, worker,
                "%s replaced a worker over memory_threshold %s and is over it itself: raise memory_threshold",
                worker_event_name(worker, name), threshold);
}

void observe_memory(struct worker *worker, uint64_t bytes, usec_t now)
{
        const struct fleet_settings *settings = worker->fleet->settings;

        worker->memory_bytes = bytes;
        if (worker->mark_at == 0 && worker->has_beat)
                worker_mark_memory(worker, bytes, now);
        bool over_limit = settings->memory_limit > 0 && bytes > settings->memory_limit;
        /* A limit below what a worker needs to boot must not churn. */
        if (over_limit && !worker->over_limit && worker->state <= WORKER_ACTIVE &&
            (worker->active_at == 0 || usec_sub(now, worker->active_at) < CHURN_USEC))
                backoff_fail(&worker->fleet->crash, settings->backoff_min, settings->backoff_max,
                             &worker->fleet->random, now);
        worker->over_limit = over_limit;
        if (over_limit)
                worker_observe_breach(worker, BREACH_LIMIT, now);
        if (settings->memory_threshold == 0)
                worker->over_threshold = false;
        bool over = settings->memory_threshold > 0 && bytes > settings->memory_threshold;
        worker->over_samples = over ? worker->over_samples + 1 : 0;
        if (worker->over_samples >= MEMORY_SAMPLES && !worker->over_threshold)
                worker_observe_over_threshold(worker, now);
}

void observe_jobs(struct worker *worker, unsigned n_jobs, usec_t oldest, usec_t now)
{
        worker->jobs_read = n_jobs;
        worker->oldest_job_at = oldest > 0 ? MAX(usec_sub(now, oldest), (usec_t)1) : 0;
}

void observe_long_job(struct worker *worker, const struct job *job, usec_t runs, bool dumped)
{
        char name[300], names[700], span[32];

        /* They come from outside. */
        snprintf(names, sizeof(names), "%.200s %.200s (queue %.200s)", job->class, job->jid, job->queue);
        printable_replace(names, strlen(names), false);
        format_duration(runs, span, sizeof(span));
        world_event(worker->fleet->world, EVENT_JOB_LONG, worker->fleet, worker,
                    "%s has been running for %s in %s%s", names, span, worker_event_name(worker, name),
                    dumped ? ": what its threads are at is in the worker's log" : "");
}

/* True where the signal went out; else books why it did not, and tells it once. */
static bool worker_observe_signal(struct worker *worker, const char *what, int error)
{
        char name[300];
        bool told = worker->signal_error == error;

        worker->signal_error = error;
        if (error == 0)
                return true;
        /* A process that is gone is told of by its exit. */
        if (!told && error != ESRCH)
                world_event(worker->fleet->world, EVENT_SIGNAL_REFUSED, worker->fleet, worker,
                            "cannot %s %s: %s", what, worker_event_name(worker, name),
                            error == ENOTSUP ? "it does not catch the signal, which would kill it"
                                             : strerrordesc_np(error));
        return false;
}

void observe_quieted(struct worker *worker, enum reason reason, int error, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char name[300];

        if (!worker_observe_signal(worker, "quiet", error))
                return;
        worker->loud_beats = 0;
        if (worker->state != WORKER_ACTIVE)
                return;
        worker->quiet_at = now;
        worker->idle_beats = 0;
        worker_set_state(worker, WORKER_QUIET, reason, now);
        if (reason == REASON_RESTART)
                rollout_observe_progress(fleet, now);
        world_event(fleet->world, EVENT_QUIET, fleet, worker, "%s takes no more jobs: %s, %u running",
                    worker_event_name(worker, name), reason_name(reason), worker->busy);
}

void observe_stopped(struct worker *worker, enum reason reason, int error, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char name[300];

        if (!worker_observe_signal(worker, "stop", error))
                return;
        bool never_beat = worker->state == WORKER_STARTING, was_told = worker_is_told_to_exit(worker);
        worker->stop_at = now;
        worker->hung = false;
        worker_set_state(worker, WORKER_STOPPING, reason, now);
        if (reason != REASON_BOOT) {
                world_event(fleet->world, EVENT_STOPPING, fleet, worker,
                            was_told ? "%s was told to exit, and is to be killed if it does not: %s"
                                     : "%s is told to exit: %s",
                            worker_event_name(worker, name), reason_name(reason));
                return;
        }
        snprintf(fleet->crash_last, sizeof(fleet->crash_last), "%s did not beat within boot_timeout",
                 worker_event_name(worker, name));
        fleet->lines_token = 0;
        world_event(fleet->world, EVENT_BOOT_TIMEOUT, fleet, worker, "%s, it is ended", fleet->crash_last);
        /* boot_timeout counts time with Redis up alone: that it was away earlier is no excuse. */
        fleet_observe_failure(fleet, worker->generation, now, never_beat, now);
}

void observe_killed(struct worker *worker, int error, usec_t now)
{
        char name[300], span[32];

        if (!worker_observe_signal(worker, "kill", error))
                return;
        worker->killed_at = now;
        format_duration(usec_sub(now, worker->stop_at), span, sizeof(span));
        world_event(worker->fleet->world, EVENT_KILLED, worker->fleet, worker,
                    "%s did not exit within %s (stop_timeout) and is killed", worker_event_name(worker, name),
                    span);
}

void observe_promoted(struct worker *worker, usec_t now _unused_)
{
        worker->pid = worker->beat_pid;
        worker->pid_start = worker->beat_pid_start;
}

void observe_inherited(struct worker *worker, pid_t pid, uint64_t pid_start)
{
        char name[300];

        world_event(worker->fleet->world, EVENT_STARTED, worker->fleet, worker,
                    "%s went to the background, process %d takes its place: let the command stay in the "
                    "foreground",
                    worker_event_name(worker, name), (int)pid);
        worker->pid = pid;
        worker->pid_start = pid_start;
}

void exit_status_text(const struct exit_status *exit, char *text, size_t size)
{
        if (exit->launch_error)
                snprintf(text, size, "%s", exit->launch_error);
        else if (!exit->known)
                snprintf(text, size, "exited, status unknown");
        else if (exit->by_signal)
                snprintf(text, size, "was killed by signal %d (SIG%s)", exit->status,
                         sigabbrev_np(exit->status) ?: "?");
        else
                snprintf(text, size, "exited with status %d", exit->status);
}

/* What is told is one sentence on one line: lines that are quoted in it are set apart by bars. */
static void quote_lines(char *text, size_t size, const char *lines)
{
        size_t length = strlen(text);

        if (lines[0] == '\0')
                return;
        snprintf(text + length, size - length, CONTROL_LAST_LINES_BEGIN "%s", lines);
        for (char *at = text + length; (at = strchr(at, '\n')); at++)
                *at = CONTROL_LAST_LINES_BAR;
        /* Cut at its bound, it may end within a character. */
        printable_replace(text, strlen(text), true);
}

/* It ended although nobody told it to. */
static void worker_observe_crash(struct worker *worker, const struct exit_status *exit, const char *how,
                                 usec_t now)
{
        struct fleet *fleet = worker->fleet;
        bool beaten = worker->active_at > 0 || worker->last_life > 0;
        usec_t life = usec_sub(now, worker->active_at > 0 ? worker->active_at : worker->spawned_at);
        char name[300], span[32], when[96];

        /* A wrapper that follows the process that beat: that one's end was it. */
        if (worker->last_life > 0)
                life = worker->last_life;
        format_duration(life, span, sizeof(span));
        snprintf(when, sizeof(when), beaten ? "%s after its first beat" : "before its first beat, after %s",
                 span);
        snprintf(fleet->crash_last, sizeof(fleet->crash_last), "%s %s %s", worker_event_name(worker, name),
                 how, when);
        if (exit->last_lines)
                quote_lines(fleet->crash_last, sizeof(fleet->crash_last), exit->last_lines);
        fleet->lines_token = exit->lines_token;
        world_event(fleet->world, EVENT_CRASHED, fleet, worker, "%s", fleet->crash_last);

        if (worker->state == WORKER_QUIET)
                return;
        bool short_life = !beaten || life < SHORT_LIFE_USEC;
        if (!short_life && now < fleet->crash.next_at)
                fleet->crash.freed++;
        /* With a last life this end has been booked. */
        if (worker->last_life == 0 && (!beaten || life < rollout_trial_usec(fleet)))
                fleet_observe_failure(fleet, worker->generation, worker->spawned_at, short_life, now);
}

void observe_exit(struct worker *worker, const struct exit_status *exit, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char how[1100], name[300];

        exit_status_text(exit, how, sizeof(how));
        if (worker_is_told_to_exit(worker)) {
                world_event(fleet->world, EVENT_GONE, fleet, worker, "%s %s, as told: %s",
                            worker_event_name(worker, name), how, reason_name(worker->reason));
                rollout_observe_progress(fleet, now);
        } else {
                worker->reason = worker->state == WORKER_QUIET ? worker->reason : REASON_CRASH;
                worker_observe_crash(worker, exit, how, now);
        }
        fleet->totals.ends[worker->reason]++;
        worker_set_state(worker, WORKER_GONE, worker->reason, now);
}

void observe_last_lines(struct fleet *fleet, uint64_t token, const char *lines)
{
        struct rollout *rollout = &fleet->rollout;
        const char *told = NULL;

        if (rollout->lines_token == token) {
                rollout->lines_token = 0;
                quote_lines(rollout->error, sizeof(rollout->error), lines);
                told = rollout->error;
        }
        if (fleet->lines_token == token) {
                fleet->lines_token = 0;
                quote_lines(fleet->crash_last, sizeof(fleet->crash_last), lines);
                told = fleet->crash_last;
        }
        if (told && lines[0] != '\0')
                world_event(fleet->world, EVENT_LAST_LINES, fleet, NULL, "%s", told);
}
