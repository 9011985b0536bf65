/* SPDX-License-Identifier: MIT */
/* Records the evidence for or against the heartbeats attributed to a worker: threads, title, and other
 * processes under its host name and pid. */
#include "observe/observe_identity.h"
#include "model/idle_proof.h"
#include "model/names.h"
#include "model/worker_facts.h"
#include "model/world.h"
#include <stdio.h>

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

struct heartbeat heartbeat_amend(const struct worker *worker, const struct heartbeat *heartbeat, usec_t now)
{
        const struct traits *traits = worker->fleet->settings->traits;
        /* Another process of the worker, which takes over from one that was quieted, was not asked. */
        bool asked =
                worker->orders.group_signaled || (worker->orders.quiet_at != 0 && worker->heartbeat.seen);
        struct heartbeat amended = *heartbeat;

        if (traits->quiet_is_silent)
                amended.quiet &= worker_is_retiring(worker) && asked;
        if (traits->process_is_heartbeat || (traits->quiet_is_silent && amended.quiet && amended.busy == 0))
                amended.sent_usec = now;
        return amended;
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
