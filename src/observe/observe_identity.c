/* SPDX-License-Identifier: MIT */
/* Records the evidence for or against the heartbeats attributed to a worker: threads, title, and other
 * processes under its host name and pid. */
#include "observe/observe_identity.h"
#include "base/parse.h"
#include "model/deadlines.h"
#include "model/describe.h"
#include "model/idle_proof.h"
#include "model/names.h"
#include "model/rollout.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <stdio.h>

/* A title shows a boot right before the first heartbeat is sent, which then needs a moment. */
#define ELSEWHERE_USEC (3 * USEC_PER_SEC)

void observe_heartbeat_fault(struct worker *worker, enum heartbeat_fault fault)
{
        worker->heartbeat.fault = fault;
}

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
        char own[FORMAT_MAX], least[FORMAT_MAX], timeout[FORMAT_MAX];

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
                format_duration(shutdown, own, sizeof(own)), settings->traits->shutdown_option,
                format_duration(settings->stop_timeout, timeout, sizeof(timeout)),
                format_duration_exact(needed, least, sizeof(least)));
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
