/* SPDX-License-Identifier: MIT */
/* The model: fleets, their workers, and what is known of each. Observing changes it (model/observe.h),
 * planning only reads it (model/plan.h). All times are CLOCK_MONOTONIC microseconds handed in by the caller.
 */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/event.h"
#include "model/growth.h"
#include "model/job.h"
#include "model/rollout_group.h"
#include "model/scaling.h"
#include "settings/settings.h"
#include <sys/types.h>

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

/* What the shell is asked to read of a worker; see worker_looks(). */
enum look {
        LOOK_BEAT = 1 << 0,      /* its heartbeat, or where its identity is unknown, that */
        LOOK_WORK_LIST = 1 << 1, /* is its work list empty? */
        LOOK_MEMORY = 1 << 2,
        LOOK_THREADS = 1 << 3,   /* how many job threads it has */
        LOOK_TITLE = 1 << 4,     /* its process title */
        LOOK_BOOT = 1 << 5,      /* do titles or threads of its tree show that it has booted? */
        LOOK_ARGUMENTS = 1 << 6, /* do they show how long it may take to exit? */
        LOOK_OTHERS = 1 << 7,    /* does another process of it beat, too? */
};

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
struct world;

struct process;          /* the shell's: a worker's descriptors and event sources */
struct template_process; /* the same of a template */
struct link;             /* the shell's: a connection to Redis */

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

enum fleet_order { ORDER_RUN, ORDER_QUIET, ORDER_STOP, _FLEET_ORDER_MAX };

#define ROLLOUT_ERROR_MAX 2304
#define CRASH_LAST_MAX    2048

struct rollout {
        enum rollout_state state;
        unsigned total; /* workers that it set out to replace */
        usec_t started_at;
        usec_t progress_at; /* the last time that it came forward, or was held by what is not its fault */
        unsigned failures;  /* new workers that failed, in a row */
        usec_t failed_at;   /* the last of them */
        char error[ROLLOUT_ERROR_MAX];
        uint64_t lines_token; /* the last lines in error are still being read; 0: none are */
};

/* So many short lives in a row are a crash loop. */
#define FLEET_CRASH_LOOP 3

struct backoff {
        unsigned count;   /* failures in a row; 0 once reset */
        usec_t failed_at; /* the last of them */
        usec_t next_at;   /* no start before this */
        unsigned freed;   /* but of so many, whose places long lives have left meanwhile */
        bool loop_told;
};

enum template_state {
        TEMPLATE_NONE,    /* this place is free */
        TEMPLATE_LOADING, /* it loads the application */
        TEMPLATE_READY,   /* it can be forked */
        TEMPLATE_ENDING,  /* it was told to end */
        _TEMPLATE_STATE_MAX,
};

/* The old one, from which workers come back while a new one is tried, and that. */
#define TEMPLATES_MAX 2

/* A process with the application loaded: see model/template.h. */
struct template
{
        struct fleet *fleet;
        enum template_state state;
        uint64_t generation;
        pid_t pid;          /* the process started; pid and start time name it for good */
        uint64_t pid_start; /* field 22 of /proc/PID/stat */
        pid_t serving_pid;  /* the one that forks: the same, or a descendant; 0: it has not come so far, and
                             * could turn out to be a worker */
        uint64_t serving_start;
        usec_t started_at;
        usec_t state_at;
        bool lost;             /* an earlier sqmgr's, with which nobody speaks */
        usec_t boot_looked_at; /* when it was last looked whether it works; 0: never */
        usec_t killed_at;
        uint64_t memory_bytes; /* 0: not known */

        /* The fork that was asked for, one at a time. */
        struct {
                unsigned index; /* of its worker; 0: there is none */
                enum reason reason;
                usec_t asked_at;
                usec_t waited;  /* of the time since, as far as it counts */
                usec_t seen_at; /* up to when that was counted */
        } fork;

        struct template_process *process; /* what the shell holds of it; NULL: nothing, or not yet */
};

#define PRELOAD_REFUSED_MAX 512

/* What is known of a fleet's templates as such. */
struct preload {
        char refused[PRELOAD_REFUSED_MAX]; /* why workers of this generation boot separately; "": they need
                                              not */
        uint64_t refused_generation;
        unsigned failures;       /* loads and forks that failed in a row */
        uint64_t lines_token;    /* of a load that failed, whose last lines are still being read; 0: there is
                                    none */
        uint64_t template_bytes; /* what one that was ready held at last; 0: not known */
        usec_t slowest_fork;     /* so far, in time that counts; 0: there was none */
        usec_t retry_at;         /* memory or processes were short: no fork before this; 0: they are not */
};

enum culprits_cause {
        CULPRITS_MEMORY, /* it went over memory_threshold or memory_limit */
        CULPRITS_OOM,    /* it died while the kernel's OOM killer was at work */
        _CULPRITS_CAUSE_MAX,
};

#define CULPRITS_KEPT 5

/* What a worker was running as its memory ran out (model/culprits.h). */
struct culprits {
        usec_t at; /* 0: nothing is here */
        enum culprits_cause cause;
        unsigned index; /* of the worker */
        pid_t pid;
        uint64_t memory_bytes; /* 0: not known */
        uint64_t growth_bytes; /* 0: none was seen */
        usec_t growth_usec;    /* within so long */
        struct job_classes classes;
};

/* By whose word jobs are cut off. */
enum cut_word {
        CUT_ORDER, /* an operator's: stop --force, or a second signal to end */
        CUT_DRAIN_TIMEOUT,
        CUT_STOP_TIMEOUT,
        CUT_SHUTDOWN_TIMEOUT,
        _CUT_WORD_MAX,
};

/* So many job classes are counted for each fleet. */
#define CULPRIT_CLASSES_MAX 32

/* Counted since sqmgr started. */
struct fleet_totals {
        uint64_t starts[_REASON_MAX]; /* by started_for */
        uint64_t ends[_REASON_MAX];   /* by the worker's reason */
        uint64_t events[_EVENT_MAX];
        uint64_t jobs_cut_off[_CUT_WORD_MAX]; /* that ran in workers as these were told to exit */
        struct {
                char name[JOB_CLASS_MAX]; /* "": none has this place yet */
                uint64_t times[_CULPRITS_CAUSE_MAX];
        } culprits[CULPRIT_CLASSES_MAX];
        uint64_t other_culprits[_CULPRITS_CAUSE_MAX]; /* of classes that have no place there */
        uint64_t template_loads, template_failures, forks;
        uint64_t scaled_up, scaled_down; /* how often scaling has changed the count */
};

/* How a service time was learnt. */
enum autoscale_source {
        AUTOSCALE_BY_NOTHING,
        AUTOSCALE_BY_METRICS, /* the framework's own, by class */
        AUTOSCALE_BY_COUNT,   /* of all jobs that were done, in a Redis that only this fleet serves */
        _AUTOSCALE_SOURCE_MAX,
};

struct queues;

/* Of one Redis, of all its fleets; those with a target come first, and no more are looked at. */
#define AUTOSCALE_QUEUES_MAX 64

/* How the count of a fleet follows its queues; see model/autoscale.h. */
struct autoscale {
        unsigned count; /* in force by it; 0: none was chosen yet, which is the least */
        usec_t read_at; /* the last verdict; 0: none */
        char *served;   /* owned: the queues from which its workers take, see autoscale_list_has(); NULL: not
                         * known */
        struct queues *queues; /* owned, as last read: those of them that are looked at; NULL: they could not
                                * be, or were not yet */
        unsigned concurrency;  /* of one worker, when one last told; 0: none has */
        usec_t boot;           /* how long the newest worker took until it took jobs; 0: not known */
        struct scaling rule;
        struct scaling_verdict verdict; /* the last one */
        enum autoscale_source source;   /* of its service time */
        double busy, threads;           /* of it, and of the fleets and hosts that scale with it */
        double others_idle;
        unsigned others; /* processes of nobody here that serve these queues */
        unsigned fleets; /* of this sqmgr that scale by these queues, itself included */
        unsigned hosts;  /* the same of hosts of its group */
        bool bounded_by_memory;
        bool queues_left_out; /* there are more than AUTOSCALE_QUEUES_MAX */
};

struct fleet {
        struct world *world;                   /* that it belongs to */
        const struct fleet_settings *settings; /* not owned */
        struct worker **workers;               /* owned, ordered by index */
        size_t n_workers;
        size_t workers_allocated;
        struct template templates[TEMPLATES_MAX];
        struct preload preload;

        uint64_t generation;    /* from 1 */
        enum fleet_order order; /* see fleet_order() */
        usec_t order_at;        /* when that was given; 0: not to us */
        struct orderer order_by;
        bool force;      /* stop --force */
        unsigned scale;  /* the operator's count; 0: the configured one */
        usec_t scale_at; /* when that was given; 0: not to us */
        struct orderer scale_by;
        struct autoscale autoscale; /* while settings->active_process_max says so */
        struct rollout rollout;
        struct rollout_group group; /* with rollout_group alone: its part in the restart of all hosts */
        struct backoff crash;
        char crash_last[CRASH_LAST_MAX]; /* how the last worker died; "" : none has */
        bool crash_last_apart;           /* crash_last was no short life: it is not of the row */
        uint64_t lines_token;            /* the same of crash_last */
        struct backoff churn;            /* replacements that outgrew the threshold themselves */
        uint64_t random;                 /* state of its generator of jitter */
        usec_t hold_until; /* processes were found that may be its workers: no start before that is known */
        bool unknown;      /* nor does a state tell of any */

        bool redis_up;
        usec_t redis_at;      /* since when it is as redis_up says; 0: it was never up */
        usec_t heard_at;      /* since when at least one of its workers is fresh; 0: none is */
        unsigned places_left; /* by workers that were pressed and are gone: filled when memory is back */
        bool rescue_off_told;
        bool uncaught_told;   /* that a worker of it does not catch the quiet signal */
        usec_t shutdown_told; /* that a worker of it takes so long to exit; 0: was not told */
        struct growth growth;
        struct culprits culprits[CULPRITS_KEPT]; /* the newest first */
        bool continued; /* crash is of an earlier sqmgr's, and Redis was not seen away since */

        enum wait waits_for; /* the planner's verdict on starts */
        enum wait wait_told;
        struct fleet_totals totals;
        struct link *link; /* the shell's connection to its Redis; NULL: none, or not yet */
};

/* Counts that the model derives; `ready` and `fresh` mean at `now`. */
struct fleet_counts {
        unsigned live, starting, active, quiet, stopping;
        unsigned hung;     /* would be active, did they not hang */
        unsigned ready;    /* active for ready_after, its beat fresh */
        unsigned outdated; /* starting or active, of an older generation */
        unsigned busy;     /* jobs that are running, at the last beats */
        uint64_t memory_bytes;
};
struct fleet_counts fleet_count(const struct fleet *fleet, usec_t now);

/* How long the oldest of its jobs has been running, in microseconds, as work lists told that were read of
 * late: of workers that drain and, with job_warn_after, of all. 0: not known. */
usec_t fleet_oldest_job_usec(const struct fleet *fleet, usec_t now);

/* How many of the workers that a restart set out to replace have been: quiet, stopping or gone. */
unsigned fleet_replaced(const struct fleet *fleet, usec_t now);

/* Of older generations, quiet or stopping. */
unsigned fleet_draining(const struct fleet *fleet);

/* What the row of short lives means for the fleet. */
enum crash_state {
        CRASH_NONE,       /* there is none */
        CRASH_FAILING,    /* workers are missing, or it is not known yet whether a new one lives */
        CRASH_RECOVERING, /* all are there, and one was started since: it must live for a while */
        CRASH_SETTLED,    /* all are there, and none is to be started */
        _CRASH_STATE_MAX,
};
enum crash_state fleet_crash_state(const struct fleet *fleet, usec_t now);
const char *crash_state_name(enum crash_state state);
/* When the row of short lives ends by that a worker which was started since has lived for long enough;
 * USEC_INFINITY: there is no such worker. */
usec_t fleet_recovered_at(const struct fleet *fleet);
/* The next start waits for it to pass: until then; 0: no start does. */
usec_t fleet_next_start_at(const struct fleet *fleet, usec_t now);

/* By the operator's own word every worker is to end from then on, whatever it does: by `stop --force`, and at
 * the end of a shutdown. USEC_INFINITY: there is no such word. */
usec_t fleet_forced_at(const struct fleet *fleet);

/* A worker that drains is told to exit then, its jobs notwithstanding: by drain_timeout, at a shutdown, or
 * by force. */
struct cut_off {
        usec_t at;          /* USEC_INFINITY: it is given the time that its jobs take; 0: at once */
        usec_t allowed;     /* how long it is given */
        enum cut_word word; /* by which setting; CUT_ORDER: by order, at once, or not at all */
};
struct cut_off worker_cut_off(const struct worker *worker);

/* How many workers should take jobs when all is well: 0 once quieted, stopped or shutting down. */
unsigned fleet_target(const struct fleet *fleet);

/* The count in force, whatever the order: the operator's, or the configured one. */
unsigned fleet_count_in_force(const struct fleet *fleet);
/* The highest count, too, that the operator may ask for. */
unsigned fleet_max_processes(const struct fleet *fleet);
/* The lowest one: 0 only takes one back that is switched off by its settings. */
unsigned fleet_scale_min(const struct fleet *fleet);
/* The operator's count is in force, and is another than the configured one, or than scaling's. */
bool fleet_is_scaled(const struct fleet *fleet);
/* Its count follows its queues, unless the operator has given one. */
static inline bool fleet_scales(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;

        return settings->active_process_max > 0 && settings->traits->tells_queues && !settings->removed;
}

/* The order in force: a fleet that is no longer configured stops. */
static inline enum fleet_order fleet_order(const struct fleet *fleet)
{
        return fleet->settings->removed ? ORDER_STOP : fleet->order;
}

/* Since when, and by whom, a fleet is quieted or stopped: "3h ago by deploy (uid 1001)"; "" where nothing is
 * known of it, or it is neither. */
#define FLEET_ORDERED_MAX (ORDERER_TEXT_MAX + 48)
const char *fleet_ordered_text(const struct fleet *fleet, usec_t now, char text[static FLEET_ORDERED_MAX]);

/* The same of its count: "scaled 4min ago by deploy (uid 1001)", "scaled" where no more is known, "" where it
 * is the configured one. */
#define FLEET_SCALED_MAX FLEET_ORDERED_MAX
const char *fleet_scaled_text(const struct fleet *fleet, usec_t now, char text[static FLEET_SCALED_MAX]);

/* The process that beats, where that is known, else the one that was started. */
static inline pid_t worker_pid(const struct worker *worker)
{
        return worker->beat_pid != 0 ? worker->beat_pid : worker->pid;
}

/* The id of a worker, "FLEET/INDEX", for people and programs, and the room that it takes. */
#define WORKER_ID_MAX (FLEET_NAME_MAX + sizeof("/4294967295"))
const char *worker_id(const char *fleet, unsigned index, char text[static WORKER_ID_MAX]); /* returns text */
/* The same as a value, which stays until the end of the block around it. */
#define WORKER_ID_OF(fleet, index) worker_id(fleet, index, (char[WORKER_ID_MAX]){""})
#define WORKER_ID(worker)          WORKER_ID_OF((worker)->fleet->settings->name, (worker)->index)

static inline bool worker_outdated(const struct worker *worker)
{
        return worker->generation < worker->fleet->generation;
}

/* It has beaten, where that is more than that it runs. */
static inline bool worker_beats(const struct worker *worker)
{
        return worker->has_beat && fleet_settings_write_beats(worker->fleet->settings);
}

/* Its beat changed of late: within the framework's bound, after the last doubt, with Redis up. */
bool worker_fresh(const struct worker *worker, usec_t now);
/* When the trial of one that has beaten ends: a life that ends before that is a short one, and of a new
 * worker a failure of its release (P7). */
usec_t worker_ready_at(const struct worker *worker);
/* Active for ready_after, and fresh: others may be quieted on its account. */
bool worker_ready(const struct worker *worker, usec_t now);
/* Its beats and, where they are known, its title and the thread witness prove that it runs no job and will
 * take none (P1). Facts of a quiet worker stay true, so this says nothing of freshness. */
bool worker_proven_idle(const struct worker *worker);
/* The title of its process, set at each beat, denies what the beats say that are read as its own. */
bool worker_contradicted(const struct worker *worker);
/* What that proof still waits for: WAIT_NONE for nothing, else WAIT_BEATS or WAIT_THREADS, with the number of
 * further idle beats that are proof enough. */
enum wait worker_proof_wait(const struct worker *worker, unsigned *ret_beats);
/* Told to leave, it lives on though the process that beat has ended, or none ever did: what is left of it may
 * be a wrapper, or run jobs. */
static inline bool worker_is_remainder(const struct worker *worker)
{
        return (worker->state == WORKER_QUIET || worker->state == WORKER_STOPPING) && worker->beat_pid == 0;
}
/* To quiet it is to stop it: it gets its stop signal once. */
static inline bool worker_quiet_is_stop(const struct worker *worker)
{
        return worker->fleet->settings->traits->quiet_is_stop || worker->quiet_uncaught;
}
/* It was to be quieted of late, and could be taking a job at each try. */
bool worker_is_restless(const struct worker *worker, usec_t now);
/* It may be quieted only while it runs a job or waits for one: for so long as it is reasonable to wait for
 * that. */
bool worker_awaits_rest(const struct worker *worker, usec_t now);
/* It was told to exit, by being quieted where quiet is stop: that it does is no crash. */
static inline bool worker_is_told_to_exit(const struct worker *worker)
{
        return worker->state == WORKER_STOPPING ||
               (worker->state == WORKER_QUIET && worker_quiet_is_stop(worker));
}
/* The same of one that finishes its jobs first: the process that has its stop signal lives, and not only a
 * wrapper around it. */
static inline bool worker_drains_to_exit(const struct worker *worker)
{
        return worker->state == WORKER_QUIET && worker_is_told_to_exit(worker) && worker->beat_pid != 0;
}
/* How long without a change of beat is no longer fresh, in microseconds. */
usec_t worker_stale_usec(const struct worker *worker);
/* For how long, in microseconds, one process must stand still while another beats, before it has ended: all
 * that run here may have been paused together, and time is not in doubt for that. */
usec_t worker_outlived_usec(const struct worker *worker);
/* In the state active, but it hangs: it takes a place and is none of those that do the work. */
static inline bool worker_hangs(const struct worker *worker)
{
        return worker->state == WORKER_ACTIVE && worker->hung;
}
/* When it got its stop signal: as it was quieted, where stop_timeout counts from then on. */
usec_t worker_told_at(const struct worker *worker);
/* How long a worker has been silent where it could have been heard, in microseconds. */
usec_t worker_silent_usec(const struct worker *worker, usec_t now);
/* That is longer than hang_after. */
bool worker_silent_too_long(const struct worker *worker, usec_t now);
/* How long the oldest job has been running in a worker that takes no new ones, in microseconds; 0: not known,
 * be it that the oldest may have ended since its work list was read. */
usec_t worker_oldest_job_usec(const struct worker *worker, usec_t now);
/* When a worker that has not beaten is to be given up; counts only time with Redis up and undoubted. */
usec_t worker_boot_deadline(const struct worker *worker);
/* When one that was told to exit has ignored that for stop_timeout of undoubted time with Redis up, in which
 * it could have put its jobs back. At shutdown, and by force, Redis is not waited for. */
usec_t worker_kill_at(const struct worker *worker);

/* restart_surge as a number of workers. */
unsigned fleet_surge(const struct fleet *fleet);
/* Draining or hung workers hold places that a start needs: max_processes is reached, or surge is 0. */
bool fleet_places_held(const struct fleet *fleet);

/* Names as the contract has them ("starting", "memory", "running", ...). */
const char *worker_state_name(enum worker_state state);
/* What is wrong, as half a sentence: "its status file is no regular file"; "" for BEAT_FAULT_NONE. */
const char *beat_fault_text(enum beat_fault fault);
const char *reason_name(enum reason reason); /* "none" for REASON_NONE */
/* The same as one sentence on the worker: "it is older than max_age"; "" for REASON_NONE. */
const char *reason_text(enum reason reason);
/* The same of one that leaves, or is to. */
const char *worker_reason_text(const struct worker *worker);
const char *rollout_state_name(enum rollout_state state);
const char *fleet_order_name(enum fleet_order order);       /* "running", "quiet", "stopped" */
const char *culprits_cause_name(enum culprits_cause cause); /* "memory", "oom" */
const char *cut_word_name(enum cut_word word);              /* "order", or the name of the setting */

/* One sentence on what it waits for; "" where it waits for nothing. Returns text. */
const char *worker_waits_for(const struct worker *worker, usec_t now, char *text, size_t size);
/* The word for it that programs go by; NULL for WAIT_NONE. */
const char *wait_code(enum wait wait);
const char *fleet_waits_for(const struct fleet *fleet, usec_t now, char *text, size_t size);
/* The same on its short lives. */
#define CRASH_TEXT_MAX (CRASH_LAST_MAX + 256)
const char *fleet_crash_text(const struct fleet *fleet, usec_t now, char *text, size_t size);

/* What to read of this worker now: looks (enum look) that are due at a regular look or, where fast, at one of
 * those in between. 0: nothing. */
unsigned worker_looks(const struct worker *worker, bool fast, usec_t now);
/* Something is in transition: look about 4 times a second. */
bool fleet_wants_fast_looks(const struct fleet *fleet, usec_t now);

/* Puts a copy of model in its place. Returns it, or NULL where memory is short. */
struct worker *fleet_add_worker(struct fleet *fleet, const struct worker *model);

/* The next free index after this one, whose search is at *at, 0 at first, of the workers. */
unsigned fleet_next_index(const struct fleet *fleet, unsigned index, size_t *at);
/* The lowest free index from 1. */
unsigned fleet_free_index(const struct fleet *fleet);
/* Is there a worker in this one, or one that is being forked for it? */
bool fleet_has_place(const struct fleet *fleet, unsigned index);

/* Forgets the workers that are gone; release is called with what the shell holds of each, where that is set.
 */
void fleet_reap(struct fleet *fleet, void (*release)(struct process *process));
