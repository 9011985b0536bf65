/* SPDX-License-Identifier: MIT */
/* What the shell holds of a worker: its processes, the report of its launch, its place among the heartbeats.
 */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/launch.h"
#include "io/proc.h"
#include "model/exit_status.h"

struct orphan_search; /* orphan.h */
struct running_jobs;

struct process {
        struct runtime *runtime;
        struct worker *worker;
        struct proc *main;
        pid_t group; /* of all that its command started; 0: not its own, or not known */
        uid_t uid;   /* main's, when that was last asked; 0 before */
        struct orphan_search *orphan_search; /* main has exited, and what it may have left behind is looked
                                                for; NULL else */
        struct exit_status main_status;      /* how it did */
        struct proc *heartbeat;              /* the process that beats, where it is another one; NULL else */
        struct heartbeat_slot *slot;
        sd_event_source *main_exit; /* of exits.c, as is the next */
        sd_event_source *heartbeat_exit;
        sd_event_source *report_source;
        int report_fd;
        int go_fd; /* the socket of one that was forked, and waits to be told to go on; -1: none */
        struct launch_report report;
        pid_t ended_heartbeat_pid; /* the last process that beat and has ended before main; 0: none has */
        uint64_t slept_times;      /* of the process that beats, see idle_check.h */
        usec_t slept_at;           /* since when it is known to be so many; 0: it is not */
        struct running_jobs *running_jobs; /* its jobs are being read, see work_list.h; NULL: they are not */
        bool running_jobs_culprits;        /* since its memory went over a limit */
        char **long_jobs;                  /* ids of those that were told of; NULL-terminated, NULL: none */
};

/* Takes main and report_fd over, whatever it returns: 0 or -errno; worker->process stays NULL only where
 * memory was short. The report of its launch is read once it is complete; report_fd: -1 where there is none.
 */
int process_new(struct runtime *runtime, struct worker *worker, struct proc *main, int report_fd);
/* For fleet_reap(); takes NULL. */
void process_free(struct process *process);

/* One that could not be watched has been killed: its exit comes next. Takes NULL: there is nothing of it. */
bool process_is_watched(const struct process *process);
/* The process that jobs run in, as far as it is known; NULL: it is not. */
struct proc *process_beating(const struct process *process);
/* The identity that it beats under; NULL: not known. Takes NULL. */
const char *process_identity(const struct process *process);
/* What the next sqmgr must know to find that: see heartbeats_hosts(). NULL: nothing. Takes NULL. */
const char *process_hosts(const struct process *process, char text[static MATCH_HOSTS_TEXT_MAX]);

/* Reads what has come of the report of its launch. */
void process_read_report(struct process *process);
/* The process that beats is the main one, or not known any more. */
void process_forget_heartbeat(struct process *process);
