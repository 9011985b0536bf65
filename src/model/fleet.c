/* SPDX-License-Identifier: MIT */
/* What the model derives: counts, freshness, readiness, what to look at. */
#include "model/fleet.h"
#include "model/world.h"

/* Idle beats in a row that prove without, and in spite of, the thread witness: native threads inherit the
 * name of job threads and may never exit. */
#define IDLE_BEATS_PROVEN   2
#define IDLE_BEATS_OVERRULE 4
/* Job threads start after the first beat: the witness is called within this time. */
#define THREADS_LOOK_USEC (60 * USEC_PER_SEC)
/* One that has been active for this long, and is ready, ends a row of short lives. */
#define STABLE_USEC (60 * USEC_PER_SEC)
/* Whatever beats beside it is seen to do so within so long. */
#define OTHERS_LOOK_USEC (60 * USEC_PER_SEC)

/* A worker that is never seen at rest is quieted after so long as it is. */
#define REST_WAIT_USEC (10 * USEC_PER_SEC)
/* Tries come closer to each other than this, or it is not to be quieted any more. */
#define REST_TRIES_USEC (2 * USEC_PER_SEC)

unsigned fleet_count_in_force(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;

        /* A reload may have lowered the maximum since. */
        if (fleet->scale != 0)
                return MIN(fleet->scale, fleet_max_processes(fleet));
        if (!fleet_scales(fleet))
                return settings->active_process_count;
        return MIN(MAX(fleet->autoscale.count, settings->active_process_count), settings->active_process_max);
}

unsigned fleet_max_processes(const struct fleet *fleet)
{
        if (fleet->settings->max_processes > 0)
                return fleet->settings->max_processes;
        /* What the operator scales to is bounded by it. One that is switched off has room for a worker and
         * its replacement. */
        return 3 * MAX(MAX(fleet->settings->active_process_count, fleet->settings->active_process_max), 1U);
}

bool fleet_is_scaled(const struct fleet *fleet)
{
        if (fleet->scale == 0)
                return false;
        return fleet_scales(fleet) || fleet_count_in_force(fleet) != fleet->settings->active_process_count;
}

unsigned fleet_scale_min(const struct fleet *fleet)
{
        return fleet->settings->active_process_count == 0 ? 0 : 1;
}

usec_t fleet_forced_at(const struct fleet *fleet)
{
        const struct world *world = fleet->world;

        if (fleet->force || world->shutdown_now)
                return 0;
        return world->shutting_down ? usec_add(world->shutdown_at, world->settings->shutdown_timeout)
                                    : USEC_INFINITY;
}

struct cut_off worker_cut_off(const struct worker *worker)
{
        const struct world *world = worker->fleet->world;
        const struct fleet_settings *settings = worker->fleet->settings;
        usec_t drain = settings->drain_timeout, forced = fleet_forced_at(worker->fleet);
        struct cut_off cut = {.at = USEC_INFINITY};

        if (drain > 0 && worker->state == WORKER_QUIET)
                cut = (struct cut_off){usec_add(worker->quiet_at, drain), drain, CUT_DRAIN_TIMEOUT};
        else if (settings->stop_bounded && worker->state == WORKER_QUIET)
                cut = (struct cut_off){usec_add(worker->quiet_at, settings->stop_timeout),
                                       settings->stop_timeout, CUT_STOP_TIMEOUT};
        if (forced == 0)
                return (struct cut_off){0};
        if (forced < cut.at)
                cut = (struct cut_off){forced, world->settings->shutdown_timeout, CUT_SHUTDOWN_TIMEOUT};
        return cut;
}

unsigned fleet_target(const struct fleet *fleet)
{
        if (fleet->world->shutting_down || fleet_order(fleet) != ORDER_RUN)
                return 0;
        return fleet_count_in_force(fleet);
}

unsigned fleet_surge(const struct fleet *fleet)
{
        const struct share *surge = &fleet->settings->restart_surge;

        if (!surge->percent)
                return surge->value;
        return (unsigned)(((uint64_t)fleet_count_in_force(fleet) * surge->value + 99) / 100);
}

usec_t worker_stale_usec(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;

        return fleet->settings->traits->stale_usec + 2 * fleet->world->settings->check_interval;
}

usec_t worker_outlived_usec(const struct worker *worker)
{
        const struct settings *settings = worker->fleet->world->settings;
        usec_t unnoticed = settings->check_interval + settings_stall_usec(settings);

        return worker->fleet->settings->traits->stale_usec + unnoticed;
}

bool worker_fresh(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        return worker->has_beat && !worker->hung && fleet->redis_up && worker->beat_at >= fleet->redis_at &&
               worker->beat_at > fleet->world->doubt.since &&
               usec_sub(now, worker->beat_at) <= worker_stale_usec(worker);
}

usec_t worker_silent_usec(const struct worker *worker, usec_t now)
{
        const struct fleet *fleet = worker->fleet;

        if (!fleet->redis_up || !worker->has_beat)
                return 0;
        return usec_sub(now, MAX(worker->beat_at, MAX(fleet->redis_at, fleet->world->doubt.since)));
}

bool worker_silent_too_long(const struct worker *worker, usec_t now)
{
        usec_t hang_after = worker->fleet->settings->hang_after;

        return hang_after > 0 && worker_silent_usec(worker, now) > MAX(hang_after, worker_stale_usec(worker));
}

usec_t worker_ready_at(const struct worker *worker)
{
        return usec_add(worker->active_at, worker->fleet->settings->ready_after);
}

bool worker_ready(const struct worker *worker, usec_t now)
{
        return worker->state == WORKER_ACTIVE && now >= worker_ready_at(worker) && worker_fresh(worker, now);
}

bool worker_is_restless(const struct worker *worker, usec_t now)
{
        return worker->restless_at != 0 && usec_sub(now, worker->restless_seen_at) < REST_TRIES_USEC;
}

bool worker_awaits_rest(const struct worker *worker, usec_t now)
{
        return worker->fleet->settings->traits->quiet_at_rest &&
               (!worker_is_restless(worker, now) || usec_sub(now, worker->restless_at) < REST_WAIT_USEC);
}

/* It is empty, or its framework has none that could be waited for. */
static bool worker_work_list_clear(const struct worker *worker)
{
        return worker->work_list_empty || !worker->fleet->settings->traits->has_work_list;
}

bool worker_contradicted(const struct worker *worker)
{
        bool says_idle = worker->idle_beats >= IDLE_BEATS_PROVEN;
        bool says_loud = worker->loud_beats >= WORKER_LOUD_BEATS;

        if (worker->state != WORKER_QUIET || !worker->title_known ||
            !worker->fleet->settings->traits->has_title)
                return false;
        return worker->title_quiet ? says_loud || (says_idle && worker->title_busy > 0) : says_idle;
}

enum wait worker_proof_wait(const struct worker *worker, unsigned *ret_beats)
{
        *ret_beats = 0;
        if (worker->finishes_job)
                return WAIT_JOBS;
        /* The process that ran its jobs has exited. What lives on is a wrapper around it, or runs jobs of its
         * own. */
        if (worker->beat_pid == 0)
                return worker->boot_looked_at == 0 || worker->booted ? WAIT_SUCCESSOR : WAIT_NONE;
        if (worker->idle_beats < IDLE_BEATS_PROVEN || !worker_work_list_clear(worker)) {
                *ret_beats =
                        worker->idle_beats < IDLE_BEATS_PROVEN ? IDLE_BEATS_PROVEN - worker->idle_beats : 1;
                return WAIT_BEATS;
        }
        /* A title that was read before the last beat is as old as the one before it. */
        if (worker_contradicted(worker)) {
                *ret_beats = 1;
                return WAIT_BEATS;
        }
        if (worker->idle_beats >= IDLE_BEATS_OVERRULE || !worker->threads_witness ||
            (worker->threads_known && worker->threads == 0))
                return WAIT_NONE;
        *ret_beats = IDLE_BEATS_OVERRULE - worker->idle_beats;
        return WAIT_THREADS;
}

bool worker_proven_idle(const struct worker *worker)
{
        unsigned beats;

        return worker->state == WORKER_QUIET && worker_proof_wait(worker, &beats) == WAIT_NONE;
}

usec_t worker_oldest_job_usec(const struct worker *worker, usec_t now)
{
        bool leaves = worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING;

        if (!leaves || worker->oldest_job_at == 0 || worker->busy < worker->jobs_read)
                return 0;
        return usec_sub(now, worker->oldest_job_at);
}

usec_t fleet_oldest_job_usec(const struct fleet *fleet, usec_t now)
{
        /* Each third look at all reads the work list of a worker. */
        usec_t fresh = 4 * fleet->world->settings->check_interval, oldest = 0;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];
                bool known = worker->state == WORKER_ACTIVE && worker->oldest_job_at != 0 &&
                             worker->busy >= worker->jobs_read &&
                             usec_sub(now, worker->jobs_read_at) <= fresh;
                usec_t age =
                        known ? usec_sub(now, worker->oldest_job_at) : worker_oldest_job_usec(worker, now);

                oldest = MAX(oldest, age);
        }
        return oldest;
}

usec_t worker_boot_deadline(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;
        usec_t from = MAX(worker->state_at, MAX(fleet->redis_at, fleet->world->doubt.since));

        return usec_add(from, fleet->settings->boot_timeout);
}

usec_t worker_told_at(const struct worker *worker)
{
        return worker->fleet->settings->stop_bounded && worker->quiet_at != 0 ? worker->quiet_at
                                                                              : worker->stop_at;
}

usec_t worker_kill_at(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;
        const struct world *world = fleet->world;
        usec_t from = MAX(MAX(worker_told_at(worker), worker->killed_at), world->doubt.since);

        if (!world->shutting_down && !fleet->force)
                from = MAX(from, fleet->redis_at);
        return usec_add(from, fleet->settings->stop_timeout);
}

struct fleet_counts fleet_count(const struct fleet *fleet, usec_t now)
{
        struct fleet_counts counts = {0};

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state == WORKER_GONE)
                        continue;
                counts.live++;
                counts.starting += worker->state == WORKER_STARTING;
                counts.active += worker->state == WORKER_ACTIVE && !worker->hung;
                counts.hung += worker_hangs(worker);
                counts.quiet += worker->state == WORKER_QUIET;
                counts.stopping += worker->state == WORKER_STOPPING;
                counts.ready += worker_ready(worker, now);
                counts.outdated +=
                        worker->state <= WORKER_ACTIVE && worker_outdated(worker) && !worker_hangs(worker);
                counts.busy += worker->busy;
                counts.memory_bytes += worker->memory_bytes;
        }
        return counts;
}

unsigned fleet_replaced(const struct fleet *fleet, usec_t now)
{
        struct fleet_counts counts = fleet_count(fleet, now);
        unsigned total = fleet->rollout.total, target = fleet_target(fleet), gone = 0, current = 0;

        gone = total > counts.outdated ? total - counts.outdated : 0;
        if (fleet->rollout.state == ROLLOUT_DONE)
                return gone;
        /* Old ones that died are not replaced by that. */
        for (size_t i = 0; i < fleet->n_workers; i++)
                current += fleet->workers[i]->state == WORKER_ACTIVE && !worker_outdated(fleet->workers[i]);
        return MIN(gone, current + (total > target ? total - target : 0));
}

unsigned fleet_draining(const struct fleet *fleet)
{
        unsigned n = 0;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                n += (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING) &&
                     worker_outdated(worker);
        }
        return n;
}

usec_t fleet_recovered_at(const struct fleet *fleet)
{
        usec_t at = USEC_INFINITY;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state == WORKER_ACTIVE && worker->active_at >= fleet->crash.failed_at)
                        at = MIN(at, MAX(usec_add(worker->active_at, STABLE_USEC), worker_ready_at(worker)));
        }
        return at;
}

usec_t fleet_next_start_at(const struct fleet *fleet, usec_t now)
{
        return fleet->waits_for == WAIT_BACKOFF && fleet->crash.next_at > now ? fleet->crash.next_at : 0;
}

enum crash_state fleet_crash_state(const struct fleet *fleet, usec_t now)
{
        struct fleet_counts counts = fleet_count(fleet, now);

        if (fleet->crash.count == 0)
                return CRASH_NONE;
        if (counts.active < fleet_target(fleet) || counts.starting > 0 ||
            fleet_next_start_at(fleet, now) != 0)
                return CRASH_FAILING;
        return fleet_recovered_at(fleet) != USEC_INFINITY ? CRASH_RECOVERING : CRASH_SETTLED;
}

bool fleet_places_held(const struct fleet *fleet)
{
        unsigned live = 0, leaving = 0, leaving_for_restart = 0;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                live += worker->state < WORKER_GONE;
                leaving += worker_hangs(worker);
                if (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING) {
                        leaving++;
                        leaving_for_restart += worker->reason == REASON_RESTART;
                }
        }
        return leaving > 0 &&
               (live >= fleet_max_processes(fleet) || (leaving_for_restart > 0 && fleet_surge(fleet) == 0));
}

/* Once it is ready, for a while: a walk through the set of identities is dear. */
static bool seeks_others(const struct worker *worker, usec_t now)
{
        usec_t span = MAX(OTHERS_LOOK_USEC, 4 * worker->fleet->world->settings->check_interval);

        return now >= worker_ready_at(worker) &&
               (worker->others_at == 0 || usec_sub(now, worker->others_at) < span);
}

unsigned worker_looks(const struct worker *worker, bool fast, usec_t now)
{
        const struct fleet *fleet = worker->fleet;
        const struct traits *traits = fleet->settings->traits;
        bool idle = worker->has_beat && worker->busy == 0 && !worker_drains_to_exit(worker);
        unsigned looks = 0;

        if (worker_is_remainder(worker) && !fast)
                looks |= LOOK_BEAT | LOOK_BOOT;
        switch (worker->state) {
        case WORKER_STARTING:
                if (!fast || !worker->booted)
                        looks |= LOOK_BEAT | (traits->title_shutdown_usec ? LOOK_ARGUMENTS : 0);
                if (!fast && (worker->unproven || (fleet->redis_up && now >= worker_boot_deadline(worker))))
                        looks |= LOOK_BOOT;
                break;
        case WORKER_ACTIVE:
                if (fast)
                        return worker_is_restless(worker, now) ? LOOK_BEAT : 0;
                looks |= LOOK_BEAT | (seeks_others(worker, now) ? LOOK_OTHERS : 0);
                if (traits->has_job_threads && !worker->threads_witness &&
                    usec_sub(now, worker->active_at) < THREADS_LOOK_USEC)
                        looks |= LOOK_THREADS;
                break;
        case WORKER_QUIET:
                /* What a title says of a signal comes when its process wakes up. */
                if (fast && (!idle || (traits->title_completes && worker->loud_beats > 0)))
                        return 0;
                looks |= LOOK_BEAT | (traits->has_title && worker->has_beat ? LOOK_TITLE : 0);
                if (idle && traits->has_work_list)
                        looks |= LOOK_WORK_LIST;
                if (idle && worker->threads_witness)
                        looks |= LOOK_THREADS;
                break;
        case WORKER_STOPPING:
                /* Told before it was known, it may be one that was not. */
                if (!fast && worker->group_told)
                        looks |= LOOK_BEAT;
                break;
        case WORKER_GONE:
        case _WORKER_STATE_MAX:
                return 0;
        }
        if (!fast) {
                looks |= LOOK_MEMORY;
                if (worker->has_beat && !worker_fresh(worker, now))
                        looks |= LOOK_TITLE;
        }
        return looks;
}

bool fleet_wants_fast_looks(const struct fleet *fleet, usec_t now)
{
        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                if (fleet->templates[i].fork.index != 0)
                        return true;
        if (!fleet->redis_up)
                return false;
        for (size_t i = 0; i < fleet->n_workers; i++)
                if (worker_looks(fleet->workers[i], true, now) != 0)
                        return true;
        return false;
}

struct worker *fleet_add_worker(struct fleet *fleet, const struct worker *model)
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

static bool is_forked_for(const struct fleet *fleet, unsigned index)
{
        for (size_t i = 0; i < TEMPLATES_MAX; i++)
                if (fleet->templates[i].fork.index == index)
                        return true;
        return false;
}

unsigned fleet_next_index(const struct fleet *fleet, unsigned index, size_t *at)
{
        do {
                for (index++; *at < fleet->n_workers && fleet->workers[*at]->index <= index; (*at)++)
                        index += fleet->workers[*at]->index == index;
        } while (is_forked_for(fleet, index));
        return index;
}

unsigned fleet_free_index(const struct fleet *fleet)
{
        size_t at = 0;

        return fleet_next_index(fleet, 0, &at);
}

bool fleet_has_place(const struct fleet *fleet, unsigned index)
{
        if (is_forked_for(fleet, index))
                return true;
        for (size_t i = 0; i < fleet->n_workers; i++)
                if (fleet->workers[i]->state != WORKER_GONE && fleet->workers[i]->index == index)
                        return true;
        return false;
}

void fleet_reap(struct fleet *fleet, void (*release)(struct process *process))
{
        size_t kept = 0;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                struct worker *worker = fleet->workers[i];

                if (worker->state != WORKER_GONE) {
                        fleet->workers[kept++] = worker;
                        continue;
                }
                if (worker->process && release)
                        release(worker->process);
                free(worker);
        }
        fleet->n_workers = kept;
}
