/* SPDX-License-Identifier: MIT */
/* A worker: the facts about one process that runs jobs. All times are CLOCK_MONOTONIC microseconds. */
#pragma once

#include "model/event.h"
#include "model/job.h"
#include "model/trend.h"
#include "settings/redis_url.h"

enum worker_state {
        WORKER_STARTING, /* spawned, no heartbeat yet */
        WORKER_ACTIVE,   /* sends heartbeats and accepts jobs */
        WORKER_QUIET,    /* accepts no new jobs, finishes its running jobs */
        WORKER_STOPPING, /* asked to exit */
        WORKER_GONE,     /* has exited; fleet_reap() frees it */
        _WORKER_STATE_MAX,
};

/* The reasons why a worker or a fleet waits, each with its name in `status`: a contract, names are added and
 * never changed. The planner decides. */
#define WAIT_KINDS(X)                                                                                        \
        X(WAIT_NONE, NULL)                                                                                   \
        X(WAIT_FIRST_HEARTBEAT, "first-beat") /* no heartbeat yet */                                         \
        X(WAIT_READY_OTHERS, "ready-others")  /* replacements must be ready before it may be quieted */      \
        X(WAIT_JOBS, "jobs")                  /* running jobs must finish */                                 \
        X(WAIT_HEARTBEATS, "idle-beats")      /* further idle heartbeats as proof that it is idle */         \
        X(WAIT_THREADS, "threads") /* job threads must exit, or further idle heartbeats must arrive */       \
        X(WAIT_EXIT, "exit")       /* was asked to exit */                                                   \
        X(WAIT_REDIS, "redis")     /* Redis is down */                                                       \
        X(WAIT_FRESH_HEARTBEAT,                                                                              \
          "fresh-beat")          /* the clock jumped: waits for a heartbeat from after the jump */           \
        X(WAIT_STALE, "stale")   /* heartbeats have stopped */                                               \
        X(WAIT_HUNG, "hung")     /* fleet: all its workers are silent, and one must send a heartbeat */      \
        X(WAIT_SIGNAL, "signal") /* does not catch the quiet signal, or could not be signaled */             \
        X(WAIT_ELSEWHERE, "beats-elsewhere") /* has booted, but its heartbeat cannot be found */             \
        X(WAIT_UNSEEN, "unseen")             /* see worker_process.unseen */                                 \
        X(WAIT_AMBIGUOUS, NULL)         /* the heartbeat cannot be distinguished from another process's */   \
        X(WAIT_SUCCESSOR, NULL)         /* exited as asked, but another of its processes may have booted */  \
        X(WAIT_IDLE_CHECK, "rest")      /* may be taking a job */                                            \
        X(WAIT_RELEASE, "release")      /* new workers failed: one of them must prove itself first */        \
        X(WAIT_PLACES, "places")        /* fleet: max_processes are alive */                                 \
        X(WAIT_TRIAL, "trial")          /* fleet: a restart has all new workers that it may have for now */  \
        X(WAIT_RETURNED, "rolled-back") /* fleet: it has returned to a generation that is not in memory */   \
        X(WAIT_MEMORY, "memory")        /* fleet: too little memory for an extra process */                  \
        X(WAIT_BACKOFF,                                                                                      \
          "backoff") /* fleet: before a start after a crash, or after a replacement over the threshold */    \
        X(WAIT_ADOPTION, "adoption") /* fleet: processes may be its workers */                               \
        X(WAIT_TEMPLATE, "template") /* fleet: the template of its generation is not ready */                \
        X(WAIT_FORK, "fork")         /* fleet: not enough memory, processes or descriptors for a start */    \
        X(WAIT_STATE, "state")       /* forked, and not recorded yet */                                      \
        X(WAIT_LEDGER, "ledger")     /* the stop signal cannot be recorded, see world->ledger_volatile */    \
        X(WAIT_UNCONFIRMED, "unconfirmed") /* may lack its stop signal, see orders.unconfirmed */

enum wait {
#define WAIT(wait, code) wait,
        WAIT_KINDS(WAIT) _WAIT_MAX,
#undef WAIT
};

/* Number of heartbeats that contradict a signal before it counts as not received. The first ones may have
 * been written before the signal. */
#define WORKER_NOT_QUIET_HEARTBEATS 3
/* Number of heartbeats that a title contradicts before that is reported. */
#define WORKER_DENIED_HEARTBEATS 4

/* No process begins more jobs in its life. */
#define WORKER_PROCESSED_MAX (UINT64_C(1) << 50)

/* The outcomes of the jobs of the process, since its start. */
struct worker_outcomes {
        bool known;                /* reported */
        uint64_t processed;        /* ended, also by a failure */
        uint64_t failed;           /* of these */
        char class[JOB_CLASS_MAX]; /* the job class with the most failures; "": unknown */
        uint64_t class_failed;     /* failures of that class */
};

/* A decoded heartbeat, as its framework wrote it. */
struct heartbeat {
        uint64_t sent_usec; /* the worker's own wall clock: compare only with the same worker's */
        unsigned busy;
        unsigned concurrency; /* 0: not known */
        bool quiet;
        bool work_list_known;
        bool work_list_empty;
        uint64_t rss_bytes; /* of the process that sends heartbeats, when it wrote this one; 0: not known */
        uint64_t start;     /* field 22 of /proc/PID/stat, as that process read it; 0: not known */
        uint64_t born_usec; /* when that process registered, by its wall clock; 0: not known */
        int quiet_signal;   /* the signals named by the heartbeat; 0: the framework's */
        int stop_signal;
        bool shimless;   /* not written by the worker, see worker_process.shimless */
        usec_t asked_at; /* when sqmgr asked for the heartbeat, as an answer may be late; 0: just read */
        struct worker_outcomes outcomes;
        /* When it was sent: the age of the last turn of the loop that fetches jobs, and since when a quiet
         * waits for a fetch that should have ended. 0: not reported; a reported 0 is 1 */
        usec_t looked_usec;
        usec_t polling_usec;
};

/* Why the status file of a worker does not count. */
#define HEARTBEAT_FAULTS(X)                                                                                  \
        X(HEARTBEAT_FAULT_NONE, "")                                                                          \
        X(HEARTBEAT_FAULT_BEGUN, "the worker has loaded sqmgr's file, which has written no record yet")      \
        X(HEARTBEAT_FAULT_PLACE, "the status directory is missing or was changed")                           \
        X(HEARTBEAT_FAULT_MISSING, "the status file is missing")                                             \
        X(HEARTBEAT_FAULT_KIND, "the status file is not a regular file")                                     \
        X(HEARTBEAT_FAULT_SIZE, "the status file is larger than 20 KiB")                                     \
        X(HEARTBEAT_FAULT_UNREADABLE, "the status file cannot be read")                                      \
        X(HEARTBEAT_FAULT_CHANGES, "the status file changes while being read")                               \
        X(HEARTBEAT_FAULT_RECORD, "the status file is not in the format of sqmgr-heartbeat(7)")              \
        X(HEARTBEAT_FAULT_START, "'start' in the status file is missing or belongs to another process")

enum heartbeat_fault {
#define HEARTBEAT_FAULT(fault, text) fault,
        HEARTBEAT_FAULTS(HEARTBEAT_FAULT) _HEARTBEAT_FAULT_MAX,
#undef HEARTBEAT_FAULT
};

/* The memory limits, from the lower to the higher one. */
enum breach { BREACH_NONE, BREACH_THRESHOLD, BREACH_LIMIT };

struct process; /* defined by the caller: a worker's descriptors and event sources */

/* The processes of a worker. Pid and start time (field 22 of /proc/PID/stat) together identify a process
 * uniquely. */
struct worker_process {
        struct redis_comparison redis; /* the environment compared with redis_url; zeroes: not known */
        pid_t pid;                     /* the process that was started */
        uint64_t start;
        pid_t heartbeat_pid; /* the process that sends heartbeats: pid or a descendant of it; 0: not known */
        uint64_t heartbeat_start;
        bool forked;    /* from a template: part of its memory is shared */
        bool awaits_go; /* forked, and does nothing before it is allowed to continue */
        bool unproven; /* found, but neither a boot nor a heartbeat was seen: may not be a worker, and gets no
                          signal */
        bool booted; /* title or threads show that the process or a descendant has booted, though no heartbeat
                        can be found */
        bool unseen; /* nothing showed a boot within boot_timeout, and nothing shows that it runs no jobs: the
                        worker is kept, counts as a failed start, and holds its place */
        usec_t boot_polled_at; /* last check for that; 0: never */
        usec_t boot_seen_at;   /* since when the title shows that it has booted; 0: it does not */
        /* The process that sends heartbeats is out of reach: it is no descendant of pid, as under `docker
         * run`, and heartbeat_pid is pid; or it may not be signaled. Signals go through the server, memory is
         * that of the heartbeat, and neither title nor threads prove anything. */
        bool remote;
        /* The worker has not loaded its shim (traits.shim): no record was found within boot_timeout, and none
         * of another worker with its start settings. Like a worker of framework 'plain' it counts as active
         * while its command runs, and its stop signal quiets it; but a process that does not catch that
         * signal gets none. */
        bool shimless;
        int shim_error; /* errno: why the start left the shim out, ECANCELED: fleet.shim_refused; 0: it did
                         * not, or is not known */
        bool elsewhere; /* heartbeat_pid is known by its title alone: no heartbeat of it was ever found */
        usec_t shutdown_usec; /* the worker's exit timeout, from its arguments; 0: not known */
};

/* The facts from the heartbeats of a worker. */
struct worker_heartbeat {
        bool seen;
        uint64_t written_usec; /* of the newest heartbeat, by the worker's own clock */
        /* written_usec before an older heartbeat was accepted, as after a step of the clock; 0: never. If
         * that heartbeat is read again, it is no sign of life: a replica lagged. */
        uint64_t before_usec;
        usec_t newest_at;           /* when the newest heartbeat was asked for */
        usec_t changed_at;          /* when the last changed heartbeat was asked for */
        usec_t after;               /* the last fresh heartbeat was written after this; 0: none */
        usec_t read_at;             /* when the last heartbeat was asked for, changed or not */
        enum heartbeat_fault fault; /* of the status file, as last read */
        bool stale_reported;
        bool hung; /* no heartbeat for hang_after: the worker does not count as active until the next one */
        unsigned busy;
        unsigned concurrency;
        unsigned idle_count;      /* distinct heartbeats in a row that say quiet and 0 busy */
        unsigned not_quiet_count; /* distinct heartbeats in a row that do not say quiet, since the worker was
                                asked to be */
        bool ambiguous;           /* the heartbeats may be another process's: no action is based on them */
        int quiet_signal;         /* the signals named by the last heartbeat; 0: the framework's */
        int stop_signal;
        usec_t looked_usec; /* of the last heartbeat, see struct heartbeat */
        usec_t polling_usec;
};

/* Whether a worker runs no jobs while others of its fleet do (observe/observe_deaf.h). */
struct worker_deafness {
        usec_t took_at;   /* when the last heartbeat was read that shows a new job; 0: none */
        usec_t since;     /* start of the readings in a row at which jobs waited for it; 0: none */
        unsigned taken;   /* number of these readings before which others had taken jobs */
        usec_t taken_at;  /* the last of these */
        usec_t found_at;  /* when it was found deaf, see worker_is_deaf(); 0: it was not, or works again */
        bool loop_stands; /* the last heartbeat shows that the loop that fetches jobs does not turn */
};

/* The jobs of a worker, as of the last reading of its work list. */
struct worker_jobs {
        bool list_empty; /* at the last heartbeat with a reading */
        unsigned count;  /* including unknown jobs */
        usec_t read_at;
        usec_t oldest_at;                 /* start of the oldest job whose start is known; 0: none */
        struct job_classes classes;       /* empty if any job is unknown */
        unsigned interruptible_count;     /* heartbeats in a row with which all jobs were of such classes */
        uint64_t interruptible_heartbeat; /* written_usec of the last of these */
};

#define WORKER_PEERS_MAX 128

/* Facts from /proc beside the heartbeats. */
struct worker_evidence {
        bool threads_known;
        bool threads_witness; /* job threads were seen while it was active: their absence proves something */
        unsigned threads;
        bool title_known; /* title_quiet and title_busy are from the last reading of the title */
        bool title_quiet;
        unsigned title_busy;
        bool peers_known;
        char peers[WORKER_PEERS_MAX]; /* servers that the process is connected to: ADDRESS:PORT, ... */
        unsigned title_threads;       /* the number of job threads in the title; 0: not known */
        usec_t title_at;              /* last reading of a title whose heartbeat is elsewhere; 0: never */
        usec_t title_idle_since; /* the first of its readings in a row that showed quiet and no job; 0: none
                                  */
        /* After boot_timeout: the first of the readings in a row that showed a process that sleeps on,
         * without child, connection or further threads; else the last reading. 0: none. And how often it has
         * woken. */
        usec_t still_since;
        uint64_t wakeups;
        usec_t siblings_polled_at; /* first search for another process that sends heartbeats; 0: never */
        bool sibling_reported;     /* another process was reported */
        usec_t may_take_job_at;    /* first of the tries in a row to quiet the worker while it could have been
                                      taking a job; 0: never */
        usec_t may_take_job_seen_at; /* the last such try */
};

struct worker_memory {
        uint64_t bytes;        /* resident, shared memory included; 0: not known */
        usec_t read_at;        /* 0: never */
        uint64_t own_bytes;    /* memory of a forked worker that is not shared; 0: not known */
        unsigned over_samples; /* samples in a row over memory_threshold */
        bool over_threshold;   /* after three such samples; remains set */
        bool over_limit;
        uint64_t mark_bytes; /* size at mark_at: growth since then is reported */
        usec_t mark_at; /* when it last ran no job, else its first heartbeat or its adoption; 0: not known */
        enum breach breach; /* the highest limit that was exceeded */
        usec_t breach_at;   /* a heartbeat after this is awaited, which shows the jobs of that moment; 0: none
                             */
        struct trend trend; /* collected while it is active */
        struct trend_fit fit; /* of trend */
};

/* The orders to the worker, and its response. */
struct worker_orders {
        bool quiet;          /* by an operator, for this worker alone */
        bool forced;         /* stop --force, for this worker alone */
        usec_t quiet_at;     /* when it became quiet; 0: never */
        usec_t stop_at;      /* when it was asked to exit; 0: never */
        usec_t stop_last_at; /* when the stop signal was last sent; 0: never, or not by this sqmgr */
        bool group_signaled; /* all its processes were asked to exit, not only the one that sent heartbeats */
        bool stop_acknowledged; /* a heartbeat after stop_at said quiet */
        bool finishes_job;   /* the worker's process has ended, and a leftover process finishes its job: the
                                leftover's exit proves the end of the job */
        bool succeeded;      /* the worker's process has ended, and another one of its command accepted jobs:
                                more may follow */
        bool unconfirmed;    /* may not have received its stop signal, because an earlier sqmgr ended while
                                sending it. A second signal would end the jobs, so none is sent until heartbeats
                                show whether the first arrived */
        bool quiet_uncaught; /* does not catch the quiet signal: it is stopped instead */
        int signal_error;    /* errno of the last refused signal; 0: none */
        usec_t killed_at;
};

/* The planner's verdict, renewed by each plan. For people, never for decisions. */
struct worker_verdict {
        enum reason retire_reason;
        enum wait waits_for;
        unsigned waits_count;
};

struct worker {
        struct fleet *fleet;
        unsigned index; /* see WORKER_ID */
        uint64_t generation;

        enum worker_state state;
        enum reason reason;      /* why it leaves or is to leave; REASON_NONE while it stays */
        enum reason started_for; /* why it was started; REASON_NONE: a place was empty */
        usec_t spawned_at;
        usec_t state_at;
        usec_t active_at;   /* first heartbeat; 0: none */
        usec_t last_uptime; /* life of the process that sent heartbeats and has ended; 0: none, or another one
                             sends heartbeats now */

        struct worker_process process;
        struct worker_heartbeat heartbeat;
        struct worker_deafness deaf;
        struct worker_outcomes outcomes;
        struct worker_jobs jobs;
        struct worker_evidence evidence;
        struct worker_memory memory;
        struct worker_orders orders;
        struct worker_verdict verdict;

        struct process *handle; /* the caller's data, defined there; NULL: none yet */
};
