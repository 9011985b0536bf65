/* SPDX-License-Identifier: MIT */
/* The processes of a worker: handles, report of the launch, and slot in the heartbeats. */
#pragma once

#include "daemon/runtime/runtime.h"
#include "io/launch.h"

struct orphan_search; /* a search for the leftover process of a worker */

struct process {
        struct runtime *runtime;
        struct worker *worker;
        struct proc *main;
        unsigned record; /* number of its slot in the ledger; 0: none */
        pid_t group;     /* process group of the command; 0: no group of its own, or not known */
        /* main has exited and a leftover process is searched for; else NULL. */
        struct orphan_search *orphan_search;
        struct exit_status main_status; /* how main has exited */
        bool exit_waits;        /* the exit is handled once the proc reader has answered; see exits.c */
        unsigned poll_waits;    /* poll items that await answers of the proc reader */
        struct proc *heartbeat; /* process that sends heartbeats, if not main; else NULL */
        struct heartbeat_slot *slot;
        sd_event_source *main_exit; /* with heartbeat_exit: managed by exits.c */
        sd_event_source *heartbeat_exit;
        int report_fd;
        int go_fd; /* socket of a forked worker that waits to continue; -1: none */
        struct launch_report report;
        pid_t ended_heartbeat_pid;   /* last heartbeat process that has exited before main; 0: none */
        uint64_t slept_times;        /* of the heartbeat process, see idle_check_poll() */
        usec_t slept_at;             /* when slept_times was first seen; 0: never */
        struct reader *running_jobs; /* reads what the worker runs, see running_jobs.h; NULL: no reading */
        bool running_jobs_culprits;  /* the reading is for a worker over a memory limit */
        char **long_jobs;            /* job ids already reported; NULL-terminated; NULL: none */
        /* Entries of the jobs that it ran at the last reading while it drains; NULL-terminated; NULL: none.
         * Kept if running_jobs_may_be_cut_off(). */
        char **drained_jobs;
};

/* Takes ownership of main and report_fd in all cases. Returns 0 or -errno; worker->handle stays NULL only
 * when memory is short. report_fd is -1 if there is none. */
int process_new(struct runtime *runtime, struct worker *worker, struct proc *main, int report_fd);
/* process may be NULL. The ledger keeps its record. */
void process_free(struct process *process);
/* For fleet_reap(): the worker is gone, and its record with it. process may be NULL. */
void process_release(struct process *process);

/* False if the process could not be watched: it was killed and its exit comes next. False for NULL: no
 * process. */
bool process_is_watched(const struct process *process);
/* Returns the process that runs jobs (the one that sends heartbeats), or NULL if not known. */
struct proc *process_beating(const struct process *process);
/* Returns the identity of the worker's heartbeats, or NULL if not known. process may be NULL. */
const char *process_identity(const struct process *process);
/* Returns the host names that the next sqmgr needs to find the identity, or NULL: see heartbeats_hosts().
 * process may be NULL. */
const char *process_hosts(const struct process *process, char text[static MATCH_HOSTS_TEXT_MAX]);

/* Reads the launch report as far as it has arrived. Call at each poll and at the exit: waking up for it would
 * take the processor from the new process before its first instruction. */
void process_read_report(struct process *process);
/* Forgets a separate heartbeat process: it is the main process now, or not known any more. */
void process_forget_heartbeat(struct process *process);
/* Searches for another process of the worker's command that is a booted worker or runs a job. Candidates are
 * below the main process and, with left, those left behind in its group: for these, all of /proc is scanned
 * while the group exists. A process of another worker is no candidate. Returns 1 with *ret, to be closed (ret
 * may be NULL); 0 if there is none; -EINPROGRESS or -ETIMEDOUT as proc_facts_title(); -errno when descriptors
 * or memory are short. */
int sibling_find(struct process *process, bool left, struct proc **ret);

/* The callback owns orphan, to be closed by proc_close(); NULL: none found. The search is already freed. */
typedef void (*orphan_fn)(struct worker *worker, struct proc *orphan);

/* Searches for a leftover process of a worker whose process has exited before any heartbeat.
 * Candidates are orphans reparented to us as subreaper, of the same start.
 * failed: the exit status was a failure; an orphan then counts only with evidence that it has booted. Returns
 * 0 with *ret, or -errno. done is called once, from the loop, unless process_free() cancels the search. */
int orphan_search_start(struct runtime *runtime, struct worker *worker, bool failed, orphan_fn done,
                        struct orphan_search **ret);
