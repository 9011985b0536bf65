/* SPDX-License-Identifier: MIT */
/* The descriptors behind a worker: its processes, their exits, and the report of its launch. */
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/last_lines.h"
#include "io/log.h"
#include "model/observe.h"
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

struct proc *worker_io_beating(const struct process *process)
{
        if (process->worker->beat_pid == 0)
                return NULL;
        return process->beat != NULL ? process->beat : process->main;
}

void worker_io_free(struct process *process)
{
        if (process == NULL)
                return;
        work_list_forget(process);
        if (process->slot != NULL)
                beats_remove(process->slot);
        sd_event_source_disable_unref(process->main_exit);
        sd_event_source_disable_unref(process->beat_exit);
        sd_event_source_disable_unref(process->report_source);
        proc_close(process->main);
        proc_close(process->beat);
        close_fd(process->report_fd);
        close_fd(process->report.log_fd);
        free(process->report.error);
        free(process);
}

static int on_main_exit(sd_event_source *source, int fd, uint32_t events, void *userdata);

static void forget_beat(struct process *process)
{
        process->beat_exit = sd_event_source_disable_unref(process->beat_exit);
        process->beat = proc_close(process->beat);
}

/* The process that beats was another than the one started, and that one is gone: from now on it is the
 * worker. */
static bool worker_io_promote(struct process *process, usec_t now)
{
        struct pollfd exited = {.fd = process->beat != NULL ? proc_pidfd(process->beat) : -1,
                                .events = POLLIN};

        if (process->beat == NULL || poll(&exited, 1, 0) > 0)
                return false;
        sd_event_source_disable_unref(process->main_exit);
        proc_close(process->main);
        process->main = TAKE_PTR(process->beat);
        process->main_exit = TAKE_PTR(process->beat_exit);
        observe_promoted(process->worker, now);
        return true;
}

/* It went to the background before it beat. Left out of the model, each new start would leave one more
 * behind. */
static bool worker_io_inherit(struct process *process)
{
        struct worker *worker = process->worker;
        sd_event_source *main_exit = NULL;

        if (worker->state != WORKER_STARTING || process->beat != NULL ||
            process->report.outcome == LAUNCH_FAILED)
                return false;
        _cleanup_proc_ struct proc *heir = adopt_heir(process->supervisor, worker);
        if (heir == NULL || sd_event_add_io(process->supervisor->event, &main_exit, proc_pidfd(heir), EPOLLIN,
                                            on_main_exit, process) < 0)
                return false;
        sd_event_source_disable_unref(process->main_exit);
        proc_close(process->main);
        process->main_exit = main_exit;
        process->main = TAKE_PTR(heir);
        observe_inherited(worker, proc_pid(process->main), proc_start_time(process->main));
        return true;
}

static void read_report(struct process *process)
{
        if (process->report_fd < 0)
                return;
        int r = launch_report_read(process->report_fd, &process->report);
        if (r < 0)
                log_warning("cannot read how %s came up: %s", WORKER_ID(process->worker), strerror(-r));
        if (r >= 0 && process->report.outcome == LAUNCH_PENDING)
                return;
        process->report_source = sd_event_source_disable_unref(process->report_source);
        process->report_fd = close_fd(process->report_fd);
}

/* exit: of the main process, which need not be the one that ran the jobs. */
static void begin_rescue(const struct process *process, const struct exit_status *exit)
{
        const struct exit_status unknown = {.known = false};
        const struct worker *worker = process->worker;

        if (process->slot != NULL)
                rescue_begin(process->supervisor, worker->fleet, worker, beats_identity(process->slot),
                             worker->beat_pid == worker->pid ? exit : &unknown);
}

static void worker_io_exited(struct process *process)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        char lines[LAST_LINES_MAX_BYTES + 1] = "";
        struct exit_status exit = {0};
        siginfo_t info = {0};

        if (process->worker->state == WORKER_GONE)
                return;
        /* Not a child of ours, an adopted one say: how it ended nobody can tell. */
        if (waitid(P_PIDFD, (id_t)proc_pidfd(process->main), &info, WEXITED | WNOHANG) == 0 &&
            info.si_pid != 0) {
                exit.known = true;
                exit.by_signal = info.si_code != CLD_EXITED;
                exit.status = info.si_status;
        }
        process->supervisor->pass.unsaved = true;
        supervisor_arm_turn(process->supervisor);
        if (worker_io_promote(process, now))
                return;
        read_report(process);
        if (worker_io_inherit(process))
                return;
        if (process->report.outcome == LAUNCH_FAILED)
                exit.launch_error = process->report.error ?: "it could not be prepared";
        if (process->report.log_fd >= 0 &&
            last_lines_of_log(process->report.log_fd, process->report.log_start_bytes, lines,
                              sizeof(lines)) == 0)
                exit.last_lines = lines;
        if (exit.launch_error == NULL && exit.last_lines == NULL && process->worker->state != WORKER_STOPPING)
                exit.lines_token = last_lines_read(process->supervisor, process->worker, process->beat_pid);
        process->main_exit = sd_event_source_disable_unref(process->main_exit);
        begin_rescue(process, &exit);
        forget_beat(process);
        observe_exit(process->worker, &exit, now);
}

static int on_main_exit(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        worker_io_exited(userdata);
        return 0;
}

static int on_beat_exit(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct process *process = userdata;

        (void)source, (void)fd, (void)events;
        /* Promoted meanwhile, it was the worker itself. */
        if (process->beat == NULL) {
                worker_io_exited(process);
                return 0;
        }
        begin_rescue(process, &(struct exit_status){.known = false});
        forget_beat(process);
        beats_forget(process->slot);
        observe_beat_process(process->worker, 0, 0, clock_now(CLOCK_MONOTONIC));
        process->supervisor->pass.unsaved = true;
        supervisor_arm_turn(process->supervisor);
        return 0;
}

static int on_report(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        read_report(userdata);
        return 0;
}

int worker_io_new(struct supervisor *supervisor, struct worker *worker, struct proc *main, int report_fd)
{
        const struct link *link = worker->fleet->link;
        struct process *process = calloc(1, sizeof(*process));

        if (process == NULL) {
                proc_close(main);
                close_fd(report_fd);
                return -ENOMEM;
        }
        *process = (struct process){
                .supervisor = supervisor,
                .worker = worker,
                .main = main,
                .report_fd = report_fd,
                .report = LAUNCH_REPORT_INIT,
        };
        worker->process = process;
        int r = sd_event_add_io(supervisor->event, &process->main_exit, proc_pidfd(main), EPOLLIN,
                                on_main_exit, process);
        if (r >= 0 && report_fd >= 0)
                r = sd_event_add_io(supervisor->event, &process->report_source, report_fd, EPOLLIN, on_report,
                                    process);
        if (r >= 0)
                r = beats_add(link->beats, worker, &process->slot);
        return r;
}

int worker_io_adopt(struct supervisor *supervisor, struct worker *worker, struct proc *main,
                    struct proc *beat, const char *identity)
{
        _cleanup_proc_ struct proc *held = beat;
        int r = worker_io_new(supervisor, worker, main, -1);

        if (r < 0)
                return r;
        struct process *process = worker->process;
        process->beat_pid = worker->beat_pid;
        /* A log of its own: its last lines are read back from what it has open. */
        if (worker->fleet->settings->log != NULL && worker->fleet->settings->log[0] == '/')
                process->report.log_fd = MAX(proc_open_output(main), -1);
        if (held != NULL) {
                r = sd_event_add_io(supervisor->event, &process->beat_exit, proc_pidfd(held), EPOLLIN,
                                    on_beat_exit, process);
                if (r < 0)
                        return r;
                process->beat = TAKE_PTR(held);
        }
        return identity != NULL ? beats_know(process->slot, identity, worker->beat_pid) : 0;
}

void worker_io_set_beat(struct worker *worker, pid_t pid, usec_t now)
{
        struct process *process = worker->process;
        sd_event_source *beat_exit = NULL;
        _cleanup_proc_ struct proc *beat = NULL;

        process->supervisor->pass.unsaved = true;
        process->beat_pid = pid;
        if (pid == worker->pid) {
                forget_beat(process);
                observe_beat_process(worker, worker->pid, worker->pid_start, now);
                return;
        }
        /* Opened first and asked for its ancestors then: an answer for another process of that pid is none.
         * What beats and cannot be held is no worker yet: its heartbeats must not count. */
        if (proc_open(pid, &beat) < 0 || proc_has_ancestor(pid, worker->pid, worker->pid_start) <= 0 ||
            sd_event_add_io(process->supervisor->event, &beat_exit, proc_pidfd(beat), EPOLLIN, on_beat_exit,
                            process) < 0) {
                beats_forget(process->slot);
                return;
        }
        forget_beat(process);
        observe_beat_process(worker, pid, proc_start_time(beat), now);
        process->beat = TAKE_PTR(beat);
        process->beat_exit = beat_exit;
}

static struct process *find_main(const struct supervisor *supervisor, pid_t pid)
{
        for (size_t i = 0; i < supervisor->world->n_fleets; i++) {
                const struct fleet *fleet = supervisor->world->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++)
                        if (fleet->workers[j]->state != WORKER_GONE && fleet->workers[j]->pid == pid)
                                return fleet->workers[j]->process;
        }
        return NULL;
}

void worker_io_sweep(struct supervisor *supervisor)
{
        siginfo_t info = {0};

        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
                struct process *process = find_main(supervisor, info.si_pid);

                if (process != NULL)
                        worker_io_exited(process);
                else if (!children_reap(&supervisor->children, info.si_pid))
                        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
                info = (siginfo_t){0};
        }
}
