/* SPDX-License-Identifier: MIT */
/* Records observations in the model; see the header. */
#include "observe/observe.h"
#include "advice/leak.h"
#include "base/parse.h"
#include "base/printable.h"
#include "base/text.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/idle_proof.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe_deaf.h"

static bool is_interruptible(const struct fleet_settings *settings, const struct job *job)
{
        size_t length = strlen(job->class);

        for (const char *at = settings->interruptible; at && length > 0; at += strcspn(at, " \t")) {
                at += strspn(at, " \t");
                if (*at == '\0')
                        return false;
                if (strcspn(at, " \t") == length && memcmp(at, job->class, length) == 0)
                        return true;
        }
        return false;
}

/* Counts the heartbeats since the quiet with which all jobs are interruptible. */
static void observe_interruptible(struct worker *worker, const struct job_list *jobs)
{
        bool all = worker->state == WORKER_QUIET && worker->heartbeat.not_quiet_count == 0 &&
                   worker->heartbeat.after != 0 && worker->heartbeat.after >= worker->orders.quiet_at &&
                   !worker->heartbeat.ambiguous && !worker->heartbeat.hung && jobs->n_jobs > 0 &&
                   jobs->n_jobs == worker->heartbeat.busy && job_list_unknown(jobs) == 0;

        for (size_t i = 0; all && i < jobs->n_jobs; i++)
                all = is_interruptible(worker->fleet->settings, &jobs->jobs[i]);
        /* Another process of the worker may have been quieted since. */
        if (!all || worker->jobs.read_at < worker->orders.quiet_at)
                worker->jobs.interruptible_count = 0;
        if (!all)
                return;
        if (worker->jobs.interruptible_count == 0 ||
            worker->jobs.interruptible_heartbeat != worker->heartbeat.written_usec) {
                worker->jobs.interruptible_count++;
                worker->jobs.interruptible_heartbeat = worker->heartbeat.written_usec;
        }
}

void observe_jobs(struct worker *worker, const struct job_list *jobs, usec_t oldest, usec_t now)
{
        observe_interruptible(worker, jobs);
        worker->jobs.count = (unsigned)(jobs->n_jobs + job_list_unknown(jobs));
        worker->jobs.read_at = now;
        worker->jobs.oldest_at = oldest > 0 ? MAX(usec_sub(now, oldest), (usec_t)1) : 0;
        worker->jobs.classes = (struct job_classes){0};
        /* Without all jobs, the classes of some would pass for those of all. */
        if (job_list_unknown(jobs) == 0)
                (void)job_classes_count(jobs, &worker->jobs.classes);
}

void observe_long_job(struct worker *worker, const struct job *job, usec_t runs)
{
        char names[700];

        /* The names are untrusted. */
        snprintf(names, sizeof(names), "%.200s %.200s", job->class, job->jid);
        if (job->queue[0] != '\0')
                text_append(names, sizeof(names), " (queue %.200s)", job->queue);
        printable_replace(names, strlen(names), false);
        world_event(worker->fleet->world, EVENT_JOB_LONG, worker->fleet, worker,
                    "%s has been running for %s in %s (pid %d)", names, FORMAT_DURATION(runs),
                    WORKER_ID(worker), (int)worker_pid(worker));
}

void observe_cut_off(const struct worker *worker, enum reason reason, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        struct cut_off cut = worker_cut_off(worker);
        char text[JOB_CLASSES_TEXT_MAX], why[FORMAT_MAX + 32] = "by order";
        /* An active worker may run other jobs by now. */
        bool known = worker->state == WORKER_QUIET && worker->jobs.classes.n > 0 &&
                     worker->jobs.read_at >= worker->orders.quiet_at &&
                     worker->heartbeat.busy <= worker->jobs.count;

        /* Other events report workers that hang or have sent no heartbeat. */
        if (worker->heartbeat.busy == 0 || now < cut.at || reason == REASON_HUNG || reason == REASON_BOOT)
                return;
        fleet->totals.jobs_cut_off[cut.word] += worker->heartbeat.busy;
        if (cut.word != CUT_ORDER)
                snprintf(why, sizeof(why), "after %s (%s)", FORMAT_DURATION(cut.allowed),
                         cut_word_name(cut.word));
        job_classes_text(&worker->jobs.classes, text, sizeof(text));
        worker_event(worker, EVENT_DRAIN_CUT, " cut off %s, %u job%s running%s%s", why,
                     worker->heartbeat.busy, plural(worker->heartbeat.busy),
                     !known                                        ? ""
                     : worker->heartbeat.busy < worker->jobs.count ? ", of "
                                                                   : ": ",
                     known ? text : "");
}

/* Records how many jobs a worker has ended, for the trial of a release and for the latency of queues. Call
 * for each heartbeat, before observe_heartbeat() records its time. */
static void observe_outcomes(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        const struct worker_outcomes *before = &worker->outcomes, *outcomes = &heartbeat->outcomes;

        /* Sidekiq's counts follow its heartbeat, whose time they do not change. */
        if ((!outcomes->known && !before->known) || heartbeat->sent_usec < worker->heartbeat.written_usec)
                return;
        /* A lower count is that of another process. */
        if (outcomes->known)
                latency_count(&worker->fleet->work,
                              before->known ? usec_sub(outcomes->processed, before->processed) : 0, now);
        worker->outcomes = *outcomes;
}

#define MEMORY_SAMPLES 3

static bool memory_is_over(const struct fleet_settings *settings, uint64_t bytes)
{
        return (settings->memory_threshold > 0 && bytes > settings->memory_threshold) ||
               (settings->memory_limit > 0 && bytes > settings->memory_limit);
}

/* Measures growth from now on: the worker runs no job, has sent its first heartbeat, or was adopted. A size
 * over a limit does not move the mark: the growth still counts after its job has ended. */
static void observe_memory_mark(struct worker *worker, uint64_t bytes, usec_t now)
{
        /* The limits apply to the proportional share of a forked worker, which only a sample has. */
        bool over = worker->process.forked ? worker->memory.over_limit || worker->memory.over_samples > 0
                                           : memory_is_over(worker->fleet->settings, bytes);

        if (bytes == 0 || (worker->memory.mark_at != 0 && over))
                return;
        worker->memory.mark_bytes = bytes;
        worker->memory.mark_at = now;
}

/* since: the earliest time of the breach. */
static void worker_observe_breach(struct worker *worker, enum breach breach, usec_t since)
{
        if (breach <= worker->memory.breach)
                return;
        worker->memory.breach = breach;
        if (fleet_settings_list_jobs(worker->fleet->settings))
                worker->memory.breach_at = MAX(since, (usec_t)1);
}

static void worker_observe_over_threshold(struct worker *worker, uint64_t share, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        const struct fleet_settings *settings = fleet->settings;

        worker->memory.over_threshold = true;
        /* The first of the samples in a row was already over the threshold. */
        worker_observe_breach(worker, BREACH_THRESHOLD,
                              usec_sub(now, (MEMORY_SAMPLES - 1) * fleet->world->settings->check_interval));
        worker_event(worker, EVENT_MEMORY_OVER, " uses %s, over memory_threshold (%s)", FORMAT_SIZE(share),
                     FORMAT_SIZE(settings->memory_threshold));
        /* A worker that exceeds the threshold while booting does so before its first heartbeat. */
        bool late = worker->active_at != 0 && usec_sub(now, worker->active_at) >= CHURN_USEC;
        if (worker->started_for != REASON_MEMORY || late)
                return;
        backoff_fail(&fleet->churn, &fleet->random, now);
        worker_event(
                worker, EVENT_MEMORY_CHURN,
                " replaced a worker over memory_threshold (%s), and exceeds it, too. Raise memory_threshold",
                FORMAT_SIZE(settings->memory_threshold));
}

void observe_shared_memory(struct worker *worker, uint64_t bytes, uint64_t share, usec_t now)
{
        const struct fleet_settings *settings = worker->fleet->settings;

        worker->memory.bytes = bytes;
        worker->memory.read_at = now;
        leak_observe(worker, bytes, now);
        if (worker->memory.mark_at == 0 && worker->heartbeat.seen)
                observe_memory_mark(worker, bytes, now);
        bool over_limit = settings->memory_limit > 0 && share > settings->memory_limit;
        /* A limit below what a worker needs to boot must not cause churn. */
        if (over_limit && !worker->memory.over_limit && worker->state <= WORKER_ACTIVE &&
            (worker->active_at == 0 || usec_sub(now, worker->active_at) < CHURN_USEC))
                backoff_fail(&worker->fleet->crash, &worker->fleet->random, now);
        worker->memory.over_limit = over_limit;
        if (over_limit)
                worker_observe_breach(worker, BREACH_LIMIT, now);
        if (settings->memory_threshold == 0)
                worker->memory.over_threshold = false;
        bool over = settings->memory_threshold > 0 && share > settings->memory_threshold;
        worker->memory.over_samples = over ? worker->memory.over_samples + 1 : 0;
        if (worker->memory.over_samples >= MEMORY_SAMPLES && !worker->memory.over_threshold)
                worker_observe_over_threshold(worker, share, now);
}

void observe_memory(struct worker *worker, uint64_t bytes, usec_t now)
{
        observe_shared_memory(worker, bytes, bytes, now);
}

/* A heartbeat of the worker: its own, or without a shim one that sqmgr made. */
static void shim_observe_heartbeat(struct worker *worker, bool shimless)
{
        struct fleet *fleet = worker->fleet;
        char why[WORKER_SHIMLESS_MAX];

        if (worker->process.shimless == shimless)
                return;
        worker->process.shimless = shimless;
        if (!shimless || fleet->shimless_reported)
                return;
        fleet->shimless_reported = true;
        worker_event(worker, EVENT_SHIM_NOT_LOADED, " has written no record within boot_timeout: %s",
                     worker_shimless_text(worker, why));
}

/* A worker has crashed. Call before shim_observe_log_tail(). had_heartbeat: it has sent one. */
static void shim_observe_crash(const struct worker *worker, bool had_heartbeat)
{
        worker->fleet->shim_tried =
                (had_heartbeat && !worker->process.shimless) || worker->process.shim_error != 0
                        ? 0
                        : worker->generation;
}

/* The log tail of the worker that crashed last; NULL: not known. Node.js ends at once if it cannot read a
 * file that it is to load: the next start omits the file, and the release has not failed. Returns true if the
 * log tail shows that. */
static bool shim_observe_log_tail(struct fleet *fleet, const struct quoted *log_tail)
{
        const struct shim *shim = fleet->settings->traits->shim;

        if (!shim || !shim->refused || !log_tail || fleet->shim_tried != fleet->generation ||
            !quoted_contains(log_tail, shim->refused) ||
            !quoted_contains(log_tail, strrchr(shim->file, '/') + 1))
                return false;
        if (fleet->shim_refused != fleet->generation)
                fleet_event(fleet, EVENT_SHIM_NOT_LOADED,
                            ": a worker did not start with sqmgr's '%s' (%s): the next one starts without it",
                            shim->file, shim->refused);
        fleet->shim_refused = fleet->generation;
        return true;
}

/* Returns true if a worker that was not asked to exit ended so. Without heartbeats, only the time shows that
 * it was more than a failed start. */
static bool worker_is_own_exit(const struct worker *worker, const struct exit_status *exit, usec_t now)
{
        return exit_status_is_success(exit) && worker->active_at != 0 &&
               (fleet_settings_write_heartbeats(worker->fleet->settings) ||
                !worker_is_failed_start(worker, usec_sub(now, worker->active_at)));
}

/* Records an exit in good order, as at a limit of its own (--max-jobs). The next worker starts at once; but
 * soon after the first heartbeat, only after BACKOFF_MIN_USEC: a command that finds nothing to do (--burst)
 * must not run in a busy loop. */
static void observe_own_exit(struct worker *worker, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        usec_t uptime = usec_sub(now, worker->active_at);

        worker->reason = worker->state == WORKER_QUIET ? worker->reason : REASON_EXTERNAL;
        worker_event(worker, EVENT_GONE, " exited cleanly (status 0) without being asked, %s after %s",
                     FORMAT_DURATION(uptime),
                     fleet_settings_write_heartbeats(fleet->settings) ? "its first heartbeat" : "its start");
        if (worker_outdated(worker))
                rollout_observe_progress(fleet, now);
        if (worker->state == WORKER_QUIET)
                return;
        if (now < fleet->crash.next_at)
                fleet->crash.freed += !worker_is_failed_start(worker, uptime);
        else if (worker_is_failed_start(worker, uptime))
                fleet->crash.next_at = usec_add(now, BACKOFF_MIN_USEC);
}

/* No answer about a heartbeat is expected to be later than this. */
#define LATE_USEC (60 * USEC_PER_SEC)

static void worker_set_state(struct worker *worker, enum worker_state state, enum reason reason, usec_t now)
{
        worker->state = state;
        worker->reason = reason;
        worker->state_at = now;
}

struct worker *observe_started(struct fleet *fleet, unsigned index, enum reason started_for, pid_t pid,
                               uint64_t pid_start, usec_t now)
{
        const struct worker model = {
                .index = index,
                .generation = fleet->generation,
                .process.pid = pid,
                .process.start = pid_start,
                .state = WORKER_STARTING,
                .started_for = started_for,
                .spawned_at = now,
                .state_at = now,
        };

        return observe_started_as(fleet, &model);
}

struct worker *observe_started_as(struct fleet *fleet, const struct worker *model)
{
        enum reason started_for = model->started_for;
        struct worker *worker = fleet_add_worker(fleet, model);

        if (!worker)
                return NULL;
        fleet->totals.starts[started_for]++;
        if (fleet->crash.freed > 0)
                fleet->crash.freed--;
        backoff_reset(&fleet->shortage);

        worker_event(worker, EVENT_STARTED, " %s%s%s%s", model->process.forked ? "forked" : "started",
                     started_for != REASON_NONE ? " to replace a retiring worker (reason: " : "",
                     started_for != REASON_NONE ? reason_name(started_for) : "",
                     started_for != REASON_NONE ? ")" : "");
        return worker;
}

struct worker *observe_adopted(struct fleet *fleet, const struct worker *known, uint64_t pid_start,
                               uint64_t heartbeat_pid_start, usec_t now)
{
        bool main_is_alive = pid_start == known->process.start;
        bool heartbeat_process_is_alive =
                known->process.heartbeat_pid != 0 && heartbeat_pid_start == known->process.heartbeat_start;
        struct worker *worker = fleet_add_worker(fleet, known);

        if (!worker)
                return NULL;
        if (!main_is_alive && !heartbeat_process_is_alive)
                observe_exit(worker, &(struct exit_status){.known = false}, now);
        else if (!main_is_alive)
                observe_promoted(worker);
        else if (known->process.heartbeat_pid != 0 && !heartbeat_process_is_alive)
                observe_heartbeat_process(worker, 0, 0, now);
        /* A live worker was allowed to continue before its sqmgr ended, or has noticed its end by now. */
        worker->process.awaits_go = false;
        worker->process.booted = worker->process.elsewhere;
        worker->process.boot_seen_at = worker->process.elsewhere ? now : 0;
        /* The jobs of that breach were reported already. */
        if (known->reason == REASON_MEMORY)
                worker->memory.breach = BREACH_LIMIT;
        else if (known->memory.over_threshold)
                worker->memory.breach = BREACH_THRESHOLD;
        return worker;
}

void observe_unconfirmed(const struct worker *worker, int signo)
{
        char command[STOP_COMMAND_MAX];

        worker_event(worker, EVENT_STOP_UNCONFIRMED,
                     " may not have received its stop signal: sqmgr ended while sending it. If the worker "
                     "still accepts jobs, run '%s'",
                     worker_stop_command(worker, signo, command, sizeof(command)));
}

void observe_start_failed(struct fleet *fleet, unsigned index, int error, usec_t now)
{
        world_event(fleet->world, EVENT_START_FAILED, fleet, NULL,
                    "%s could not be started: error in sqmgr itself: %s. Run 'sqmgrctl doctor'",
                    WORKER_ID_OF(fleet->settings->name, index), start_error_text(error));
        start_failure_observe_shortage(fleet, error, now);
}

void observe_unwatched(struct worker *worker, int error, usec_t now)
{
        worker_event(worker, EVENT_START_FAILED,
                     " could not be started: sqmgr cannot watch the process: %s. Run 'sqmgrctl doctor'",
                     strerrordesc_np(error));
        start_failure_observe_shortage(worker->fleet, error, now);
        worker->orders.stop_at = worker->orders.killed_at = now;
        worker_set_state(worker, worker->handle ? WORKER_STOPPING : WORKER_GONE, REASON_BOOT, now);
        if (!worker->handle)
                worker->fleet->totals.ends[REASON_BOOT]++;
}

/* Records the unexpected end of a worker. uptime: since its first heartbeat; 0: no heartbeat. */
static void observe_uptime(const struct worker *worker, usec_t uptime, usec_t now)
{
        struct fleet *fleet = worker->fleet;

        /* The worker ended before it was ready. */
        if (uptime == 0 || uptime < fleet->settings->ready_after)
                start_failure_observe(fleet, worker->generation, worker->spawned_at, true, now);
        else if (worker_is_failed_start(worker, uptime))
                start_failure_back_off(fleet, now);
}

/* Returns the worker to the state without heartbeats: the process that sent them is gone, its wrapper not. */
static void worker_observe_silent(struct worker *worker, usec_t now)
{
        struct fleet *fleet = worker->fleet;

        start_failure_describe(
                fleet, NULL, "%s: the process that sends heartbeats has exited; its wrapper is still running",
                WORKER_EVENT_NAME(worker));
        start_failure_report(fleet, EVENT_CRASHED, worker);
        usec_t uptime = worker->active_at != 0 ? usec_sub(now, worker->active_at) : 0;
        fleet->crash_last_apart = !worker_is_failed_start(worker, uptime);
        observe_uptime(worker, uptime, now);
        worker->active_at = 0;
        worker->last_uptime = MAX(uptime, (usec_t)1);
        worker_set_state(worker, WORKER_STARTING, worker->reason, now);
}

/* The process that sent heartbeats is gone: nothing is known about the leftover process. */
static void worker_forget_heartbeat(struct worker *worker)
{
        worker->heartbeat.seen = worker->heartbeat.hung = false;
        worker->heartbeat.busy = 0;
        worker->process.booted = worker->process.elsewhere = worker->process.unseen = false;
        worker->process.boot_polled_at = worker->process.boot_seen_at = worker->evidence.still_since = 0;
        worker->heartbeat.not_quiet_count = 0;
        worker->orders.group_signaled = false;
        worker->evidence.siblings_polled_at = 0;
}

void observe_heartbeat_process(struct worker *worker, pid_t pid, uint64_t pid_start, usec_t now)
{
        if (pid == 0 && (worker->state == WORKER_ACTIVE ||
                         (worker->state == WORKER_STARTING && worker->process.elsewhere)))
                worker_observe_silent(worker, now);
        if (pid == 0)
                worker_forget_heartbeat(worker);
        if (worker->process.heartbeat_pid != pid || worker->process.heartbeat_start != pid_start) {
                /* Evidence of another process proves nothing about this one. */
                worker->heartbeat.idle_count = 0;
                worker->jobs.oldest_at = 0;
                worker->jobs.count = 0;
                worker->evidence.threads_known = worker->evidence.threads_witness =
                        worker->evidence.title_known = false;
                worker->orders.stop_acknowledged = false;
                worker->heartbeat.not_quiet_count = 0;
                worker->memory.mark_at = 0;
                worker->deaf = (struct worker_deafness){0};
                worker->process.elsewhere = worker->process.remote = false;
        }
        worker->orders.finishes_job &= pid == 0;
        worker->process.heartbeat_pid = pid;
        worker->process.heartbeat_start = pid_start;
}

void observe_remote(struct worker *worker)
{
        const struct fleet_settings *settings = worker->fleet->settings;

        if (worker->process.remote || !settings->traits->signals_by_server)
                return;
        worker->process.remote = true;
        /* /proc shows another process, and the memory of one is no measure of the other. */
        worker->evidence = (struct worker_evidence){0};
        worker->memory.over_samples = 0;
        worker_event(worker, EVENT_REMOTE, " is out of reach of signals: %s passes them on",
                     fleet_settings_server(settings));
}

/* The worker was asked to leave, and a process of the worker that was not asked sends heartbeats. That
 * process accepts jobs, and becomes a worker like any other. A running process alone proves nothing. An old
 * heartbeat, from a Redis that took over, proves nothing if the process has reported quiet since: it was
 * asked with all others. During a forced stop no such process is asked again. */
static void worker_observe_successor(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        const struct traits *traits = worker->fleet->settings->traits;
        bool reported = worker->state == WORKER_STOPPING && worker->orders.group_signaled;

        worker->heartbeat.not_quiet_count = heartbeat->quiet ? 0 : worker->heartbeat.not_quiet_count + 1;
        worker->orders.stop_acknowledged |= reported && heartbeat->quiet;
        bool shown = worker->heartbeat.not_quiet_count >= WORKER_NOT_QUIET_HEARTBEATS &&
                     !worker->orders.stop_acknowledged && worker_sends_heartbeats(worker);

        /* RQ writes once that it was asked. After a failover that loses this, each reading of the older
         * record counts as a heartbeat. */
        shown &= !traits->quiet_is_hidden && !(traits->quiet_is_stop && traits->process_is_heartbeat);
        if (worker->state > WORKER_STOPPING || (reported && (!shown || now >= worker_forced_at(worker))))
                return;
        worker_event(worker, EVENT_SEVERAL,
                     " accepts jobs, although its worker was asked to stop (reason: %s); quieted next. The "
                     "command starts several processes, at once or in succession. Let it start one",
                     reason_name(worker->reason));
        worker->orders.succeeded = true;
        worker->orders.group_signaled = false;
        worker->heartbeat.not_quiet_count = 0;
        worker->orders.stop_at = worker->orders.killed_at = 0;
        worker->active_at = now;
        /* The process that hung was another one. */
        enum reason reason = worker->reason == REASON_HUNG ? REASON_OPERATOR : worker->reason;
        if (heartbeat->quiet)
                worker_set_state(worker, WORKER_QUIET, reason, now);
        else
                worker_set_state(worker, WORKER_ACTIVE, REASON_NONE, now);
        worker->orders.quiet_at = heartbeat->quiet ? now : 0;
}

static void worker_observe_quieted_by_other(struct worker *worker, usec_t now)
{
        /* The worker has not got its stop signal in place of the quiet signal. */
        worker->orders.quiet_uncaught = false;
        /* Heartbeats from before deny nothing. */
        worker->heartbeat.not_quiet_count = 0;
        worker->orders.quiet_at = now;
        worker_set_state(worker, WORKER_QUIET, REASON_EXTERNAL, now);
        worker_event(worker, EVENT_QUIET, " quieted from outside sqmgr (reason: external)");
}

/* An outdated worker may have been started with other settings. */
static void worker_observe_heard(const struct worker *worker)
{
        worker->fleet->boot_heard |= !worker_outdated(worker) && !worker->process.shimless;
}

static void worker_observe_first_heartbeat(struct worker *worker, const struct heartbeat *heartbeat,
                                           usec_t now)
{
        struct fleet *fleet = worker->fleet;
        bool elsewhere = worker->process.elsewhere;

        worker->heartbeat.seen = true;
        worker->last_uptime = 0;
        worker_observe_heard(worker);
        worker->process.booted = worker->process.elsewhere = worker->process.unseen = false;
        worker->process.unproven = false;
        worker->heartbeat.ambiguous = false;
        worker->heartbeat.written_usec = heartbeat->sent_usec;
        worker->heartbeat.newest_at = worker->heartbeat.read_at;
        worker->heartbeat.changed_at = worker->heartbeat.read_at;
        worker->heartbeat.busy = heartbeat->busy;
        worker->heartbeat.idle_count = heartbeat->quiet && heartbeat->busy == 0;
        observe_memory_mark(worker, heartbeat->rss_bytes ?: worker->memory.bytes, now);
        if (worker->state != WORKER_STARTING) {
                /* If its heartbeat was elsewhere before, this is the quieted process, no successor. */
                if (!elsewhere)
                        worker_observe_successor(worker, heartbeat, now);
                return;
        }
        worker->active_at = now;
        if (heartbeat->quiet) {
                worker_observe_quieted_by_other(worker, now);
                return;
        }
        worker_set_state(worker, WORKER_ACTIVE, REASON_NONE, now);
        /* New workers that each exit by themselves at once are no progress, see observe_own_exit(). */
        if (fleet->crash.count > 0 || now >= usec_add(fleet->crash.next_at, fleet->settings->boot_timeout))
                rollout_observe_progress(fleet, now);
        worker_event(worker, EVENT_ACTIVE, worker_sends_heartbeats(worker) ? " active" : " running");
}

/* The worker was to be quiet, and never got the signal. Since when an adopted one is active is not known. */
static void worker_observe_not_asked(struct worker *worker, enum reason reason, usec_t now)
{
        worker->orders.quiet_at = 0;
        worker->active_at = worker->active_at ?: now;
        worker_set_state(worker, WORKER_ACTIVE, reason, now);
}

/* Heartbeats show whether the worker has received the stop signal that sqmgr may not have sent. A framework
 * that is stopped by quieting and sends heartbeats writes the request into them. */
static void worker_observe_confirmation(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        const struct traits *traits = worker->fleet->settings->traits;

        if (!worker->orders.unconfirmed || !traits->quiet_is_stop || traits->quiet_is_hidden ||
            !worker_sends_heartbeats(worker))
                return;
        if (heartbeat->quiet) {
                worker->orders.unconfirmed = false;
        } else if (worker->heartbeat.not_quiet_count >= WORKER_NOT_QUIET_HEARTBEATS) {
                worker->orders.unconfirmed = false;
                worker->active_at = now;
                worker_observe_not_asked(worker, REASON_NONE, now);
                worker_event(worker, EVENT_ACTIVE, " active: never received its stop signal");
        }
}

/* A heartbeat that counts as evidence: newer than the last, both read while time and Redis were trusted. */
static void worker_observe_fresh_heartbeat(struct worker *worker, const struct heartbeat *heartbeat,
                                           usec_t now)
{
        worker_observe_heard(worker);
        worker->heartbeat.changed_at = worker->heartbeat.read_at;
        worker->heartbeat.busy = heartbeat->busy;
        worker->heartbeat.idle_count =
                heartbeat->quiet && heartbeat->busy == 0 ? worker->heartbeat.idle_count + 1 : 0;
        /* A memory sample may include a job that began since. The size in the heartbeat is more accurate. */
        if (heartbeat->busy == 0)
                observe_memory_mark(worker, heartbeat->rss_bytes ?: worker->memory.bytes, now);
        if (worker->heartbeat.stale_reported || worker->heartbeat.hung) {
                worker_event(worker, EVENT_BEATS_AGAIN, " sends heartbeats again%s",
                             worker_hangs(worker) ? "; counts as active" : "");
                worker->heartbeat.stale_reported = worker->heartbeat.hung = false;
        }
        if (worker->state == WORKER_ACTIVE && heartbeat->quiet) {
                worker_observe_quieted_by_other(worker, now);
        } else if (worker->state == WORKER_QUIET) {
                worker->heartbeat.not_quiet_count =
                        heartbeat->quiet ? 0 : worker->heartbeat.not_quiet_count + 1;
                worker_observe_confirmation(worker, heartbeat, now);
        } else if (worker->state == WORKER_STOPPING && worker->orders.group_signaled) {
                worker_observe_successor(worker, heartbeat, now);
        }
}

/* Returns true if a heartbeat that is older than the newest one was answered before, or comes from a replica
 * that took over. Returns false if the worker's clock went back: sqmgr has observed a step back recently, or
 * has read nothing newer for longer than an answer can be late. Also if the newest heartbeat is from the
 * future: the clock, which the worker shares, went back while no sqmgr ran, and no later one saw it. */
static bool worker_is_repeated(const struct worker *worker, usec_t now)
{
        const struct doubt *doubt = &worker->fleet->world->doubt;
        usec_t stepped_at = doubt->stepped_back_at;
        usec_t latest = worker_stale_usec(worker) + LATE_USEC;

        if (doubt->due != 0 &&
            (int64_t)(worker->heartbeat.written_usec - now) > doubt->real_lag + CLOCK_STEP_USEC)
                return false;
        /* For this time after the step, an answer may be from before the step and carry a later time. */
        if (worker->heartbeat.newest_at <= (stepped_at == 0 ? 0 : usec_add(stepped_at, latest)))
                return false;
        return usec_sub(worker->heartbeat.read_at, worker->heartbeat.newest_at) <= latest;
}

/* A heartbeat beside the newest one that was read of its worker. */
enum heartbeat_order {
        HEARTBEAT_FIRST, /* the first reading of the worker */
        HEARTBEAT_SAME,
        HEARTBEAT_REPEATED, /* older: no sign of life */
        HEARTBEAT_OLDER,    /* older: the clock went back; or a replica that lags answered, as the worker may
                               hang */
        HEARTBEAT_BASELINE, /* newer; the first reading after a doubt, or over a new connection */
        HEARTBEAT_NEWER,
};

static enum heartbeat_order heartbeat_order(const struct worker *worker, const struct heartbeat *heartbeat,
                                            bool baseline, usec_t now)
{
        uint64_t sent = heartbeat->sent_usec, newest = worker->heartbeat.written_usec;

        if (!worker->heartbeat.seen)
                return HEARTBEAT_FIRST;
        if (sent == newest)
                return HEARTBEAT_SAME;
        if (sent < newest || sent == worker->heartbeat.before_usec)
                return worker_is_repeated(worker, now) ? HEARTBEAT_REPEATED : HEARTBEAT_OLDER;
        return baseline ? HEARTBEAT_BASELINE : HEARTBEAT_NEWER;
}

/* A quiet worker that is idle stays idle: of an adopted one, the baseline is the first idle heartbeat. */
static void worker_observe_adopted_idle(struct worker *worker, const struct heartbeat *heartbeat)
{
        if (worker->heartbeat.newest_at == 0 && worker->state == WORKER_QUIET)
                worker->heartbeat.idle_count = heartbeat->quiet && heartbeat->busy == 0;
}

static void worker_observe_newest(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        worker->heartbeat.written_usec = heartbeat->sent_usec;
        worker->heartbeat.newest_at = worker->heartbeat.read_at;
        if (heartbeat->busy > 0 || !heartbeat->quiet)
                worker->heartbeat.idle_count = 0;
        deaf_observe_heartbeat(worker, heartbeat, now);
}

void observe_heartbeat(struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        const struct fleet *fleet = worker->fleet;
        usec_t read_before = worker->heartbeat.read_at;
        bool baseline = read_before <= fleet->world->doubt.since || read_before < fleet->redis_at;

        /* A heartbeat with a process start time belongs to no other process of that pid. */
        if (heartbeat->start != 0 &&
            heartbeat->start != (worker->process.heartbeat_pid != 0 ? worker->process.heartbeat_start
                                                                    : worker->process.start))
                return;
        shim_observe_heartbeat(worker, heartbeat->shimless);
        worker->heartbeat.read_at = heartbeat->asked_at ?: now;
        if (heartbeat->concurrency > 0)
                worker->heartbeat.concurrency = heartbeat->concurrency;
        worker->heartbeat.quiet_signal = heartbeat->quiet_signal;
        worker->heartbeat.stop_signal = heartbeat->stop_signal;
        worker->heartbeat.looked_usec = heartbeat->looked_usec;
        worker->heartbeat.polling_usec = heartbeat->polling_usec;
        if (worker->process.remote && heartbeat->sent_usec > worker->heartbeat.written_usec &&
            heartbeat->rss_bytes > 0)
                observe_memory(worker, heartbeat->rss_bytes, now);
        /* A work list read at an earlier heartbeat says nothing about this one. */
        if (heartbeat->work_list_known || heartbeat->sent_usec != worker->heartbeat.written_usec)
                worker->jobs.list_empty = heartbeat->work_list_known && heartbeat->work_list_empty;
        observe_outcomes(worker, heartbeat, now);

        switch (heartbeat_order(worker, heartbeat, baseline, now)) {
        case HEARTBEAT_FIRST:
                worker_observe_first_heartbeat(worker, heartbeat, now);
                break;
        case HEARTBEAT_SAME:
                worker_observe_adopted_idle(worker, heartbeat);
                /* An adopted worker: its newest heartbeat is the one that an earlier sqmgr has read. */
                if (worker->heartbeat.newest_at == 0)
                        worker->heartbeat.newest_at = worker->heartbeat.read_at;
                /* The number of jobs is not part of some heartbeats, and proves nothing else. */
                if (fleet->settings->traits->jobs_are_current) {
                        deaf_observe_heartbeat(worker, heartbeat, now);
                        worker->heartbeat.busy = baseline ? worker->heartbeat.busy : heartbeat->busy;
                }
                break;
        case HEARTBEAT_REPEATED:
                worker->heartbeat.idle_count = 0;
                deaf_observe_repeated(worker, heartbeat);
                break;
        case HEARTBEAT_OLDER:
                worker->heartbeat.before_usec = worker->heartbeat.written_usec;
                worker_observe_newest(worker, heartbeat, now);
                worker->heartbeat.idle_count = 0;
                break;
        case HEARTBEAT_BASELINE:
                worker_observe_adopted_idle(worker, heartbeat);
                worker_observe_newest(worker, heartbeat, now);
                break;
        case HEARTBEAT_NEWER:
                worker_observe_newest(worker, heartbeat, now);
                worker->heartbeat.after = read_before;
                worker_observe_fresh_heartbeat(worker, heartbeat, now);
                break;
        }
}

void observe_title_elsewhere(struct worker *worker, unsigned job_threads, usec_t now)
{
        struct worker_evidence *evidence = &worker->evidence;
        bool idle = evidence->title_known && evidence->title_quiet && evidence->title_busy == 0;

        if (!worker->process.elsewhere)
                return;
        evidence->title_threads = evidence->title_known ? job_threads : 0;
        if (!idle || evidence->title_idle_since <= worker->fleet->world->doubt.since)
                evidence->title_idle_since = idle ? now : 0;
        if (!evidence->title_known)
                return;
        evidence->title_at = now;
        worker->heartbeat.busy = evidence->title_busy;
        if (worker->state == WORKER_STARTING && evidence->title_quiet)
                worker_observe_quieted_by_other(worker, now);
}

/* Returns true if the signal was sent. Otherwise records the error, and reports it once. */
static bool worker_observe_signal(struct worker *worker, const char *what, int error)
{
        bool reported = worker->orders.signal_error == error;

        worker->orders.signal_error = error;
        if (error == 0)
                return true;
        /* The exit event covers a process that is gone. */
        if (!reported && error != ESRCH)
                worker_event(worker, EVENT_SIGNAL_REFUSED, " cannot be %s: %s", what,
                             worker_signal_error_text(worker, error));
        return false;
}

/* Neither a heartbeat nor a signal that may be sent shows the end of its jobs: the worker is kept until it
 * exits by itself. An outdated one does not count as active, and a restart continues beside it. */
static void worker_observe_kept(struct worker *worker, usec_t now)
{
        worker_observe_signal(worker, "quieted", ENOTSUP);
        if (!worker_outdated(worker))
                return;
        worker->heartbeat.seen = false;
        worker->process.unseen = true;
        worker_set_state(worker, WORKER_STARTING, REASON_NONE, now);
}

/* The next round of the pass stops the worker. */
static void worker_observe_uncaught(struct worker *worker)
{
        struct fleet *fleet = worker->fleet;

        worker->orders.quiet_uncaught = true;
        if (fleet->uncaught_reported)
                return;
        fleet->uncaught_reported = true;
        worker_event(
                worker, EVENT_QUIET_UNCAUGHT,
                " does not catch the quiet signal; gets the stop signal instead. The worker alone decides "
                "what happens to its running jobs");
}

void observe_quieted(struct worker *worker, enum reason reason, int error, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char running[32] = "";

        if (error == EAGAIN) {
                worker->evidence.may_take_job_at =
                        worker_may_take_job(worker, now) ? worker->evidence.may_take_job_at : now;
                worker->evidence.may_take_job_seen_at = now;
                return;
        }
        if (error == ENOTSUP && worker->process.shimless) {
                worker_observe_kept(worker, now);
                return;
        }
        if (error == ENOTSUP && fleet->settings->traits->uncaught_is_stop) {
                worker_observe_uncaught(worker);
                /* Something has changed, which is to be saved. */
                worker->orders.signal_error = 0;
                /* The worker caught the signal before: the next one stops it. */
                if (worker->state == WORKER_QUIET)
                        worker_observe_not_asked(worker, worker->reason, now);
                return;
        }
        if (!worker_observe_signal(worker, "quieted", error))
                return;
        worker->heartbeat.not_quiet_count = 0;
        if (worker->state != WORKER_ACTIVE &&
            !(worker->state == WORKER_STARTING && worker->process.elsewhere))
                return;
        /* The worker got its stop signal, even if a record appears later. */
        worker->orders.quiet_uncaught |= worker->process.shimless;
        worker->orders.quiet_at = now;
        worker->heartbeat.idle_count = 0;
        worker->evidence.title_idle_since = 0;
        worker_set_state(worker, WORKER_QUIET, reason, now);
        if (reason == REASON_RESTART)
                rollout_observe_progress(fleet, now);
        if (worker_shows_busy(worker))
                snprintf(running, sizeof(running), ", %u job%s running", worker->heartbeat.busy,
                         plural(worker->heartbeat.busy));
        worker_event(worker, EVENT_QUIET, " %s (reason: %s)%s",
                     worker_is_asked_to_exit(worker) ? "asked to exit" : "quieted", reason_name(reason),
                     running);
        if (reason != REASON_BOOT)
                return;
        start_failure_describe(fleet, NULL, "%s has booted, but its heartbeat was not found",
                               WORKER_EVENT_NAME(worker));
        start_failure_observe(fleet, worker->generation, now, true, now);
}

void observe_stopped(struct worker *worker, enum reason reason, int error, usec_t now)
{
        struct fleet *fleet = worker->fleet;

        if (!worker_observe_signal(worker, "stopped", error))
                return;
        worker->orders.stop_last_at = now;
        /* The signal was sent again. */
        if (worker->state == WORKER_STOPPING && worker->process.remote)
                return;
        /* Another process of the worker was asked as well. */
        if (worker->state == WORKER_STOPPING && reason == REASON_BOOT) {
                worker->orders.stop_at = now;
                worker->orders.group_signaled = true;
                return;
        }
        if (worker->process.unproven) {
                worker_event(worker, reason == REASON_BOOT ? EVENT_BOOT_TIMEOUT : EVENT_GONE,
                             " was found, but neither booted nor sent a heartbeat; left alone, might not be "
                             "a worker");
                worker_set_state(worker, WORKER_GONE, reason, now);
                return;
        }
        observe_cut_off(worker, reason, now);
        bool never_sent_heartbeat = worker->state == WORKER_STARTING,
             was_reported = worker_is_asked_to_exit(worker),
             interrupts = worker->heartbeat.busy > 0 && worker_proven_interruptible(worker);
        worker->orders.stop_at = now;
        worker->orders.group_signaled = worker->process.heartbeat_pid == 0;
        worker->heartbeat.hung = false;
        worker_set_state(worker, WORKER_STOPPING, reason, now);
        if (reason != REASON_BOOT) {
                worker_event(worker, EVENT_STOPPING,
                             was_reported ? " was asked to exit (reason: %s); killed after stop_timeout if "
                                            "still running%s"
                                          : " asked to exit (reason: %s)%s",
                             reason_name(reason), interrupts ? "; its jobs are interruptible" : "");
                return;
        }
        start_failure_describe(fleet, NULL, "%s%s within boot_timeout%s%s", WORKER_EVENT_NAME(worker),
                               fleet_settings_write_heartbeats(fleet->settings) ? ": no heartbeat was found"
                                                                                : " did not run its command",
                               worker->heartbeat.fault != HEARTBEAT_FAULT_NONE ? ": " : "",
                               heartbeat_fault_text(worker->heartbeat.fault));
        world_event(fleet->world, EVENT_BOOT_TIMEOUT, fleet, worker, "%s; asked to exit (reason: %s)",
                    fleet->crash_last, reason_name(reason));
        /* boot_timeout counts only time with Redis up, so an earlier outage does not explain the failure. */
        start_failure_observe(fleet, worker->generation, now, never_sent_heartbeat, now);
}

void observe_killed(struct worker *worker, int error, usec_t now)
{
        if (!worker_observe_signal(worker, "killed", error))
                return;
        worker->orders.killed_at = now;
        worker_event(worker, EVENT_KILLED, " did not exit within %s (stop_timeout); killed",
                     FORMAT_DURATION(usec_sub(now, worker_stop_sent_at(worker))));
}

void observe_promoted(struct worker *worker)
{
        worker->process.pid = worker->process.heartbeat_pid;
        worker->process.start = worker->process.heartbeat_start;
}

/* Only the process that was started was asked to exit, because it showed no boot. That is no evidence against
 * the process that it leaves, which may run jobs: it is kept like a worker that is not seen to boot. */
static void keep_orphan(struct worker *worker, pid_t pid, usec_t now)
{
        worker_event(worker, EVENT_STOPPING,
                     " has left process %d, which may run jobs, and is kept. Run 'sqmgrctl stop %s --force' "
                     "to end it",
                     (int)pid, WORKER_ID(worker));
        worker->orders =
                (struct worker_orders){.quiet = worker->orders.quiet, .forced = worker->orders.forced};
        worker->process.unseen = true;
        worker->process.boot_polled_at = worker->evidence.still_since = 0;
        worker_set_state(worker, WORKER_STARTING, REASON_NONE, now);
        if (!worker_outdated(worker))
                rollout_observe_unseen(worker->fleet, now);
}

void observe_orphan(struct worker *worker, pid_t pid, uint64_t pid_start, usec_t now)
{
        if (worker->state == WORKER_STOPPING)
                keep_orphan(worker, pid, now);
        else
                worker_event(worker, EVENT_STARTED,
                             " moved to the background; now tracked as process %d. Let the command stay in "
                             "the foreground",
                             (int)pid);
        worker->process.pid = pid;
        worker->process.start = pid_start;
}

/* Records that the worker ended without being asked to. */
static void worker_observe_crash(struct worker *worker, const struct exit_status *exit, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        bool had_heartbeat = worker->active_at > 0 || worker->last_uptime > 0;
        usec_t uptime = usec_sub(now, worker->active_at > 0 ? worker->active_at : worker->spawned_at);
        const char *meaning = exit_status_is_success(exit) && worker->last_uptime == 0
                                      ? ": the command ended by itself or moved to the background; let it "
                                        "stay in the foreground"
                                      : "";
        char when[192];

        worker->reason = worker->state == WORKER_QUIET ? worker->reason : REASON_CRASH;
        shim_observe_crash(worker, had_heartbeat);
        /* A wrapper that exits after the process that sent heartbeats: the uptime of that process counts. */
        if (worker->last_uptime > 0)
                uptime = worker->last_uptime;
        snprintf(when, sizeof(when),
                 !fleet_settings_write_heartbeats(fleet->settings) ? " after %s%s"
                 : had_heartbeat                                   ? ", %s after its first heartbeat%s"
                                 : " after %s, before its first heartbeat%s",
                 FORMAT_DURATION(uptime), meaning);
        start_failure_describe(fleet, exit, "%s %s%s", WORKER_EVENT_NAME(worker), EXIT_STATUS_TEXT(exit),
                               exit->launch_error ? "" : when);
        fleet->crash_last_apart =
                worker->state == WORKER_QUIET || (had_heartbeat && !worker_is_failed_start(worker, uptime));
        start_failure_report(fleet, EVENT_CRASHED, worker);

        if (worker->state == WORKER_QUIET)
                return;
        if (had_heartbeat && !worker_is_failed_start(worker, uptime) && now < fleet->crash.next_at)
                fleet->crash.freed++;
        if (shim_observe_log_tail(fleet, exit->log_tail))
                start_failure_back_off(fleet, now);
        /* With last_uptime set, this end was recorded already. */
        else if (worker->last_uptime == 0)
                observe_uptime(worker, had_heartbeat ? uptime : 0, now);
}

/* Records that a forked process ended before it was allowed to continue: it has done nothing yet. An unknown
 * exit status means that its sqmgr has ended, and the process with it: no failure. */
static void worker_observe_lost_fork(struct worker *worker, const struct exit_status *exit, usec_t now)
{
        struct fleet *fleet = worker->fleet;

        worker->reason = REASON_CRASH;
        if (!exit->known)
                return;
        start_failure_describe(fleet, NULL, "%s %s while being forked", WORKER_EVENT_NAME(worker),
                               EXIT_STATUS_TEXT(exit));
        start_failure_report(fleet, EVENT_START_FAILED, worker);
        start_failure_observe(fleet, worker->generation, worker->spawned_at, true, now);
}

static void observe_asked_exit(const struct worker *worker, const struct exit_status *exit)
{
        const char *reason = reason_name(worker->reason);

        if (worker->orders.finishes_job)
                worker_event(worker, EVENT_GONE, " was left to finish a job, and %s (reason: %s)",
                             EXIT_STATUS_TEXT(exit), reason);
        else if (exit_status_is_success(exit))
                worker_event(worker, EVENT_GONE, " exited cleanly (status 0, reason: %s)", reason);
        else
                worker_event(worker, EVENT_GONE, " %s after being asked to exit (reason: %s)",
                             EXIT_STATUS_TEXT(exit), reason);
}

void observe_exit(struct worker *worker, const struct exit_status *exit, usec_t now)
{
        struct fleet *fleet = worker->fleet;

        if (worker->process.awaits_go && worker->state == WORKER_STARTING)
                worker_observe_lost_fork(worker, exit, now);
        else if (worker_is_asked_to_exit(worker) || worker->orders.finishes_job) {
                observe_asked_exit(worker, exit);
                rollout_observe_progress(fleet, now);
        } else if (worker_is_own_exit(worker, exit, now))
                observe_own_exit(worker, now);
        else
                worker_observe_crash(worker, exit, now);
        fleet->totals.ends[worker->reason]++;
        worker_set_state(worker, WORKER_GONE, worker->reason, now);
}

void observe_left_behind(struct worker *worker, const struct exit_status *exit, pid_t pid, uint64_t pid_start,
                         usec_t now)
{
        bool finishes_job = worker->fleet->settings->traits->jobs_outlive_it;

        worker_event(worker, EVENT_SEVERAL, " %s; its process %d%s", EXIT_STATUS_TEXT(exit), (int)pid,
                     finishes_job
                             ? ", which finishes its job, keeps running and occupies the place until then"
                             : " has booted and keeps running. Let the command start one process, and "
                               "exit with it");
        /* A process that finishes a job is not going to become active. */
        if (worker->state == WORKER_ACTIVE || (worker->state == WORKER_STARTING && finishes_job)) {
                worker_observe_crash(worker, exit, now);
                worker->orders.quiet_at = now;
                worker_set_state(worker, WORKER_QUIET, REASON_CRASH, now);
        }
        observe_heartbeat_process(worker, 0, 0, now);
        worker->heartbeat.busy = worker->orders.finishes_job = finishes_job;
        worker->process.pid = pid;
        worker->process.start = pid_start;
}

void observe_log_tail(struct fleet *fleet, uint64_t token, const struct quoted *lines)
{
        struct rollout *rollout = &fleet->rollout;
        const char *reported = NULL;

        if (rollout->lines_token == token) {
                rollout->lines_token = 0;
                rollout->quoted = *lines;
                reported = rollout->error;
        }
        if (fleet->lines_token == token) {
                fleet->lines_token = 0;
                fleet->crash_quoted = *lines;
                (void)shim_observe_log_tail(fleet, lines);
                reported = fleet->crash_last;
        }
        if (reported && !quoted_is_empty(lines))
                event_quote(world_event(fleet->world, EVENT_LAST_LINES, fleet, NULL, "%s", reported), lines);
}

bool observe_clocks(struct world *world, usec_t monotonic, usec_t boottime, usec_t realtime)
{
        struct doubt *doubt = &world->doubt;
        int64_t boot_lag = (int64_t)(boottime - monotonic), real_lag = (int64_t)(realtime - monotonic);
        const char *why = NULL;

        if (doubt->due != 0) {
                if (llabs(boot_lag - doubt->boot_lag) > CLOCK_STEP_USEC)
                        why = "the machine was suspended";
                else if (llabs(real_lag - doubt->real_lag) > CLOCK_STEP_USEC)
                        why = "the system clock jumped";
                else if (monotonic > usec_add(doubt->due, settings_stall_usec(world->settings)))
                        why = "sqmgr was stalled";
        }
        if (doubt_steps_back(doubt, boottime, realtime))
                doubt->stepped_back_at = monotonic;
        if (doubt->due == 0 || llabs(real_lag - boot_lag - doubt->steady_lag) > CLOCK_STEP_USEC) {
                doubt->steady_since = boottime;
                doubt->steady_lag = real_lag - boot_lag;
        }
        doubt->boot_lag = boot_lag;
        doubt->real_lag = real_lag;
        doubt->due = usec_add(monotonic, world->settings->check_interval);
        if (!why)
                return false;
        doubt->since = monotonic;
        world_event(world, EVENT_TIME_DOUBT, NULL, NULL,
                    "%s; no worker is quieted or stopped before a fresh heartbeat", why);
        return true;
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

void observe_server(struct fleet *fleet, enum reader_state state, usec_t now)
{
        bool up = state == READER_STATE_CONNECTED;
        /* A first connection says nothing about failures before this sqmgr started: Redis need not have been
         * down. */
        bool continued = fleet->continued;
        enum reader_state before = fleet->server;
        fleet->continued = false;
        fleet->server = state;
        if (fleet->redis_up == up)
                return;
        bool first = up && fleet->redis_at == 0;
        fleet->redis_up = up;
        fleet->redis_at = now;
        if (up && !continued)
                backoff_reset(&fleet->crash);
        if (first)
                return;
        bool database = fleet_settings_need_database(fleet->settings);
        enum event_kind down = database ? EVENT_DATABASE_DOWN : EVENT_REDIS_DOWN;
        fleet_event(fleet,
                    !up        ? down
                    : database ? EVENT_DATABASE_UP
                               : EVENT_REDIS_UP,
                    up ? ": %s is %s again" : ": %s is %s; workers are left as they are",
                    fleet_settings_server(fleet->settings),
                    up && before == READER_STATE_REFUSING ? "accepting writes" : reader_state_text(state));
}

void observe_saved(struct world *world, bool saved, usec_t now)
{
        if (saved)
                world->unsaved_since = 0;
        else if (world->unsaved_since == 0)
                world->unsaved_since = now;
}

void observe_failover(struct fleet *fleet, const char *from, const char *to)
{
        fleet_event(fleet, EVENT_REDIS_FAILOVER, ": Redis failed over from %s to %s", from, to);
}

void observe_ledger(struct world *world, bool durable)
{
        world->ledger_volatile = !durable;
}

void observe_hold(struct fleet *fleet, bool held, bool unknown)
{
        fleet->held = held;
        fleet->unknown = unknown;
}

/* A title shows a boot right before the first heartbeat is sent, which then needs a moment. */
#define ELSEWHERE_USEC (3 * USEC_PER_SEC)

void observe_threads(struct worker *worker, unsigned job_threads)
{
        worker->evidence.threads_known = true;
        worker->evidence.threads = job_threads;
        /* Count threads as evidence only if their number is the one in the title: threads with other names
         * would go unnoticed. */
        if (worker->process.elsewhere && worker->state == WORKER_STARTING && worker->evidence.title_known &&
            job_threads > 0 && job_threads == worker->evidence.title_threads)
                worker->evidence.threads_witness = true;
        if (worker->state == WORKER_ACTIVE && job_threads > 0)
                worker->evidence.threads_witness = true;
}

static void worker_set_ambiguous(struct worker *worker, bool ambiguous, const char *why)
{
        bool reported = worker->heartbeat.ambiguous;

        worker->heartbeat.ambiguous = ambiguous;
        if (ambiguous && !reported)
                worker_event(worker, EVENT_AMBIGUOUS,
                             ": %s; no signal is sent because of these heartbeats. Give each machine and "
                             "container its own host name",
                             why);
}

void observe_title(struct worker *worker, bool known, unsigned busy, bool quiet)
{
        worker->evidence.title_known = known;
        worker->evidence.title_busy = busy;
        worker->evidence.title_quiet = quiet;
        if (known && !worker->fleet->redis_up)
                worker->heartbeat.busy = busy;
        if (!worker->heartbeat.seen)
                return;
        /* The title may have been read shortly before its update. */
        bool lasts = worker->heartbeat.idle_count >= WORKER_DENIED_HEARTBEATS ||
                     worker->heartbeat.not_quiet_count >= WORKER_DENIED_HEARTBEATS;
        bool denied = worker_contradicted(worker);

        worker_set_ambiguous(
                worker, denied && (lasts || worker->heartbeat.ambiguous),
                "the process title contradicts the heartbeats, which may come from another process "
                "with the same host name and pid");
}

void observe_booted(struct worker *worker, bool booted, usec_t now)
{
        char why[WORKER_ELSEWHERE_MAX];

        worker->process.boot_polled_at = now;
        if (booted) {
                observe_boot_in_proc(worker);
                worker->process.boot_seen_at = worker->process.boot_seen_at ?: now;
        }
        /* A boot alone is no news: time remains for the first heartbeat. */
        if (booted && worker->process.unproven) {
                worker->process.unproven = false;
                return;
        }
        if (booted && !worker->process.booted && !worker->heartbeat.ambiguous &&
            worker->state == WORKER_STARTING)
                worker_event(worker, EVENT_ELSEWHERE, " has booted, but its heartbeat was not found: %s",
                             worker_elsewhere_text(worker, why));
        /* While the worker is starting, booted stays set: a later check may have failed. */
        worker->process.booted = booted || (worker->process.booted && worker->state == WORKER_STARTING);
        worker->process.unseen &= !worker->process.booted;
}

bool observe_environment_redis(struct worker *worker, const struct redis_comparison *redis)
{
        bool reported = worker->fleet->redis_reported;

        worker->process.redis = *redis;
        worker->fleet->redis_reported |= redis->difference != REDIS_SAME;
        return worker->fleet->redis_reported && !reported;
}

bool observe_boot_title(struct worker *worker, bool booted, usec_t searched_at, usec_t now)
{
        usec_t doubt = worker->fleet->world->doubt.since;

        if (!booted)
                worker->process.boot_seen_at = 0;
        else if (worker->process.boot_seen_at <= doubt)
                worker->process.boot_seen_at = now;
        return booted && searched_at >= usec_add(worker->process.boot_seen_at, ELSEWHERE_USEC);
}

void observe_elsewhere(struct worker *worker)
{
        worker->process.elsewhere = worker->state == WORKER_STARTING && !worker->heartbeat.seen;
}

void observe_boot_in_proc(const struct worker *worker)
{
        worker->fleet->boot_in_proc |= !worker_outdated(worker);
}

/* Nothing shows that the worker runs no jobs: it is kept. The release has failed to start it all the same. */
static void worker_observe_unseen(struct worker *worker, usec_t now)
{
        struct fleet *fleet = worker->fleet;
        char why[WORKER_UNSEEN_MAX];

        worker->process.unseen = true;
        start_failure_describe(fleet, NULL, "%s: no heartbeat was found within boot_timeout%s%s",
                               WORKER_EVENT_NAME(worker),
                               worker->heartbeat.fault != HEARTBEAT_FAULT_NONE ? ": " : "",
                               heartbeat_fault_text(worker->heartbeat.fault));
        world_event(fleet->world, EVENT_BOOT_TIMEOUT, fleet, worker,
                    "%s; kept, as it may run jobs. %s; or run 'sqmgrctl stop %s --force'", fleet->crash_last,
                    !fleet->settings->traits->shim                    ? "Fix the address of its server"
                    : worker->heartbeat.fault == HEARTBEAT_FAULT_NONE ? worker_unseen_text(worker, why)
                                                                      : "Read its log",
                    WORKER_ID(worker));
        start_failure_observe(fleet, worker->generation, now, false, now);
        if (!worker_outdated(worker))
                rollout_observe_unseen(fleet, now);
}

void observe_activity(struct worker *worker, bool apart, uint64_t wakeups, usec_t now)
{
        struct worker_evidence *evidence = &worker->evidence;
        bool woken = evidence->still_since != 0 && wakeups != evidence->wakeups;

        if (!apart || woken || evidence->still_since == 0)
                evidence->still_since = now;
        evidence->wakeups = wakeups;
        if ((!apart || woken || worker->fleet->settings->traits->shim) && worker->state == WORKER_STARTING &&
            !worker->process.unseen && !worker->process.booted && !worker->heartbeat.ambiguous &&
            now >= worker_boot_deadline(worker) && !worker_boot_has_failed(worker) &&
            !worker_lacks_shim(worker, now))
                worker_observe_unseen(worker, now);
}

void observe_shutdown_time(struct worker *worker, usec_t shutdown)
{
        struct fleet *fleet = worker->fleet;
        const struct fleet_settings *settings = fleet->settings;

        if (shutdown == 0)
                return;
        usec_t needed = shutdown + SETTINGS_STOP_MARGIN_USEC;
        worker->process.shutdown_usec = shutdown;
        /* A title can claim any time: report again only if it has doubled, or stop_timeout was raised. */
        bool heeded = fleet->shutdown_reported + SETTINGS_STOP_MARGIN_USEC <= settings->stop_timeout;
        if (needed <= settings->stop_timeout || (!heeded && shutdown < 2 * fleet->shutdown_reported))
                return;
        fleet->shutdown_reported = shutdown;
        worker_event(
                worker, EVENT_STOP_TIMEOUT_SHORT,
                " may take %s to exit (%s), but would be killed after %s (stop_timeout). Set stop_timeout "
                "to %s or more",
                FORMAT_DURATION(shutdown), settings->traits->shutdown_option,
                FORMAT_DURATION(settings->stop_timeout), FORMAT_DURATION_EXACT(needed));
}

void observe_peers(struct worker *worker, const char *peers)
{
        worker->evidence.peers_known = true;
        snprintf(worker->evidence.peers, sizeof(worker->evidence.peers), "%s", peers);
}

/* A worker that was asked to be quiet shows that only once it is idle; while it runs a job, it counts as
 * quiet. A worker that was not asked may show quiet too, for example while the queues are paused. A process
 * that its command started later was not asked, and has sent no heartbeat yet at this point. */
struct heartbeat heartbeat_complete(const struct worker *worker, const struct heartbeat *heartbeat,
                                    unsigned busy, bool quiet)
{
        bool reported =
                worker->orders.quiet_at != 0 && worker->heartbeat.seen && !worker->orders.group_signaled;
        struct heartbeat complete = *heartbeat;

        complete.busy = MAX(heartbeat->busy, busy);
        complete.quiet = reported && (quiet || busy > 0);
        return complete;
}

void observe_ambiguous(struct worker *worker, bool ambiguous)
{
        if (!worker->heartbeat.seen)
                worker_set_ambiguous(worker, ambiguous,
                                     "several processes send heartbeats with its host name and pid, and are "
                                     "indistinguishable");
}

void observe_sibling(struct worker *worker, pid_t pid, usec_t now)
{
        if (worker->evidence.siblings_polled_at == 0)
                worker->evidence.siblings_polled_at = now;
        if (pid == 0 || worker->evidence.sibling_reported)
                return;
        worker->evidence.sibling_reported = true;
        worker_event(worker, EVENT_SEVERAL,
                     ": process %d sends heartbeats, too, but sqmgr manages one process per worker. Let the "
                     "command start only one",
                     (int)pid);
}
