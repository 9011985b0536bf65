/* SPDX-License-Identifier: MIT */
/* Taking a job involves several Redis round trips, so the worker wakes up and sleeps again. See the
 * header. */
#include "daemon/workers/idle_check.h"
#include <stdlib.h>

/* The longer a worker has waited for a job, the less likely one arrives just with the signal. */
#define IDLE_CHECK_USEC (3 * USEC_PER_SEC)

/* The process of a job leads its own group; a scheduler, for example, does not. */
static int is_job(pid_t pid)
{
        _cleanup_proc_ struct proc *proc = NULL;
        struct proc_place place;

        int r = proc_open(pid, &proc);
        if (r >= 0)
                r = proc_place(proc, &place);
        if (r < 0)
                return r == -ESRCH ? 0 : r;
        return place.group == pid && !proc_has_exited(proc);
}

static int runs_job(pid_t pid)
{
        _cleanup_free_ pid_t *children = NULL;
        size_t n = 0;

        int r = proc_children(pid, &children, &n);
        for (size_t i = 0; i < n && r == 0; i++)
                r = is_job(children[i]);
        return r;
}

int idle_check_poll(struct process *process, usec_t now)
{
        const struct proc *beating = process_beating(process);
        uint64_t times;
        bool asleep;

        if (!beating)
                return -ESRCH;
        int r = runs_job(proc_pid(beating));
        if (r != 0)
                return r;
        r = proc_sleeps(beating, &asleep, &times);
        if (r < 0)
                return r;
        if (process->slept_at == 0 || times != process->slept_times) {
                process->slept_times = times;
                process->slept_at = now;
        }
        /* A process that was woken but has not run yet is not asleep. */
        return asleep && usec_sub(now, process->slept_at) >= IDLE_CHECK_USEC;
}
