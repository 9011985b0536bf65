/* SPDX-License-Identifier: MIT */
/* Finds processes of a worker besides the known ones; see the header. */
#include "daemon/workers/orphan.h"
#include "base/fd.h"
#include "daemon/runtime/proc_evidence.h"
#include "io/clock.h"
#include "io/signal.h"
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
                (void)sd_event_source_set_time(source,
                                               usec_add(clock_now(CLOCK_MONOTONIC), all ? HIDDEN_USEC : 0));
                (void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
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

/* True if the worker has this process by a handle, or, with tree, if it runs below the worker's process. */
static bool has_process(const struct worker *worker, const struct proc *proc, bool tree)
{
        const struct worker_process *its = &worker->process;
        pid_t pid = proc_pid(proc);
        uint64_t start = proc_start_time(proc);

        return (pid == its->pid && start == its->start) ||
               (pid == its->heartbeat_pid && start == its->heartbeat_start) ||
               (tree && proc_has_ancestor(pid, its->pid, its->start) > 0);
}

/* A remote process does not run below the process of its worker. */
static bool is_remote_of_another(const struct heartbeat_slot *slot, pid_t own_pid)
{
        const struct match *match = slot ? slot->heartbeats->match : NULL;

        for (size_t i = 0; match && i < match->n_candidates; i++)
                if (match->candidates[i]->remote && match->candidates[i]->owner != slot &&
                    match->candidates[i]->own_pid == own_pid)
                        return true;
        return false;
}

/* Checks whether a process belongs to another worker, or to another sqmgr. User and group prove nothing: all
 * that a daemon starts may share a group. Returns 1, 0, -EINPROGRESS, -ETIMEDOUT, or -errno when descriptors
 * or memory are short. */
static int is_anothers(const struct process *process, const struct proc *proc)
{
        const struct worker *worker = process->worker;
        bool below = has_process(worker, proc, true);
        struct markers markers;
        pid_t own_pid;

        WORLD_FOREACH_FLEET(process->runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, other)
                        if (other != worker && other->state != WORKER_GONE &&
                            has_process(other, proc, !below))
                                return 1;
        if (below)
                return 0;
        if (proc_own_pid(proc, &own_pid) >= 0 && is_remote_of_another(process->slot, own_pid))
                return 1;
        _cleanup_free_ char *environment = malloc(ENV_MARKERS_MAX_BYTES);
        if (!environment)
                return -ENOMEM;
        ssize_t length = env_markers_read(process->runtime->proc_facts, proc, environment, &markers);
        if (length < 0)
                return proc_facts_is_unknown((int)length) ? (int)length : none_unless_shortage((int)length);
        /* A forked process shows the markers of its template. */
        return !worker->process.forked && markers.instance && markers.worker && markers.started_at != 0 &&
               !env_markers_are_of(&markers, process->runtime->instance, worker);
}

struct others {
        const struct process *process;
        bool any_group; /* false: only processes of the worker's process group */
        struct proc *found;
        int unknown; /* -errno of a process that was not read yet, or cannot be; 0: none */
};

static int poll_other(pid_t pid, void *userdata)
{
        struct others *others = userdata;
        const struct process *process = others->process;
        _cleanup_proc_ struct proc *proc = NULL;
        uid_t uid = 0;

        if (pid == getpid())
                return 0;
        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_uid(proc, &uid);
        if (r < 0)
                return is_shortage(r) ? r : 0;
        /* Once the group has ended, its number may be reused by another user. */
        if (proc_has_exited(proc) || (!others->any_group && uid != geteuid()))
                return 0;
        r = proc_evidence_runs_jobs(process->runtime->proc_facts, proc,
                                    framework_of(process->worker->fleet->settings->traits));
        if (r > 0) {
                int other = is_anothers(process, proc);

                r = other < 0 ? other : other == 0;
        }
        /* Continue, so that the readers are asked about all processes at once. */
        if (proc_facts_is_unknown(r)) {
                others->unknown = others->unknown == -EINPROGRESS ? -EINPROGRESS : r;
                return 0;
        }
        if (r > 0)
                others->found = TAKE_PTR(proc);
        return r;
}

int sibling_find(struct process *process, bool left, struct proc **ret)
{
        struct others others = {.process = process, .any_group = true};
        int r = 0;

        if (!proc_has_exited(process->main))
                r = proc_tree_each(process->worker->process.pid, poll_other, &others);
        others.any_group = false;
        /* Scan all processes only if the group still has any. */
        if (r == 0 && left && probe_group(process->group))
                r = proc_group_each(process->group, poll_other, &others);
        if (r == 0)
                r = others.unknown;
        if (r <= 0 || !ret)
                others.found = proc_close(others.found);
        if (r > 0 && ret)
                *ret = others.found;
        return r;
}
