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
        WAIT_FIRST_BEAT,   /* it has not beaten yet */
        WAIT_READY_OTHERS, /* replacements must be ready before it may be quieted */
        WAIT_JOBS,         /* its running jobs */
        WAIT_BEATS,        /* further idle beats before it is proven idle */
        WAIT_THREADS,      /* its job threads to exit, or further idle beats */
        WAIT_EXIT,         /* told to exit */
        WAIT_REDIS,        /* Redis is away */
        WAIT_FRESH_BEAT,   /* time was doubtful: a beat from after that */
        WAIT_STALE,        /* its beat has stopped */
        WAIT_HUNG,         /* it hangs; fleet: all of its workers are silent, and one must beat first */
        WAIT_SIGNAL,       /* it does not catch the quiet signal, or could not be signalled */
        WAIT_ELSEWHERE,    /* it has booted, but its beat is not to be found */
        WAIT_AMBIGUOUS,    /* its heartbeat cannot be told from that of another process */
        WAIT_SUCCESSOR,    /* told to leave, its process has ended, and another one of its has booted */
        WAIT_REST,         /* it may be taking a job */
        WAIT_RELEASE,      /* new workers failed: one of them must prove itself first */
        WAIT_PLACES,       /* fleet: max_processes are alive */
        WAIT_MEMORY,       /* fleet: too little memory for an extra process */
        WAIT_BACKOFF,      /* fleet: the next start after a crash, or a replacement over its threshold */
        WAIT_ADOPTION,     /* fleet: processes were found that may be its workers */
        WAIT_TEMPLATE,     /* fleet: the template of its generation is not ready */
        WAIT_FORK,         /* fleet: memory or processes are too short to fork one */
        WAIT_STATE,        /* forked, and not written into the state yet */
        _WAIT_MAX,
};

/* Beats that contradict a signal before it counts as not taken: the last ones may have been written before.
 */
#define WORKER_LOUD_BEATS 3
/* And that a title contradicts, before it is told. */
#define WORKER_DENIED_BEATS 4

/* One heartbeat as its framework wrote it, decoded. */
struct heartbeat {
        uint64_t beat_usec; /* the worker's own wall clock: compared only with the same worker's */
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
enum beat_fault {
        BEAT_FAULT_NONE,
        BEAT_FAULT_PLACE,      /* its directory is gone, or not as we made it */
        BEAT_FAULT_MISSING,    /* there is none */
        BEAT_FAULT_KIND,       /* it is no regular file */
        BEAT_FAULT_OWNER,      /* it belongs to another user */
        BEAT_FAULT_SIZE,       /* it is too large */
        BEAT_FAULT_UNREADABLE, /* it could not be read */
        BEAT_FAULT_CHANGES,    /* it changed meanwhile */
        BEAT_FAULT_RECORD,     /* it holds no record */
        BEAT_FAULT_START,      /* the record is of another process, or does not tell */
        _BEAT_FAULT_MAX,
};

/* The memory limits, from the lower to the higher one. */
enum breach { BREACH_NONE, BREACH_THRESHOLD, BREACH_LIMIT };

struct fleet;
struct process; /* the shell's: a worker's descriptors and event sources */

struct worker {
        struct fleet *fleet;
        unsigned index; /* see WORKER_ID */
        uint64_t generation;

        pid_t pid;          /* the process started; pid and start time name it for good */
        uint64_t pid_start; /* field 22 of /proc/PID/stat */
        pid_t beat_pid;     /* the process that beats: the same, or a descendant; 0: not known */
        uint64_t beat_pid_start;
        bool forked;    /* from a template: what it holds is shared in part */
        bool awaits_go; /* and it does nothing before it is told to go on */

        enum worker_state state;
        enum reason reason;      /* why it leaves, or is to leave; REASON_NONE while it stays */
        enum reason started_for; /* why it was started; REASON_NONE: a place was empty */
        usec_t spawned_at;
        usec_t state_at;
        usec_t active_at; /* its first beat; 0: has not beaten */
        usec_t last_life; /* its beating process ended after so long, and none has beaten since; 0: no such */
        usec_t quiet_at;  /* it became quiet; 0: it never was */
        usec_t stop_at;   /* it was told to exit; 0: it was not */
        bool group_told;  /* so was all that it started, and not the process that beat alone */
        bool heeds_stop;  /* and has said since that it is quiet */
        bool finishes_job; /* that one ended, and what is left runs the job that it had begun: its exit is the
                            * proof that it does no longer */
        bool succeeded;    /* that one ended, and another one of its took jobs: its command may start more */
        usec_t others_at;  /* what beats beside it was first looked for; 0: never */
        bool several_told; /* something does */

        bool has_beat;
        uint64_t beat_usec;         /* the last beat seen, by its own clock */
        usec_t beat_at;             /* when a beat was last seen to change */
        usec_t beat_after;          /* the last fresh beat was written after this; 0: there was none */
        usec_t read_at;             /* when its heartbeat was last read, changed or not */
        enum beat_fault beat_fault; /* of what was last read of it */
        bool stale_told;
        bool hung; /* no beat for hang_after: until the next one it does not count as active */
        unsigned busy;
        unsigned concurrency;
        unsigned idle_beats; /* distinct beats in a row: quiet, 0 busy */
        unsigned loud_beats; /* distinct beats in a row since it was told to be quiet, or to exit, that say it
                                is not quiet */
        bool work_list_empty; /* at the last beat for which it was read */
        unsigned jobs_read;   /* how many jobs were in its work list when that was last read */
        usec_t jobs_read_at;
        usec_t oldest_job_at;           /* the oldest of them began; 0: not told */
        struct job_classes job_classes; /* theirs */

        bool threads_known;
        bool threads_witness; /* job threads were seen while it was active: the witness counts */
        unsigned threads;
        bool unproven;         /* found, and not seen to boot or beat: it may be none, and gets no signal */
        bool booted;           /* title or threads show that it, or what else it started, has booted, though
                                * no beat is to be found */
        usec_t boot_looked_at; /* when that was last looked for; 0: never */
        usec_t shutdown_usec;  /* its own time to exit, as its arguments showed it; 0: they did not */
        bool title_known;      /* the last look at the title told these */
        bool title_quiet;
        unsigned title_busy;
        bool ambiguous; /* beats that may be its own, and may be another's: nothing is done on their account
                         */

        uint64_t memory_bytes; /* 0: not known */
        usec_t memory_at;      /* when it was read; 0: never */
        uint64_t own_bytes;    /* what it does not share, of one that was forked; 0: not known */
        unsigned over_samples; /* in a row over memory_threshold */
        bool over_threshold;   /* three in a row were: sticks */
        bool over_limit;
        uint64_t mark_bytes; /* what it held at mark_at: its growth since is told */
        usec_t mark_at;     /* when it last ran nothing, else its first beat, or its adoption; 0: not known */
        enum breach breach; /* the highest limit that it was seen to go over */
        usec_t breach_at;   /* a beat from after this, which tells what ran then, is waited for; 0: none is */

        struct trend trend;   /* of what it holds while it takes jobs: 216 bytes */
        struct trend_fit fit; /* by that */

        bool quiet_ordered; /* by the operator, for this worker */
        bool pressed;       /* it leaves, or has left, since memory is short (pressure_action) */
        int quiet_signal;   /* as its last beat named them; 0: the framework's */
        int stop_signal;
        bool quiet_uncaught; /* it does not catch the quiet signal: it is stopped in its place */
        int signal_error;    /* errno of the last signal that was refused; 0: none was */
        usec_t restless_at; /* it was to be quieted, and could be taking a job: since then, 0: it never was */
        usec_t restless_seen_at; /* and was last seen so */
        usec_t killed_at;

        /* The planner's verdict, renewed with each plan: for people, never for decisions. */
        enum reason wanted_out;
        enum wait waits_for;
        unsigned waits_count;

        struct process *process; /* what the shell holds of it, and defines; NULL: nothing, or not yet */
};
