/* SPDX-License-Identifier: MIT */
/* The proof that a worker runs no job; see the header. */
#include "model/idle_proof.h"
#include "model/world.h"

/* Number of idle heartbeats in a row that prove idleness without, and in spite of, the thread witness. Native
 * threads inherit the name of job threads and may never exit. */
#define IDLE_HEARTBEATS_PROVEN   2
#define IDLE_HEARTBEATS_OVERRULE 4
/* A job may begin as its worker is quieted: the first heartbeat after that may not list it. */
#define INTERRUPTIBLE_HEARTBEATS 2

/* A title is written at each heartbeat: a title that is idle for two intervals was written anew. */
#define IDLE_TITLE_INTERVALS 2

/* A worker that has failed the idle check for this long is quieted anyway. */
#define IDLE_CHECK_WAIT_USEC (10 * USEC_PER_SEC)
/* After a longer gap since the last try, the worker is no longer to be quieted. */
#define IDLE_CHECK_TRIES_USEC (2 * USEC_PER_SEC)

bool worker_may_take_job(const struct worker *worker, usec_t now)
{
        return worker->evidence.may_take_job_at != 0 &&
               usec_sub(now, worker->evidence.may_take_job_seen_at) < IDLE_CHECK_TRIES_USEC;
}

bool worker_awaits_idle_check(const struct worker *worker, usec_t now)
{
        return worker->fleet->settings->traits->quiet_when_idle &&
               (!worker_may_take_job(worker, now) ||
                usec_sub(now, worker->evidence.may_take_job_at) < IDLE_CHECK_WAIT_USEC);
}

/* True if the work list is empty, or the framework has none to wait for. */
static bool worker_work_list_clear(const struct worker *worker)
{
        return worker->jobs.list_empty || !worker->fleet->settings->traits->has_work_list;
}

bool worker_contradicted(const struct worker *worker)
{
        bool idle = worker->heartbeat.idle_count >= IDLE_HEARTBEATS_PROVEN;
        bool not_quiet = worker->heartbeat.not_quiet_count >= WORKER_NOT_QUIET_HEARTBEATS;

        if (worker->state != WORKER_QUIET || !worker->evidence.title_known ||
            !worker->fleet->settings->traits->has_title)
                return false;
        return worker->evidence.title_quiet ? not_quiet || (idle && worker->evidence.title_busy > 0) : idle;
}

usec_t worker_title_proof_usec(const struct worker *worker)
{
        return MAX(IDLE_TITLE_INTERVALS * worker->fleet->settings->traits->sent_usec, USEC_PER_SEC);
}

bool worker_title_can_prove(const struct worker *worker)
{
        return worker->evidence.threads_witness || worker_quiet_is_stop(worker) ||
               worker->fleet->settings->traits->title_completes;
}

/* The proof without heartbeats: titles and threads must agree, if jobs run in threads. Threads count only if
 * as many were seen as the title claims, because a thread with an unknown name could run a job. */
static enum wait title_proof_wait(const struct worker *worker)
{
        const struct worker_evidence *evidence = &worker->evidence;

        bool threads = !worker->fleet->settings->traits->title_completes;

        if ((threads && !evidence->threads_witness) || !evidence->title_known || !evidence->title_quiet)
                return WAIT_ELSEWHERE;
        if (evidence->title_busy > 0)
                return WAIT_JOBS;
        bool idle =
                evidence->title_idle_since != 0 &&
                usec_sub(evidence->title_at, evidence->title_idle_since) >= worker_title_proof_usec(worker);
        return idle && (!threads || (evidence->threads_known && evidence->threads == 0)) ? WAIT_NONE
                                                                                         : WAIT_ELSEWHERE;
}

enum wait worker_proof_wait(const struct worker *worker, unsigned *ret_heartbeats)
{
        *ret_heartbeats = 0;
        if (worker->process.elsewhere)
                return title_proof_wait(worker);
        if (worker->orders.finishes_job)
                return WAIT_JOBS;
        /* The process that ran the jobs has exited. The leftover process is a wrapper, or has booted as a
         * worker too. */
        if (worker->process.heartbeat_pid == 0)
                return worker->process.boot_polled_at == 0 || worker->process.booted ? WAIT_SUCCESSOR
                                                                                     : WAIT_NONE;
        if (worker->heartbeat.idle_count < IDLE_HEARTBEATS_PROVEN || !worker_work_list_clear(worker)) {
                *ret_heartbeats = worker->heartbeat.idle_count < IDLE_HEARTBEATS_PROVEN
                                          ? IDLE_HEARTBEATS_PROVEN - worker->heartbeat.idle_count
                                          : 1;
                return WAIT_HEARTBEATS;
        }
        /* The title may have been read before the last heartbeat: it then shows the state at the heartbeat
         * before. */
        if (worker_contradicted(worker)) {
                *ret_heartbeats = 1;
                return WAIT_HEARTBEATS;
        }
        if (worker->heartbeat.idle_count >= IDLE_HEARTBEATS_OVERRULE || !worker->evidence.threads_witness ||
            (worker->evidence.threads_known && worker->evidence.threads == 0))
                return WAIT_NONE;
        *ret_heartbeats = IDLE_HEARTBEATS_OVERRULE - worker->heartbeat.idle_count;
        return WAIT_THREADS;
}

bool worker_proven_idle(const struct worker *worker)
{
        unsigned heartbeats;

        return worker->state == WORKER_QUIET && worker_proof_wait(worker, &heartbeats) == WAIT_NONE;
}

/* The title shows that the worker accepts jobs, or runs more than its heartbeats list: these may be another
 * process's. */
static bool title_shows_other_jobs(const struct worker *worker)
{
        const struct worker_evidence *evidence = &worker->evidence;

        return worker->fleet->settings->traits->has_title && evidence->title_known &&
               (!evidence->title_quiet || evidence->title_busy > worker->heartbeat.busy);
}

bool worker_proven_interruptible(const struct worker *worker)
{
        return worker->state == WORKER_QUIET && worker->fleet->settings->interruptible &&
               worker->jobs.interruptible_count >= INTERRUPTIBLE_HEARTBEATS &&
               worker->jobs.interruptible_heartbeat == worker->heartbeat.written_usec &&
               worker->heartbeat.not_quiet_count == 0 && worker->jobs.read_at >= worker->orders.quiet_at &&
               worker->process.heartbeat_pid != 0 && !worker->process.elsewhere &&
               !worker->orders.finishes_job && !worker_contradicted(worker) &&
               !title_shows_other_jobs(worker);
}

bool worker_interrupts_next(const struct worker *worker)
{
        return worker->state == WORKER_QUIET && worker->fleet->settings->interruptible &&
               worker->jobs.interruptible_count == INTERRUPTIBLE_HEARTBEATS - 1 &&
               !worker->orders.finishes_job;
}

usec_t worker_oldest_job_usec(const struct worker *worker, usec_t now)
{
        if (!worker_is_retiring(worker) || worker->jobs.oldest_at == 0 ||
            worker->heartbeat.busy < worker->jobs.count)
                return 0;
        return usec_sub(now, worker->jobs.oldest_at);
}

usec_t fleet_oldest_job_usec(const struct fleet *fleet, usec_t now)
{
        /* Every third regular poll reads the work list of a worker. */
        usec_t fresh = 4 * fleet->world->settings->check_interval, oldest = 0;

        FLEET_FOREACH_WORKER(fleet, worker) {
                bool known = worker->state == WORKER_ACTIVE && worker->jobs.oldest_at != 0 &&
                             worker->heartbeat.busy >= worker->jobs.count &&
                             usec_sub(now, worker->jobs.read_at) <= fresh;
                usec_t age =
                        known ? usec_sub(now, worker->jobs.oldest_at) : worker_oldest_job_usec(worker, now);

                oldest = MAX(oldest, age);
        }
        return oldest;
}
