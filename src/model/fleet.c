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

unsigned fleet_count_in_force(const struct fleet *fleet)
{
        unsigned max = fleet->settings->max_processes;

        if (fleet->scale == 0)
                return fleet->settings->active_process_count;
        /* A reload may have lowered the maximum since. */
        return max > 0 ? MIN(fleet->scale, max) : fleet->scale;
}

unsigned fleet_max_processes(const struct fleet *fleet)
{
        if (fleet->settings->max_processes > 0)
                return fleet->settings->max_processes;
        return 3 * fleet_count_in_force(fleet);
}

unsigned fleet_scale_max(const struct fleet *fleet)
{
        if (fleet->settings->max_processes > 0)
                return fleet->settings->max_processes;
        /* One that was scaled down must find its way back. */
        return 3 * MAX(fleet->settings->active_process_count, fleet->scale);
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

bool worker_ready(const struct worker *worker, usec_t now)
{
        return worker->state == WORKER_ACTIVE &&
               now >= usec_add(worker->active_at, worker->fleet->settings->ready_after) &&
               worker_fresh(worker, now);
}

/* It is empty, or its framework has none that could be waited for. */
static bool worker_work_list_clear(const struct worker *worker)
{
        return worker->work_list_empty || !worker->fleet->settings->traits->has_work_list;
}

enum wait worker_proof_wait(const struct worker *worker, unsigned *ret_beats)
{
        *ret_beats = 0;
        /* The process that ran its jobs has exited, a wrapper around it has not. */
        if (worker->beat_pid == 0)
                return WAIT_NONE;
        if (worker->idle_beats < IDLE_BEATS_PROVEN || !worker_work_list_clear(worker)) {
                *ret_beats =
                        worker->idle_beats < IDLE_BEATS_PROVEN ? IDLE_BEATS_PROVEN - worker->idle_beats : 1;
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

usec_t worker_boot_deadline(const struct worker *worker)
{
        const struct fleet *fleet = worker->fleet;
        usec_t from = MAX(worker->state_at, MAX(fleet->redis_at, fleet->world->doubt.since));

        return usec_add(from, fleet->settings->boot_timeout);
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

/* The median by counting: for each candidate, how many are smaller. A fleet is small and this runs only when
 * an extra process is due, so selection by halving the range of bytes beats sorting a copy. */
static uint64_t median_bytes(const struct fleet *fleet)
{
        uint64_t low = 0, high = 0;
        size_t known = 0;

        for (size_t i = 0; i < fleet->n_workers; i++) {
                const struct worker *worker = fleet->workers[i];

                if (worker->state == WORKER_ACTIVE && worker->memory_bytes > 0) {
                        high = MAX(high, worker->memory_bytes);
                        known++;
                }
        }
        while (low < high) {
                uint64_t middle = low + (high - low) / 2;
                size_t within = 0;

                for (size_t i = 0; i < fleet->n_workers; i++) {
                        const struct worker *worker = fleet->workers[i];

                        within += worker->state == WORKER_ACTIVE && worker->memory_bytes > 0 &&
                                  worker->memory_bytes <= middle;
                }
                if (within * 2 >= known)
                        high = middle;
                else
                        low = middle + 1;
        }
        return low;
}

bool fleet_lacks_memory(const struct fleet *fleet)
{
        uint64_t available = fleet->world->available_bytes;

        if (available == 0)
                return false;
        uint64_t median = median_bytes(fleet);
        return available < median + median / 4;
}

unsigned worker_looks(const struct worker *worker, bool fast, usec_t now)
{
        const struct fleet *fleet = worker->fleet;
        const struct traits *traits = fleet->settings->traits;
        bool idle = worker->has_beat && worker->busy == 0 && !worker_drains_to_exit(worker);
        unsigned looks = 0;

        switch (worker->state) {
        case WORKER_STARTING:
                if (!fast || !worker->booted)
                        looks |= LOOK_BEAT;
                if (!fast && fleet->redis_up && now >= worker_boot_deadline(worker))
                        looks |= LOOK_BOOT;
                break;
        case WORKER_ACTIVE:
                if (fast)
                        return 0;
                looks |= LOOK_BEAT;
                if (traits->has_job_threads && !worker->threads_witness &&
                    usec_sub(now, worker->active_at) < THREADS_LOOK_USEC)
                        looks |= LOOK_THREADS;
                break;
        case WORKER_QUIET:
                if (fast && !idle)
                        return 0;
                looks |= LOOK_BEAT;
                if (idle && traits->has_work_list)
                        looks |= LOOK_WORK_LIST;
                if (idle && worker->threads_witness)
                        looks |= LOOK_THREADS;
                break;
        case WORKER_STOPPING:
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
        if (!fleet->redis_up)
                return false;
        for (size_t i = 0; i < fleet->n_workers; i++)
                if (worker_looks(fleet->workers[i], true, now) != 0)
                        return true;
        return false;
}

unsigned fleet_free_index(const struct fleet *fleet)
{
        unsigned index = 1;

        for (size_t i = 0; i < fleet->n_workers && fleet->workers[i]->index == index; i++)
                index++;
        return index;
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
