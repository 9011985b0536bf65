/* SPDX-License-Identifier: MIT */
/* Executes the actions of the plan, and observes their results. */
#include "daemon/workers/execute.h"
#include "base/fd.h"
#include "daemon/workers/attach.h"
#include "daemon/workers/start_record.h"
#include "daemon/workers/templates.h"
#include "frameworks/table.h"
#include "io/log.h"
#include "io/signal.h"
#include "model/deadlines.h"
#include "model/idle_proof.h"
#include "model/world.h"
#include "observe/observe.h"

/* Delivers by the pidfd of the process that sends heartbeats; or through the server, if no signal reaches the
 * process (worker_process.remote).
 *
 * How Sidekiq reads signals from Redis, the same in versions 5.0.0 to 8.1.7 (lib/sidekiq/launcher.rb): each
 * heartbeat, every 5 s before 7.0 and every 10 s since, ends with RPOP IDENTITY-signals in the MULTI that
 * writes the heartbeat, and then the process sends itself the one signal that it got. So the signals arrive
 * in the order in which they were sent, one for each heartbeat, and that heartbeat still shows the state
 * before the signal. If the reply to that MULTI is lost, so is the signal: it has to be sent again. Twice is
 * harmless: quiet() of manager and launcher return once they are done; and a TERM during the shutdown ends up
 * in a pipe that the main thread no longer reads (lib/sidekiq/cli.rb). Heartbeats continue until the process
 * exits. A process with capsules (7.0) has one identity. An embedded process (7.0) takes signals off its
 * list and, from 7.0.9 on at the latest, ignores them: it is no worker of sqmgr. */
int delivery_send(struct worker *worker, int signo, bool only_caught)
{
        const struct process *process = worker->handle;
        const struct proc *beating = process_beating(process);

        if (!beating)
                return ESRCH;
        if (!worker->process.remote) {
                int r = only_caught ? proc_catches_signal(beating, signo) : 1;

                if (r == 0)
                        return ENOTSUP;
                if (r > 0)
                        r = signal_process(beating, signo);
                if (r != -EPERM || !worker->fleet->settings->traits->signals_by_server)
                        return -r;
                observe_remote(worker);
        }
        return -heartbeats_signal(process->slot, signo);
}

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

/* Taking a job involves several Redis round trips, so the worker wakes up and sleeps again. */
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

static void start(struct runtime *runtime, const struct action *action, usec_t now)
{
        struct fleet *fleet = action->fleet;
        struct ledger *ledger = &runtime->ledger.ledger;
        unsigned record =
                start_record_begin(runtime, fleet, action->index, fleet->generation, action->reason, now);
        char name[UNIQUE_HOST_MAX];
        struct launch_request request = {
                .unique_host = links_unique_host(runtime, fleet->settings, action->index, now, name),
                .fleet = fleet->settings,
                .index = action->index,
                .generation = fleet->generation,
                .started_at = now,
                .claim = ledger_claim_of(ledger, record),
                .ledger = &runtime->ledger,
                .instance = runtime->instance,
                .nofile = runtime->nofile,
                .base_environment = environ,
                .outcomes_script = runtime->outcomes_script,
                .shims = fleet->shim_refused == fleet->generation ? NULL : runtime->shims,
                .status_parent = fleet_settings_heartbeat(fleet->settings) == HEARTBEAT_FILE
                                         ? runtime->status_parent
                                         : NULL,
        };
        if (fleet_settings_need_redis(fleet->settings))
                request.redis_url = settings_fleet_url(runtime->world->settings, fleet->settings);
        struct launched launched;
        _cleanup_proc_ struct proc *proc = NULL;

        int r = launch_start(&request, &launched);
        if (r < 0) {
                ledger_end(ledger, record);
                observe_start_failed(fleet, action->index, -r, now);
                return;
        }
        _cleanup_close_ int report_fd = launched.report_fd;
        struct worker *worker = NULL;
        r = proc_open(launched.pid, &proc);
        if (r >= 0) {
                worker = observe_started(fleet, action->index, action->reason, launched.pid,
                                         proc_start_time(proc), now);
                r = !worker ? -ENOMEM : 0;
        }
        if (r >= 0)
                worker->process.shim_error = fleet->shim_refused == fleet->generation ? ECANCELED : 0;
        if (r >= 0)
                r = attach_started(runtime, worker, TAKE_PTR(proc), TAKE_FD(report_fd));
        if (worker && worker->handle)
                worker->handle->record = record;
        if (r >= 0)
                return;
        /* A process that cannot be watched must not stay; it had no time to take a job. exits_reap() reaps
         * it. */
        log_error("cannot monitor the new worker %s: %s; the worker is killed",
                  WORKER_ID_OF(fleet->settings->name, action->index), strerror(-r));
        (void)signal_child(launched.pid, SIGKILL);
        if (!worker || !worker->handle)
                ledger_end(ledger, record);
        if (worker)
                observe_unwatched(worker, -r, now);
        else
                observe_start_failed(fleet, action->index, -r, now);
}

/* Signals the process that sends heartbeats. If that process is not known, signals the whole process group;
 * for reason `boot`, only the process that was started: others may run jobs. Returns 0 or a positive errno.
 */
static int signal_worker(struct worker *worker, int signo, enum reason reason)
{
        const struct process *process = worker->handle;

        if (process_beating(process))
                return delivery_send(worker, signo, false);
        return reason == REASON_BOOT ? -signal_process(process->main, signo)
                                     : -signal_group(process->main, signo);
}

/* Returns the stop signal that the settings or the heartbeat name, or 0. */
static int named_stop_signal(const struct worker *worker)
{
        return fleet_settings_stop_signal(worker->fleet->settings) ?: worker->heartbeat.stop_signal;
}

int execute_stop_signal(const struct worker *worker)
{
        return named_stop_signal(worker) ?: framework_of(worker->fleet->settings->traits)->stop_signal;
}

/* Returns 0 if the worker, which runs without its shim, is known to catch its stop signal; or a positive
 * errno, ENOTSUP if it is not. */
static int check_caught(const struct worker *worker, const struct proc *beating, int signo)
{
        if (worker->fleet->settings->traits->shim->always_caught)
                return ENOTSUP;
        int r = beating ? proc_catches_signal(beating, signo) : -ESRCH;
        return r == 0 ? ENOTSUP : -MIN(r, 0);
}

static int stop(struct worker *worker, const struct framework *framework, enum reason reason, bool forced)
{
        const struct process *process = worker->handle;
        struct proc *beating = process_beating(process);
        int signo = named_stop_signal(worker);

        /* A signal that only a heartbeat names may be false, and would kill a process that does not catch it.
         */
        if (fleet_settings_stop_signal(worker->fleet->settings) == 0 && signo != 0 &&
            (!beating || proc_catches_signal(beating, signo) <= 0))
                signo = 0;
        if (signo == 0 && !worker_proven_idle(worker))
                signo = framework->cut_off_signal;
        signo = signo ?: framework->stop_signal;
        int refusal = worker->process.shimless && !forced ? check_caught(worker, beating, signo) : 0;
        if (refusal != 0)
                return refusal;
        /* The command has started another process before, so the command gets the signal, too. */
        if (worker->orders.succeeded && process->heartbeat)
                (void)signal_process(process->main, signo);
        int error = signal_worker(worker, signo, reason);

        /* An order does not wait for the server. The client of a container passes the signal on. */
        if (error == ENOTCONN && forced)
                return -signal_process(process->main, signo);
        if (error == 0 && framework->wake_signal != 0 && !worker->process.remote)
                (void)signal_worker(worker, framework->wake_signal, reason);
        return error;
}

/* Kills the process that was asked to exit and no other: other processes of the worker may run jobs. If
 * forced by the operator, kills all known processes. Of a remote worker, only the process that sqmgr started
 * can be killed. */
static int kill_worker(struct worker *worker, bool forced)
{
        const struct process *process = worker->handle;
        int error = worker->process.remote ? -signal_process(process->main, SIGKILL)
                                           : signal_worker(worker, SIGKILL, worker->reason);

        if (forced && process_beating(process) != process->main)
                (void)signal_process(process->main, SIGKILL);
        return error;
}

/* Returns 0 or a positive errno. */
static int send_signal(const struct action *action, bool forced)
{
        const struct framework *framework = framework_of(action->fleet->settings->traits);

        switch (action_signal(action)) {
        case ACTION_SIGNAL_QUIET:
                /* The result is observed in heartbeats: if they contradict, the worker is quieted again. */
                return delivery_send(action->worker,
                                     action->worker->heartbeat.quiet_signal ?: framework->quiet_signal, true);
        case ACTION_SIGNAL_STOP:
                return stop(action->worker, framework, action->reason, forced);
        case ACTION_SIGNAL_KILL:
                return kill_worker(action->worker, forced);
        case ACTION_SIGNAL_NONE:
                break;
        }
        return 0;
}

/* Like send_signal(), with the order in the ledger before it is sent: the next sqmgr must not repeat it. */
static int send_recorded(struct runtime *runtime, const struct action *action, bool forced, usec_t now)
{
        struct ledger *ledger = &runtime->ledger.ledger;
        unsigned record = action->worker->handle->record;

        if (action_signal(action) == ACTION_SIGNAL_NONE)
                return 0;
        ledger_ask(ledger, record, action, now);
        int error = send_signal(action, forced);
        ledger_answer(ledger, record, action, error == 0);
        return error;
}

/* A leftover process may get a signal only while nothing in it runs jobs. Polls again, since the process may
 * have booted after the last poll. Returns true if the signal may be sent. */
static bool poll_again(const struct action *action, usec_t now)
{
        struct worker *worker = action->worker;
        int r = 0;

        if (worker_is_remainder(worker))
                r = sibling_find(worker->handle, true, NULL);
        if (r > 0)
                observe_booted(worker, true, now);
        return r == 0;
}

/* Returns 0, or EAGAIN if the worker might just be taking a job. */
static int await_idle_check(const struct worker *worker, usec_t now)
{
        int r = worker_awaits_idle_check(worker, now) ? idle_check_poll(worker->handle, now) : 1;

        return r == 0 || is_shortage(r) ? EAGAIN : 0;
}

bool execute_action(struct runtime *runtime, const struct action *action, usec_t now)
{
        struct worker *worker = action->worker;
        bool signals = action_signal(action) != ACTION_SIGNAL_NONE;
        bool forced = signals && now >= worker_forced_at(worker);
        int error;

        if (signals && !forced && !poll_again(action, now))
                return false;

        switch (action->kind) {
        case ACTION_START:
                if (action->template)
                        templates_fork(action, now);
                else
                        start(runtime, action, now);
                return !action->template;
        case ACTION_LOAD:
                templates_load(runtime, action->fleet, now);
                return true;
        case ACTION_TEMPLATE_END:
                templates_end(action->template, now);
                return true;
        case ACTION_TEMPLATE_KILL:
                templates_kill(action->template, now);
                return true;
        case ACTION_GO:
                templates_go(worker, now);
                return false;
        case ACTION_QUIET:
                error = await_idle_check(worker, now) ?: send_recorded(runtime, action, forced, now);
                observe_quieted(worker, action->reason, error, now);
                if (error == EAGAIN)
                        return false;
                break;
        case ACTION_STOP:
                observe_stopped(worker, action->reason, send_recorded(runtime, action, forced, now), now);
                break;
        case ACTION_KILL:
                observe_killed(worker, send_signal(action, forced), now);
                break;
        }
        return worker->orders.signal_error == 0;
}
