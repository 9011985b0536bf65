/* SPDX-License-Identifier: MIT */
/* Finds processes of a worker besides the one that sent heartbeats: some commands start several processes, or
 * start another when one has ended. */
#include "daemon/workers/sibling.h"
#include "base/fd.h"
#include "daemon/runtime/env_marker.h"
#include "daemon/runtime/proc_evidence.h"
#include "io/probe.h"
#include "model/fleet.h"
#include "model/world.h"
#include <unistd.h>

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

static int poll_at(pid_t pid, void *userdata)
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
                r = proc_tree_each(process->worker->process.pid, poll_at, &others);
        others.any_group = false;
        /* Scan all processes only if the group still has any. */
        if (r == 0 && left && probe_group(process->group))
                r = proc_group_each(process->group, poll_at, &others);
        if (r == 0)
                r = others.unknown;
        if (r <= 0 || !ret)
                others.found = proc_close(others.found);
        if (r > 0 && ret)
                *ret = others.found;
        return r;
}
