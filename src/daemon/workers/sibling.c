/* SPDX-License-Identifier: MIT */
/* Finds processes of a worker besides the one that sent heartbeats: some commands start several processes, or
 * start another when one has ended. */
#include "daemon/workers/sibling.h"
#include "base/fd.h"
#include "daemon/runtime/proc_evidence.h"
#include "model/fleet.h"
#include "privileged/probe.h"
#include <unistd.h>

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
        struct proc_place place;
        uid_t uid = 0;

        if (pid == getpid())
                return 0;
        int r = proc_open(pid, &proc);
        if (r >= 0 && !others->any_group)
                r = proc_place(proc, &place);
        if (r >= 0 && !others->any_group)
                r = proc_uid(proc, &uid);
        if (r < 0)
                return is_shortage(r) ? r : 0;
        if (proc_has_exited(proc) || (!others->any_group && place.group != process->group))
                return 0;
        /* Once the group has ended, its number may be reused by another user. */
        if (!others->any_group && process->uid != 0 && uid != process->uid)
                return 0;
        r = proc_evidence_runs_jobs(process->runtime->proc_facts, proc, process_user(process->worker),
                                    framework_of(process->worker->fleet->settings->traits));
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

        /* Readable until the process is reaped. */
        (void)proc_uid(process->main, &process->uid);
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
