/* SPDX-License-Identifier: MIT */
/* Finds processes left by a command that goes to the background. */
#include "daemon/workers/orphan.h"
#include "base/fd.h"
#include "daemon/runtime/proc_evidence.h"
#include "io/clock.h"
#include "io/timer.h"
#include "model/fleet.h"
#include "model/world.h"
#include <unistd.h>

/* Processes checked in one go: a worker may leave thousands behind. */
#define SLICE 32
/* During execve(), a process shows no environment ("hidden") and is checked again. The limit is 2 s for all
 * such processes together, with a minimum number of tries. */
#define HIDDEN_USEC       (10 * USEC_PER_MSEC)
#define HIDDEN_TOTAL_USEC (2 * USEC_PER_SEC)
#define HIDDEN_TRIES      5

struct orphan_search {
        const struct runtime *runtime;
        struct worker *worker;
        bool failed;
        orphan_fn done;
        sd_event_source *timer;
        /* The hidden processes among those already checked (n_hidden), and those not checked yet (from
         * at). */
        pid_t *orphans;
        size_t n_hidden, at, n_orphans;
        unsigned tries;
        usec_t began_at;
        struct proc *orphan; /* best candidate so far; NULL: none */
        char environment[ENV_MARKERS_MAX_BYTES];
};

struct orphan_search *orphan_search_free(struct orphan_search *orphan_search)
{
        if (!orphan_search)
                return NULL;
        sd_event_source_disable_unref(orphan_search->timer);
        proc_close(orphan_search->orphan);
        free(orphan_search->orphans);
        free(orphan_search);
        return NULL;
}

/* Checks a process. Returns true if it must be checked again. */
static bool poll_at(struct orphan_search *orphan_search, pid_t pid)
{
        const struct worker *worker = orphan_search->worker;
        _cleanup_proc_ struct proc *proc = NULL;
        struct proc_place place;
        struct markers markers;
        struct proc_facts *facts = orphan_search->runtime->proc_facts;

        if (proc_facts_is_reader(facts, pid))
                return false;
        if (proc_open(pid, &proc) < 0 || proc_has_exited(proc) ||
            proc_start_time(proc) < worker->process.start || proc_place(proc, &place) < 0 ||
            place.parent != getpid())
                return false;
        ssize_t length = env_markers_read(facts, proc, orphan_search->environment, &markers);
        if (length == 0 || length == -EINPROGRESS)
                return !proc_has_exited(proc);
        if (length < 0 || !env_markers_are_of(&markers, orphan_search->runtime->instance, worker))
                return false;
        int r = proc_evidence_has_booted(facts, proc, framework_of(worker->fleet->settings->traits));
        if (r == -EINPROGRESS)
                return true;
        bool booted = r > 0;
        if (!booted && (orphan_search->failed || orphan_search->orphan))
                return false;
        proc_close(orphan_search->orphan);
        orphan_search->orphan = TAKE_PTR(proc);
        /* No better candidate is possible. */
        if (booted)
                orphan_search->n_hidden = orphan_search->n_orphans = 0;
        return false;
}

/* Checks a slice. Returns true when all were checked. */
static bool poll_some(struct orphan_search *orphan_search)
{
        for (unsigned n = 0; n < SLICE && orphan_search->at < orphan_search->n_orphans; n++) {
                pid_t pid = orphan_search->orphans[orphan_search->at++];

                if (poll_at(orphan_search, pid))
                        orphan_search->orphans[orphan_search->n_hidden++] = pid;
        }
        return orphan_search->at >= orphan_search->n_orphans;
}

static bool may_become_visible(const struct orphan_search *orphan_search)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        return orphan_search->n_hidden > 0 && (orphan_search->tries < HIDDEN_TRIES ||
                                               now < usec_add(orphan_search->began_at, HIDDEN_TOTAL_USEC));
}

static int on_timer(sd_event_source *source, _unused_ uint64_t usec, void *userdata)
{
        struct orphan_search *orphan_search = userdata;
        bool all = poll_some(orphan_search);

        if (!all || (!orphan_search->orphan && may_become_visible(orphan_search))) {
                if (all) {
                        orphan_search->n_orphans = orphan_search->n_hidden;
                        orphan_search->at = orphan_search->n_hidden = 0;
                        orphan_search->tries++;
                }
                timer_set(source, usec_add(clock_now(CLOCK_MONOTONIC), all ? HIDDEN_USEC : 0));
                return 0;
        }
        struct worker *worker = orphan_search->worker;
        struct proc *orphan = TAKE_PTR(orphan_search->orphan);
        orphan_fn done = orphan_search->done;
        orphan_search_free(orphan_search);
        done(worker, orphan);
        return 0;
}

int orphan_search_start(struct runtime *runtime, struct worker *worker, bool failed, orphan_fn done,
                        struct orphan_search **ret)
{
        struct orphan_search *orphan_search = calloc(1, sizeof(*orphan_search));

        if (!orphan_search)
                return -ENOMEM;
        orphan_search->runtime = runtime;
        orphan_search->worker = worker;
        orphan_search->failed = failed;
        orphan_search->done = done;
        orphan_search->began_at = clock_now(CLOCK_MONOTONIC);
        int r = proc_children(getpid(), &orphan_search->orphans, &orphan_search->n_orphans);
        if (r >= 0)
                r = sd_event_add_time(runtime->event, &orphan_search->timer, CLOCK_MONOTONIC, 0, 0, on_timer,
                                      orphan_search);
        *ret = r < 0 ? orphan_search_free(orphan_search) : orphan_search;
        return MIN(r, 0);
}
