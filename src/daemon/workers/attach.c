/* SPDX-License-Identifier: MIT */
/* Attaches the processes of a worker. */
#include "daemon/workers/attach.h"
#include "base/fd.h"
#include "daemon/workers/exits.h"
#include "daemon/workers/start_record.h"
#include "io/log.h"
#include "model/world.h"
#include "observe/observe.h"

/* Returns a descriptor to read back the worker's output, or -1. If one worker fails, most do, so the failure
 * is logged once. */
static int open_output(struct runtime *runtime, const struct worker *worker, const struct proc *main)
{
        int fd = proc_open_output(main);

        if (fd >= 0 || fd == -ESRCH || runtime->lines_missed)
                return MAX(fd, -1);
        runtime->lines_missed = true;
        log_info("%s (pid %d): no log tail will be available (reason: %s)", WORKER_ID(worker),
                 (int)worker->process.pid,
                 fd == -EACCES   ? "the log is open for writing only"
                 : fd == -ENODEV ? "standard output is not a file on this machine"
                                 : strerrordesc_np(-fd));
        return -1;
}

int attach_started(struct runtime *runtime, struct worker *worker, struct proc *main, int report_fd)
{
        int r = process_new(runtime, worker, main, report_fd);

        /* A command starts in its own session. */
        if (r >= 0) {
                worker->handle->group = worker->process.pid;
                r = exits_watch(worker->handle);
        }
        struct heartbeats *heartbeats =
                worker->fleet->link ? worker->fleet->link->heartbeats : runtime->local;

        return r < 0 ? r : heartbeats_add(heartbeats, worker, &worker->handle->slot);
}

/* Opens the log file that the worker writes to, through the worker's own descriptor. */
static void attach_output(struct runtime *runtime, const struct worker *worker, const struct proc *main)
{
        const char *log = worker->fleet->settings->log;

        if (log && log[0] == '/')
                worker->handle->report.log_fd = open_output(runtime, worker, main);
}

int attach_forked(struct runtime *runtime, struct worker *worker, struct proc *main, int go_fd)
{
        _cleanup_close_ int held = go_fd;
        struct proc_place place;
        mode_t type;
        int r = attach_started(runtime, worker, main, -1);

        if (r < 0)
                return r;
        struct process *process = worker->handle;
        if (proc_place(main, &place) < 0 || place.group != worker->process.pid)
                process->group = 0;
        process->go_fd = TAKE_FD(held);
        process->record = start_record_add(runtime, worker);
        attach_output(runtime, worker, main);
        /* Existing content belongs to other workers. */
        if (process->report.log_fd >= 0)
                (void)fd_type(process->report.log_fd, &type, &process->report.log_start_bytes);
        return 0;
}

int attach_adopted(struct runtime *runtime, struct worker *worker, struct proc *main, struct proc *heartbeat,
                   const char *identity, unsigned record)
{
        _cleanup_proc_ struct proc *held = heartbeat;
        int r = attach_started(runtime, worker, main, -1);

        if (r < 0)
                return r;
        struct process *process = worker->handle;
        struct proc_place place;
        process->record = record != 0 ? record : start_record_add(runtime, worker);
        /* The process that leads the session may be gone. A living one is no process of the worker: the
         * session is then of a daemon that starts processes for others, too. */
        process->group = proc_place(main, &place) >= 0 && place.group != getpgrp() &&
                                         (place.session == worker->process.pid || !probe_pid(place.session))
                                 ? place.group
                                 : 0;
        attach_output(runtime, worker, main);
        if (held)
                r = exits_watch_heartbeat(process, TAKE_PTR(held));
        if (r < 0)
                return r;
        return identity ? heartbeats_know(process->slot, identity) : 0;
}

void attach_heartbeat(struct worker *worker, pid_t pid, usec_t now)
{
        struct process *process = worker->handle;
        _cleanup_proc_ struct proc *heartbeat = NULL;

        wakeup_changed(process->runtime->wakeup);
        if (pid == worker->process.pid) {
                process_forget_heartbeat(process);
                observe_heartbeat_process(worker, worker->process.pid, worker->process.start, now);
                return;
        }
        /* The pidfd is opened before the ancestors are checked, so that a recycled pid is rejected. A process
         * that cannot be attached is no worker yet: its heartbeats must not count. */
        if (proc_open(pid, &heartbeat) < 0 ||
            proc_has_ancestor(pid, worker->process.pid, worker->process.start) <= 0 ||
            exits_watch_heartbeat(process, TAKE_PTR(heartbeat)) < 0) {
                heartbeats_forget(process->slot);
                return;
        }
        observe_heartbeat_process(worker, pid, proc_start_time(process->heartbeat), now);
}
