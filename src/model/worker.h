/* SPDX-License-Identifier: MIT */
/* A worker: what is known of one process that runs jobs. All times are CLOCK_MONOTONIC microseconds. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/event.h"
#include "model/job.h"
#include "model/trend.h"

enum worker_state {
        WORKER_STARTING, /* spawned, has not beaten */
        WORKER_ACTIVE,   /* beats and takes jobs */
        WORKER_QUIET,    /* takes no new jobs, finishes what it runs */
        WORKER_STOPPING, /* told to exit */
        WORKER_GONE,     /* has exited: to be forgotten by fleet_reap() */
        _WORKER_STATE_MAX,
};

/* What a worker or a fleet waits for: told in `status`, decided by the planner. */
enum wait {
        WAIT_NONE,
        WAIT_FIRST_HEARTBEAT, /* it has not beaten yet */
        WAIT_READY_OTHERS,    /* replacements must be ready before it may be quieted */
        WAIT_JOBS,            /* its running jobs */
        WAIT_HEARTBEATS,      /* further idle beats before it is proven idle */
        WAIT_THREADS,         /* its job threads to exit, or further idle beats */
        WAIT_EXIT,            /* told to exit */
        WAIT_REDIS,           /* Redis is away */
        WAIT_FRESH_HEARTBEAT, /* time was doubtful: a beat from after that */
        WAIT_STALE,           /* its beat has stopped */
        WAIT_HUNG,            /* it hangs; fleet: all of its workers are silent, and one must beat first */
        WAIT_SIGNAL,          /* it does not catch the quiet signal, or could not be signalled */
        WAIT_ELSEWHERE,       /* it has booted, but its beat is not to be found */
        WAIT_AMBIGUOUS,       /* its heartbeat cannot be told from that of another process */
        WAIT_SUCCESSOR,       /* told to leave, its process has ended, and another one of its has booted */
        WAIT_IDLE_CHECK,      /* it may be taking a job */
        WAIT_RELEASE,         /* new workers failed: one of them must prove itself first */
        WAIT_PLACES,          /* fleet: max_processes are alive */
        WAIT_MEMORY,          /* fleet: too little memory for an extra process */
        WAIT_BACKOFF,         /* fleet: the next start after a crash, or a replacement over its threshold */
        WAIT_ADOPTION,        /* fleet: processes were found that may be its workers */
        WAIT_TEMPLATE,        /* fleet: the template of its generation is not ready */
        WAIT_FORK,            /* fleet: memory or processes are too short to fork one */
        WAIT_STATE,           /* forked, and not written into the state yet */
        _WAIT_MAX,
};

/* Beats that contradict a signal before it counts as not taken: the last ones may have been written before.
 */
#define WORKER_LOUD_HEARTBEATS 3
/* And that a title contradicts, before it is told. */
#define WORKER_DENIED_HEARTBEATS 4

/* One heartbeat as its framework wrote it, decoded. */
struct heartbeat {
        uint64_t sent_usec; /* the worker's own wall clock: compared only with the same worker's */
        unsigned busy;
        unsigned concurrency; /* 0: not told */
        bool quiet;
        bool work_list_known;
        bool work_list_empty;
        uint64_t rss_bytes; /* of the process that beats, as it wrote this; 0: not told */
        uint64_t start;     /* field 22 of /proc/PID/stat, as its process had it; 0: not told */
        int quiet_signal;   /* as it names them; 0: the framework's */
        int stop_signal;
};

/* Why the file that a worker writes its heartbeats to does not count. */
enum heartbeat_fault {
        HEARTBEAT_FAULT_NONE,
        HEARTBEAT_FAULT_PLACE,      /* its directory is gone, or not as we made it */
        HEARTBEAT_FAULT_MISSING,    /* there is none */
        HEARTBEAT_FAULT_KIND,       /* it is no regular file */
        HEARTBEAT_FAULT_OWNER,      /* it belongs to another user */
        HEARTBEAT_FAULT_SIZE,       /* it is too large */
        HEARTBEAT_FAULT_UNREADABLE, /* it could not be read */
        HEARTBEAT_FAULT_CHANGES,    /* it changed meanwhile */
        HEARTBEAT_FAULT_RECORD,     /* it holds no record */
        HEARTBEAT_FAULT_START,      /* the record is of another process, or does not tell */
        _HEARTBEAT_FAULT_MAX,
};

/* The memory limits, from the lower to the higher one. */
enum breach { BREACH_NONE, BREACH_THRESHOLD, BREACH_LIMIT };

struct fleet;
struct process; /* the shell's: a worker's descriptors and event sources */

/* The processes of a worker. A pid and a start time (field 22 of /proc/PID/stat) together name one for good.
 */
struct worker_process {
        pid_t pid; /* the process started */
        uint64_t start;
        pid_t heartbeat_pid; /* the process that sends heartbeats: the same, or a descendant; 0: not known */
        uint64_t heartbeat_start;
        bool forked;    /* from a template: part of its memory is shared */
        bool awaits_go; /* forked, and does nothing before it is allowed to continue */
        bool unproven; /* found, and not seen to boot or to send a heartbeat: may be no worker, gets no signal
                        */
        bool booted;   /* title or threads show that it, or what else it started, has booted, though no
                        * heartbeat is to be found */
        usec_t boot_polled_at; /* when that was last looked for; 0: never */
        usec_t shutdown_usec;  /* its own time to exit, as its arguments showed it; 0: they did not */
};

/* What the heartbeats of a worker have shown. */
struct worker_heartbeat {
        bool seen;
        uint64_t written_usec;      /* of the last heartbeat, by the worker's own clock */
        usec_t changed_at;          /* when a heartbeat was last seen to change */
        usec_t after;               /* the last fresh heartbeat was written after this; 0: there was none */
        usec_t read_at;             /* when the heartbeat was last read, changed or not */
        enum heartbeat_fault fault; /* of the status file, as last read */
        bool stale_reported;
        bool hung; /* no heartbeat for hang_after: until the next one the worker does not count as active */
        unsigned busy;
        unsigned concurrency;
        unsigned idle_count; /* distinct heartbeats in a row: quiet, 0 busy */
        unsigned loud_count; /* distinct heartbeats in a row that do not say quiet, since the worker was asked
                                to be */
        bool ambiguous;   /* heartbeats may be its own or those of another process: nothing is done because of
                             them */
        int quiet_signal; /* as the last heartbeat named them; 0: the framework's */
        int stop_signal;
};

/* The jobs of a worker, as its work list showed them when it was last read. */
struct worker_jobs {
        bool list_empty; /* at the last heartbeat for which it was read */
        unsigned count;
        usec_t read_at;
        usec_t oldest_at; /* when the oldest of them began; 0: not known */
        struct job_classes classes;
};

/* What /proc shows beside the heartbeats. */
struct worker_evidence {
        bool threads_known;
        bool threads_witness; /* job threads were seen while it was active: their absence proves something */
        unsigned threads;
        bool title_known; /* the title, when last read, showed the next two */
        bool title_quiet;
        unsigned title_busy;
        usec_t siblings_polled_at; /* when another process that sends heartbeats was first searched for; 0:
                                      never */
        bool sibling_reported;     /* there is one */
        usec_t may_take_job_at;    /* it was to be quieted, and could be taking a job: since then, 0: it never
                                      was */
        usec_t may_take_job_seen_at; /* and was last seen so */
};

struct worker_memory {
        uint64_t bytes;        /* 0: not known */
        usec_t read_at;        /* 0: never */
        uint64_t own_bytes;    /* what a forked worker does not share; 0: not known */
        unsigned over_samples; /* in a row over memory_threshold */
        bool over_threshold;   /* three in a row were: remains set */
        bool over_limit;
        uint64_t mark_bytes; /* held at mark_at: growth since then is reported */
        usec_t mark_at; /* when it last ran nothing, else its first heartbeat, or its adoption; 0: not known
                         */
        enum breach breach; /* the highest limit that it was seen to exceed */
        usec_t breach_at;   /* a heartbeat after this, which shows what ran then, is waited for; 0: none is */
        struct trend trend; /* while it is active */
        struct trend_fit fit; /* of that */
};

/* What the worker was asked to do, by whom, and whether it did. */
struct worker_orders {
        bool quiet;          /* by the operator, for this worker */
        bool pressed;        /* leaves, or has left, because of memory pressure (pressure_action) */
        usec_t quiet_at;     /* became quiet; 0: never */
        usec_t stop_at;      /* asked to exit; 0: it was not */
        bool group_signaled; /* so were all processes that it started, not only the one that sent heartbeats
                              */
        bool heeds_stop;     /* a heartbeat since then said quiet */
        bool finishes_job; /* that process ended, and what is left runs the job that it had begun: the exit of
                            * what is left proves that the job has ended */
        bool succeeded; /* that process ended, and another one of its command accepted jobs: more may follow
                         */
        bool quiet_uncaught; /* it does not catch the quiet signal: it is stopped instead */
        int signal_error;    /* errno of the last signal that was refused; 0: none was */
        usec_t killed_at;
};

/* The verdict of the planner, renewed with each plan: for people, never for decisions. */
struct worker_verdict {
        enum reason wanted_out;
        enum wait waits_for;
        unsigned waits_count;
};

struct worker {
        struct fleet *fleet;
        unsigned index; /* see WORKER_ID */
        uint64_t generation;

        enum worker_state state;
        enum reason reason;      /* why it leaves, or is to leave; REASON_NONE while it stays */
        enum reason started_for; /* why it was started; REASON_NONE: a place was empty */
        usec_t spawned_at;
        usec_t state_at;
        usec_t active_at; /* its first heartbeat; 0: there was none */
        usec_t last_life; /* the process that sent heartbeats ended after so long, and none has sent one
                             since; 0: no such */

        struct worker_process process;
        struct worker_heartbeat heartbeat;
        struct worker_jobs jobs;
        struct worker_evidence evidence;
        struct worker_memory memory;
        struct worker_orders orders;
        struct worker_verdict verdict;

        struct process *handle; /* what the shell holds of it, and defines; NULL: nothing, or not yet */
};
