/* SPDX-License-Identifier: MIT */
/* The processes of a worker. */
#include "daemon/workers/process.h"
#include "base/argv.h"
#include "daemon/runtime/links.h"
#include "daemon/workers/orphan.h"
#include "io/log.h"
#include "model/names.h"
#include "observe/observe.h"
#include "observe/observe_identity.h"
#include <string.h>

void process_release(struct process *process)
{
        if (process)
                ledger_end(&process->runtime->ledger.ledger, process->record);
        process_free(process);
}

bool process_is_watched(const struct process *process)
{
        return process && process->slot;
}

struct proc *process_beating(const struct process *process)
{
        if (process->worker->process.heartbeat_pid == 0)
                return NULL;
        return process->heartbeat ?: process->main;
}

const char *process_identity(const struct process *process)
{
        return process_is_watched(process) ? process->slot->identity : NULL;
}

const char *process_hosts(const struct process *process, char text[static MATCH_HOSTS_TEXT_MAX])
{
        return process_is_watched(process) ? heartbeats_hosts(process->slot, text) : NULL;
}

void process_forget_heartbeat(struct process *process)
{
        process->slept_at = 0;
        process->heartbeat_exit = sd_event_source_disable_unref(process->heartbeat_exit);
        process->heartbeat = proc_close(process->heartbeat);
}

void process_read_report(struct process *process)
{
        if (process->report_fd < 0)
                return;
        int r = launch_report_read(process->report_fd, &process->report);
        if (r < 0)
                log_warning("cannot read the start report of %s: %s", WORKER_ID(process->worker),
                            strerror(-r));
        if (r >= 0 && process->report.outcome == LAUNCH_PENDING)
                return;
        process->report_fd = close_fd(process->report_fd);
        struct worker *worker = process->worker;
        if (process->report.shim_error != 0)
                worker->process.shim_error = process->report.shim_error;
        char differs[REDIS_DIFFERENCE_MAX];
        if (r >= 0 && observe_environment_redis(worker, &process->report.redis))
                log_warning("%s: %s. Heartbeats are read from redis_url: make both the same",
                            WORKER_ID(worker), redis_difference_text(&process->report.redis, differs));
}

int process_new(struct runtime *runtime, struct worker *worker, struct proc *main, int report_fd)
{
        struct process *process = calloc(1, sizeof(*process));

        if (!process) {
                proc_close(main);
                close_fd(report_fd);
                return -ENOMEM;
        }
        *process = (struct process){
                .runtime = runtime,
                .worker = worker,
                .main = main,
                .report_fd = report_fd,
                .go_fd = -1,
                .report = LAUNCH_REPORT_INIT,
        };
        worker->handle = process;
        return 0;
}

void process_free(struct process *process)
{
        if (!process)
                return;
        running_jobs_cancel(process->running_jobs);
        argv_free(process->long_jobs);
        argv_free(process->drained_jobs);
        if (process->slot)
                heartbeats_remove(process->slot);
        orphan_search_free(process->orphan_search);
        sd_event_source_disable_unref(process->main_exit);
        process_forget_heartbeat(process);
        proc_close(process->main);
        close_fd(process->report_fd);
        close_fd(process->go_fd);
        launch_report_clear(&process->report);
        free(process);
}
