/* SPDX-License-Identifier: MIT */
/* The descriptors behind a worker: its processes, their exits, and the report of its launch. */
#include "daemon/supervisor.h"
#include "io/clock.h"
#include "io/log.h"
#include "model/observe.h"
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>

struct proc *worker_io_beating(const struct worker_io *io)
{
        if (io->worker->beat_pid == 0)
                return NULL;
        return io->beat != NULL ? io->beat : io->main;
}

void worker_io_free(void *userdata)
{
        struct worker_io *io = userdata;

        if (io == NULL)
                return;
        work_list_forget(io);
        if (io->slot != NULL)
                beats_remove(io->slot);
        sd_event_source_disable_unref(io->main_exit);
        sd_event_source_disable_unref(io->beat_exit);
        sd_event_source_disable_unref(io->report_source);
        proc_close(io->main);
        proc_close(io->beat);
        close_fd(io->report_fd);
        close_fd(io->report.log_fd);
        free(io->report.error);
        free(io);
}

static int on_main_exit(sd_event_source *source, int fd, uint32_t events, void *userdata);

static void forget_beat(struct worker_io *io)
{
        io->beat_exit = sd_event_source_disable_unref(io->beat_exit);
        io->beat = proc_close(io->beat);
}

/* The process that beats was another than the one started, and that one is gone: from now on it is the
 * worker. */
static bool worker_io_promote(struct worker_io *io, usec_t now)
{
        struct pollfd exited = {.fd = io->beat != NULL ? proc_pidfd(io->beat) : -1, .events = POLLIN};

        if (io->beat == NULL || poll(&exited, 1, 0) > 0)
                return false;
        sd_event_source_disable_unref(io->main_exit);
        proc_close(io->main);
        io->main = TAKE_PTR(io->beat);
        io->main_exit = TAKE_PTR(io->beat_exit);
        observe_promoted(io->worker, now);
        return true;
}

/* It went to the background before it beat. Left out of the model, each new start would leave one more
 * behind. */
static bool worker_io_inherit(struct worker_io *io)
{
        struct worker *worker = io->worker;
        sd_event_source *main_exit = NULL;

        if (worker->state != WORKER_STARTING || io->beat != NULL || io->report.outcome == LAUNCH_FAILED)
                return false;
        _cleanup_proc_ struct proc *heir = adopt_heir(io->supervisor, worker);
        if (heir == NULL || sd_event_add_io(io->supervisor->event, &main_exit, proc_pidfd(heir), EPOLLIN,
                                            on_main_exit, io) < 0)
                return false;
        sd_event_source_disable_unref(io->main_exit);
        proc_close(io->main);
        io->main_exit = main_exit;
        io->main = TAKE_PTR(heir);
        observe_inherited(worker, proc_pid(io->main), proc_start_time(io->main));
        return true;
}

static void read_report(struct worker_io *io)
{
        if (io->report_fd < 0)
                return;
        int r = launch_report_read(io->report_fd, &io->report);
        if (r < 0)
                log_warning("cannot read how %s came up: %s", WORKER_ID(io->worker), strerror(-r));
        if (r >= 0 && io->report.outcome == LAUNCH_PENDING)
                return;
        io->report_source = sd_event_source_disable_unref(io->report_source);
        io->report_fd = close_fd(io->report_fd);
}

/* exit: of the main process, which need not be the one that ran the jobs. */
static void begin_rescue(const struct worker_io *io, const struct exit_status *exit)
{
        const struct exit_status unknown = {.known = false};
        const struct worker *worker = io->worker;

        if (io->slot != NULL)
                rescue_begin(io->supervisor, worker->fleet, worker, beats_identity(io->slot),
                             worker->beat_pid == worker->pid ? exit : &unknown);
}

static void worker_io_exited(struct worker_io *io)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);
        char lines[LAUNCH_LAST_MAX_BYTES + 1] = "";
        struct exit_status exit = {0};
        siginfo_t info = {0};

        if (io->worker->state == WORKER_GONE)
                return;
        /* Not a child of ours, an adopted one say: how it ended nobody can tell. */
        if (waitid(P_PIDFD, (id_t)proc_pidfd(io->main), &info, WEXITED | WNOHANG) == 0 && info.si_pid != 0) {
                exit.known = true;
                exit.by_signal = info.si_code != CLD_EXITED;
                exit.status = info.si_status;
        }
        io->supervisor->pass.unsaved = true;
        supervisor_arm_turn(io->supervisor);
        if (worker_io_promote(io, now))
                return;
        read_report(io);
        if (worker_io_inherit(io))
                return;
        if (io->report.outcome == LAUNCH_FAILED)
                exit.launch_error = io->report.error ?: "it could not be prepared";
        if (io->report.log_fd >= 0 &&
            launch_last_lines(io->report.log_fd, io->report.log_start_bytes, lines, sizeof(lines)) == 0)
                exit.last_lines = lines;
        if (exit.launch_error == NULL && exit.last_lines == NULL && io->worker->state != WORKER_STOPPING)
                exit.lines_token = last_lines_read(io->supervisor, io->worker, io->beat_pid);
        io->main_exit = sd_event_source_disable_unref(io->main_exit);
        begin_rescue(io, &exit);
        forget_beat(io);
        observe_exit(io->worker, &exit, now);
}

static int on_main_exit(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        (void)source, (void)fd, (void)events;
        worker_io_exited(userdata);
        return 0;
}

static int on_beat_exit(sd_event_source *source, int fd, uint32_t events, void *userdata)
{
        struct worker_io *io = userdata;

        (void)source, (void)fd, (void)events;
        /* Promoted meanwhile, it was the worker itself. */
        if (io->beat == NULL) {
                worker_io_exited(io);
                return 0;
        }
        begin_rescue(io, &(struct exit_status){.known = false});
        forget_beat(io);
        beats_forget(io->slot);
        observe_beat_process(io->worker, 0, 0, clock_now(CLOCK_MONOTONIC));
        io->supervisor->pass.unsaved = true;
        supervisor_arm_turn(io->supervisor);
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
        const struct link *link = worker->fleet->io;
        struct worker_io *io = calloc(1, sizeof(*io));

        if (io == NULL) {
                proc_close(main);
                close_fd(report_fd);
                return -ENOMEM;
        }
        *io = (struct worker_io){
                .supervisor = supervisor,
                .worker = worker,
                .main = main,
                .report_fd = report_fd,
                .report = LAUNCH_REPORT_INIT,
        };
        worker->io = io;
        int r = sd_event_add_io(supervisor->event, &io->main_exit, proc_pidfd(main), EPOLLIN, on_main_exit,
                                io);
        if (r >= 0 && report_fd >= 0)
                r = sd_event_add_io(supervisor->event, &io->report_source, report_fd, EPOLLIN, on_report, io);
        if (r >= 0)
                r = beats_add(link->beats, worker, &io->slot);
        return r;
}

int worker_io_adopt(struct supervisor *supervisor, struct worker *worker, struct proc *main,
                    struct proc *beat, const char *identity)
{
        _cleanup_proc_ struct proc *held = beat;
        int r = worker_io_new(supervisor, worker, main, -1);

        if (r < 0)
                return r;
        struct worker_io *io = worker->io;
        io->beat_pid = worker->beat_pid;
        /* A log of its own: its last lines are read back from what it has open. */
        if (worker->fleet->settings->log != NULL && worker->fleet->settings->log[0] == '/')
                io->report.log_fd = MAX(proc_open_output(main), -1);
        if (held != NULL) {
                r = sd_event_add_io(supervisor->event, &io->beat_exit, proc_pidfd(held), EPOLLIN,
                                    on_beat_exit, io);
                if (r < 0)
                        return r;
                io->beat = TAKE_PTR(held);
        }
        return identity != NULL ? beats_know(io->slot, identity, worker->beat_pid) : 0;
}

void worker_io_set_beat(struct worker *worker, pid_t pid, usec_t now)
{
        struct worker_io *io = worker->io;
        sd_event_source *beat_exit = NULL;
        _cleanup_proc_ struct proc *beat = NULL;

        io->supervisor->pass.unsaved = true;
        io->beat_pid = pid;
        if (pid == worker->pid) {
                forget_beat(io);
                observe_beat_process(worker, worker->pid, worker->pid_start, now);
                return;
        }
        /* Opened first and asked for its ancestors then: an answer for another process of that pid is none.
         * What beats and cannot be held is no worker yet: its heartbeats must not count. */
        if (proc_open(pid, &beat) < 0 || proc_has_ancestor(pid, worker->pid, worker->pid_start) <= 0 ||
            sd_event_add_io(io->supervisor->event, &beat_exit, proc_pidfd(beat), EPOLLIN, on_beat_exit, io) <
                    0) {
                beats_forget(io->slot);
                return;
        }
        forget_beat(io);
        observe_beat_process(worker, pid, proc_start_time(beat), now);
        io->beat = TAKE_PTR(beat);
        io->beat_exit = beat_exit;
}

static struct worker_io *find_main(const struct supervisor *supervisor, pid_t pid)
{
        for (size_t i = 0; i < supervisor->world->n_fleets; i++) {
                const struct fleet *fleet = supervisor->world->fleets[i];

                for (size_t j = 0; j < fleet->n_workers; j++)
                        if (fleet->workers[j]->state != WORKER_GONE && fleet->workers[j]->pid == pid)
                                return fleet->workers[j]->io;
        }
        return NULL;
}

void worker_io_sweep(struct supervisor *supervisor)
{
        siginfo_t info = {0};

        while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid != 0) {
                struct worker_io *io = find_main(supervisor, info.si_pid);

                if (io != NULL)
                        worker_io_exited(io);
                else if (!children_reap(&supervisor->children, info.si_pid))
                        (void)waitid(P_PID, (id_t)info.si_pid, &info, WEXITED | WNOHANG);
                info = (siginfo_t){0};
        }
}
