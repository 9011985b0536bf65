/* SPDX-License-Identifier: MIT */
/* Handles the exits of processes: workers, and all other children. */
#include "daemon/workers/exits.h"
#include "daemon/workers/exit_log.h"
#include "daemon/workers/rescue.h"
#include "daemon/workers/side_start.h"
#include "io/clock.h"
#include "model/world.h"
#include "observe/observe.h"
#include <sys/epoll.h>
#include <sys/wait.h>

/* Children reaped in one go: leftover processes may fork without end. */
#define SWEEP_MAX 64

static int on_main_exit(sd_event_source *source, int fd, uint32_t events, void *userdata);

/* The main process has exited and a separate heartbeat process lives on: it becomes the main process. */
static bool promote(struct process *process)
{
        if (!process->heartbeat || proc_has_exited(process->heartbeat))
                return false;
        sd_event_source_disable_unref(process->main_exit);
        proc_close(process->main);
        process->main = TAKE_PTR(process->heartbeat);
        process->main_exit = TAKE_PTR(process->heartbeat_exit);
        observe_promoted(process->worker);
        wakeup_changed(process->runtime->wakeup);
        return true;
}

/* The last known process is gone, but the command left another working process behind. Attach it: nothing
 * else would supervise it. */
static bool succeed(struct process *process, const struct exit_status *exit, struct proc *left, usec_t now)
{
        struct worker *worker = process->worker;
        _cleanup_proc_ struct proc *other = left;
        sd_event_source *main_exit = NULL;

        if (!other || sd_event_add_io(process->runtime->event, &main_exit, proc_pidfd(other), EPOLLIN,
                                      on_main_exit, process) < 0)
                return false;
        sd_event_source_disable_unref(process->main_exit);
        proc_close(process->main);
        process->main_exit = main_exit;
        process->main = TAKE_PTR(other);
        process_forget_heartbeat(process);
        heartbeats_forget(process->slot);
        observe_left_behind(worker, exit, proc_pid(process->main), proc_start_time(process->main), now);
        return true;
}

/* Starts rescues for sibling heartbeat processes, which may have exited with the worker. Their exit status is
 * not known; a living sibling keeps its jobs. */
static void begin_rescue_of_siblings(const struct process *process)
{
        const struct exit_status unknown = {.known = false};
        struct worker other = *process->worker;
        char *identity;

        /* Siblings were not asked to exit unless the group was signaled, and the facts of the worker do not
         * apply to them. */
        if (!other.orders.group_signaled)
                other.state = WORKER_ACTIVE;
        other.process.remote = false;
        other.heartbeat.busy = 0;
        other.memory.bytes = 0;
        while ((identity = heartbeats_take_another(process->slot, &other.process.heartbeat_pid))) {
                _cleanup_proc_ struct proc *proc = NULL;

                other.process.heartbeat_start =
                        proc_open(other.process.heartbeat_pid, &proc) >= 0 ? proc_start_time(proc) : 0;
                rescue_begin(process->runtime, other.fleet, &other, identity, &unknown, NULL);
                free(identity);
        }
}

/* exit is of the main process, which may not be the one that ran the jobs. */
static void begin_rescue(struct process *process, const struct exit_status *exit)
{
        const struct exit_status unknown = {.known = false};
        const struct worker *worker = process->worker;

        if (process_is_watched(process))
                begin_rescue_of_siblings(process);
        rescue_begin(process->runtime, worker->fleet, worker, process_identity(process),
                     worker->process.heartbeat_pid == worker->process.pid ? exit : &unknown,
                     TAKE_PTR(process->drained_jobs));
}

/* Reaps the main process. The exit status is not known if the process is not our child, for example when
 * adopted. */
static struct exit_status reap(const struct process *process)
{
        siginfo_t info = {0};

        if (waitid(P_PIDFD, (id_t)proc_pidfd(process->main), &info, WEXITED | WNOHANG) < 0 ||
            info.si_pid == 0)
                return (struct exit_status){.known = false};
        return children_status(&info);
}

static struct exit_log_source log_source(const struct process *process)
{
        const struct worker *worker = process->worker;

        return (struct exit_log_source){
                .fleet = worker->fleet,
                .main = process->main,
                .pids = {worker->process.pid, worker->process.heartbeat_pid ?: process->ended_heartbeat_pid},
                .since = worker->spawned_at,
        };
}

/* Handles the exit of the last known process of the worker. Returns early while the proc reader reads
 * leftover processes or the log; exits_resume() then calls again. */
static void ended(struct process *process, struct exit_status exit)
{
        _cleanup_proc_ struct proc *left = NULL;
        const struct exit_log_source whose = log_source(process);
        struct quoted lines = {0};

        process->main_status = exit;
        int found = process_is_watched(process) ? sibling_find(process, true, &left) : 0;
        int r = exit_log_add(process->runtime, &whose, &process->report,
                             worker_is_asked_to_exit(process->worker), &lines, &exit);
        process->exit_waits = found == -EINPROGRESS || r == -EINPROGRESS;
        if (process->exit_waits) {
                process->main_exit = sd_event_source_disable_unref(process->main_exit);
                return;
        }
        wakeup_changed(process->runtime->wakeup);
        begin_rescue(process, &exit);
        if (succeed(process, &exit, TAKE_PTR(left), clock_now(CLOCK_MONOTONIC)))
                return;
        process->main_exit = sd_event_source_disable_unref(process->main_exit);
        process_forget_heartbeat(process);
        observe_exit(process->worker, &exit, clock_now(CLOCK_MONOTONIC));
        after_exit_begin(process->runtime, process->worker, &exit);
}

/* True if the process was the only one to get a signal, if any: other processes may keep running. */
static bool was_ended_alone(const struct worker *worker)
{
        return worker->state == WORKER_STARTING ||
               (worker->state == WORKER_STOPPING && worker->reason == REASON_BOOT);
}

/* Attaches a process that went to the background before its first heartbeat. Otherwise each new start would
 * leave another one behind. */
static void adopt_orphan(struct worker *worker, struct proc *orphan)
{
        _cleanup_proc_ struct proc *held = orphan;
        struct process *process = worker->handle;

        process->orphan_search = NULL;
        if (!held || !was_ended_alone(worker) ||
            sd_event_add_io(process->runtime->event, &process->main_exit, proc_pidfd(held), EPOLLIN,
                            on_main_exit, process) < 0) {
                ended(process, process->main_status);
                return;
        }
        proc_close(process->main);
        process->main = TAKE_PTR(held);
        observe_orphan(worker, proc_pid(process->main), proc_start_time(process->main),
                       clock_now(CLOCK_MONOTONIC));
        heartbeats_moved(process->slot);
        wakeup_changed(process->runtime->wakeup);
}

/* Orphans are reparented to us only if the worker was our child. */
static bool may_leave_an_orphan(const struct process *process)
{
        return was_ended_alone(process->worker) && !process->heartbeat && process->main_status.known &&
               process->report.outcome != LAUNCH_FAILED;
}

static void exited(struct process *process)
{
        if (process->worker->state == WORKER_GONE || process->orphan_search || process->exit_waits)
                return;
        const struct exit_log_source whose = log_source(process);
        if (!worker_is_asked_to_exit(process->worker))
                exit_log_ask(process->runtime, &whose, &process->report);
        process->main_status = reap(process);
        if (promote(process))
                return;
        process_read_report(process);
        bool failed = !process->main_status.by_signal && process->main_status.status != 0;
        if (!may_leave_an_orphan(process) || orphan_search_start(process->runtime, process->worker, failed,
                                                                 adopt_orphan, &process->orphan_search) < 0) {
                ended(process, process->main_status);
                return;
        }
        process->main_exit = sd_event_source_disable_unref(process->main_exit);
}

static int on_main_exit(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_,
                        void *userdata)
{
        exited(userdata);
        return 0;
}

static int on_heartbeat_exit(sd_event_source *source _unused_, int fd _unused_, uint32_t events _unused_,
                             void *userdata)
{
        struct process *process = userdata;

        /* The process was promoted meanwhile: it was the main process. */
        if (!process->heartbeat) {
                exited(process);
                return 0;
        }
        begin_rescue(process, &(struct exit_status){.known = false});
        process_forget_heartbeat(process);
        heartbeats_forget(process->slot);
        process->ended_heartbeat_pid = process->worker->process.heartbeat_pid;
        observe_heartbeat_process(process->worker, 0, 0, clock_now(CLOCK_MONOTONIC));
        wakeup_changed(process->runtime->wakeup);
        return 0;
}

int exits_watch(struct process *process)
{
        return sd_event_add_io(process->runtime->event, &process->main_exit, proc_pidfd(process->main),
                               EPOLLIN, on_main_exit, process);
}

int exits_watch_heartbeat(struct process *process, struct proc *heartbeat)
{
        _cleanup_proc_ struct proc *held = heartbeat;
        sd_event_source *heartbeat_exit = NULL;

        int r = sd_event_add_io(process->runtime->event, &heartbeat_exit, proc_pidfd(heartbeat), EPOLLIN,
                                on_heartbeat_exit, process);
        if (r < 0)
                return r;
        process_forget_heartbeat(process);
        process->heartbeat = TAKE_PTR(held);
        process->heartbeat_exit = heartbeat_exit;
        return 0;
}

/* True if the main process was already reaped: the pid may be recycled. */
static bool is_waited_for(const struct process *process)
{
        return process && (process->orphan_search || process->exit_waits);
}

static struct process *find_main(const struct world *world, pid_t pid)
{
        WORLD_FOREACH_FLEET(world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker)
                        if (worker->state != WORKER_GONE && worker->process.pid == pid &&
                            !is_waited_for(worker->handle))
                                return worker->handle;
        return NULL;
}

void exits_resume(struct runtime *runtime)
{
        WORLD_FOREACH_FLEET(runtime->world, fleet)
                FLEET_FOREACH_WORKER(fleet, worker) {
                        struct process *process = worker->handle;

                        if (process && process->exit_waits)
                                ended(process, process->main_status);
                }
}

bool exits_reap(struct runtime *runtime)
{
        siginfo_t info = {0};
        unsigned n = 0;

        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
                if (n++ == SWEEP_MAX)
                        return true;
                struct process *process = find_main(runtime->world, info.si_pid);

                if (process)
                        exited(process);
                else if (!children_reap(&runtime->children, info.si_pid))
                        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
                info = (siginfo_t){0};
        }
        return false;
}
