/* SPDX-License-Identifier: MIT */
/* A fleet: its workers and templates, its orders, and the facts about it as a whole. Observations (observe/),
 * commands and reloads change it; the planner (decide/plan.h) only reads it. All times are CLOCK_MONOTONIC
 * microseconds. */
#pragma once

#include "model/queues.h"
#include "model/worker.h"
#include "wire/quoted.h"

struct autoscale;
struct fleet_trial;
struct link;             /* defined by the caller: a connection to Redis */
struct template_process; /* defined by the caller: descriptors and event sources */
struct world;

enum template_state {
        TEMPLATE_NONE,    /* the slot is free */
        TEMPLATE_LOADING, /* loads the application */
        TEMPLATE_READY,   /* can be forked */
        TEMPLATE_ENDING,  /* was asked to end */
        _TEMPLATE_STATE_MAX,
};

/* The new template, and the old one for replacing crashed workers while the new one is tried. */
#define TEMPLATES_MAX 2

struct template
{
        struct fleet *fleet;
        enum template_state state;
        uint64_t generation;
        pid_t pid;          /* the process that was started; pid and start time identify it uniquely */
        uint64_t pid_start; /* field 22 of /proc/PID/stat */
        pid_t serving_pid;  /* the process that forks: pid or a descendant of it; 0: unknown yet, and the
                               template may turn out to be a worker */
        uint64_t serving_start;
        usec_t started_at;
        usec_t state_at;
        bool lost;             /* from a previous sqmgr, without a connection to it */
        usec_t boot_polled_at; /* last check whether it works as a worker; 0: never */
        usec_t killed_at;
        uint64_t memory_bytes; /* 0: not known */

        /* The requested fork; only one at a time. */
        struct {
                unsigned index; /* of its worker; 0: no fork */
                enum reason reason;
                usec_t asked_at;
                usec_t waited;  /* the part of the time since asked_at that counts, see fleet_fork_patience()
                                 */
                usec_t seen_at; /* waited covers the time until then */
        } fork;

        struct template_process *process; /* the caller's data; NULL: none yet */
};

#define PRELOAD_REFUSED_MAX 512

/* Facts about the templates of a fleet as a whole. */
struct preload {
        char refused[PRELOAD_REFUSED_MAX]; /* why workers of that generation boot separately; "": not refused
                                            */
        struct quoted quoted;              /* quoted by that sentence */
        uint64_t refused_generation;
        bool unrecorded;      /* the state could not be written for boot_timeout: no worker is forked, since
                                 the next sqmgr would not find it */
        unsigned failures;    /* failed loads and forks in a row */
        uint64_t lines_token; /* of a failed load whose log tail is still being read; 0: none */
        uint64_t template_bytes; /* last size of a ready template; 0: not known */
        usec_t slowest_fork;     /* so far, counted time only; 0: none */
        usec_t retry_at;         /* memory or processes were short: no fork before this; 0: no limit */
};

static inline bool template_is_alive(const struct template *template)
{
        return template->state != TEMPLATE_NONE;
}

/* Returns true if a fork was requested and has not connected yet. */
static inline bool template_forks(const struct template *template)
{
        return template->fork.index != 0;
}

/* Returns the process that forks if known, else the one that was started. */
static inline pid_t template_pid(const struct template *template)
{
        return template->serving_pid != 0 ? template->serving_pid : template->pid;
}

enum reader_state {
        READER_STATE_CONNECTING, /* unknown: during the first attempt */
        READER_STATE_CONNECTED,
        READER_STATE_DOWN,     /* reconnecting */
        READER_STATE_SLOW,     /* reconnecting: the server did not answer in time */
        READER_STATE_REFUSING, /* connected, but the server refuses writes: no worker can send heartbeats */
        _READER_STATE_MAX,
};

/* Returns true if the server can be asked. */
static inline bool reader_state_answers(enum reader_state state)
{
        return state == READER_STATE_CONNECTED || state == READER_STATE_REFUSING;
}

/* Returns what the server is: "slow". */
const char *reader_state_text(enum reader_state value);

/* Number of leaking generations kept for comparison. */
#define LEAK_PAST 2

struct leak_past {
        uint64_t generation; /* 0: none */
        uint64_t bytes_per_day;
};

/* The memory growth of a fleet's workers. */
struct leak {
        bool grows;           /* more than half of the workers that can be judged grow */
        uint64_t generation;  /* the generation judged */
        struct trend_fit fit; /* median of the growing workers */
        bool due;             /* new readings have arrived */
        usec_t judged_at;
        struct leak_past past[LEAK_PAST]; /* the newest first; already reported */
};

enum fleet_order { ORDER_RUN, ORDER_QUIET, ORDER_STOP, _FLEET_ORDER_MAX };

/* The start settings of a generation. */
struct launch {
        uint64_t generation;  /* 0: none */
        uint64_t launch_hash; /* of the settings */
};

/* Number of generations since the last restart whose settings are known. */
#define LAUNCHES_KEPT 4

#define ROLLOUT_ERROR_MAX 2304

#define CRASH_LAST_MAX 2048

/* The state of the last restart. */
enum rollout_state {
        ROLLOUT_NONE,
        ROLLOUT_RUNNING,
        ROLLOUT_DONE,
        ROLLOUT_HALTED,
        ROLLOUT_ABORTED,
        _ROLLOUT_STATE_MAX,
};

struct rollout {
        enum rollout_state state;
        unsigned total;  /* number of workers to replace */
        bool elsewhere;  /* the workers to replace had booted, but no heartbeat of them was found: new workers
                            need none either */
        uint64_t before; /* the generation that it replaces; 0: none. It ran before a restart that did not end
                            well, too */
        bool returned;   /* the fleet has returned to `before`, which is its generation now: workers of later
                            ones leave */
        unsigned limit;  /* the largest number of workers of the new generation while the restart runs; 0: no
                            limit. Set by the optional feature that judges these workers */
        usec_t kept_since; /* since when the template of `before` is kept after a complete restart; 0: it is
                              not */
        usec_t started_at;
        usec_t progress_at; /* the last progress; or, if later, the last time that something other than the
                               release blocked progress; after a halt, its time */
        unsigned failures;  /* failed new workers in a row */
        usec_t failed_at;   /* the last failure */
        char error[ROLLOUT_ERROR_MAX];
        struct quoted quoted; /* quoted by that error */
        uint64_t lines_token; /* the log tail in quoted is still being read; 0: no */
};

/* Number of failed starts in a row that count as a crash loop. */
#define FLEET_CRASH_LOOP 3

struct backoff {
        unsigned count;   /* failures in a row; 0 once reset */
        usec_t failed_at; /* the last failure */
        usec_t next_at;   /* no start before this */
        usec_t since;     /* the first failure of the row; 0: not known, as after a restart of sqmgr */
        unsigned freed; /* starts that next_at does not delay: one for each worker that exited meanwhile after
                           a long life */
        bool loop_reported;
};

enum culprits_cause {
        CULPRITS_MEMORY, /* exceeded memory_threshold or memory_limit */
        CULPRITS_OOM,    /* died while the kernel's OOM killer was active */
        _CULPRITS_CAUSE_MAX,
};

#define CULPRITS_KEPT 5

/* The jobs of a worker when its memory ran out (observe/culprits.h). */
struct culprits {
        usec_t at; /* 0: the entry is empty */
        enum culprits_cause cause;
        unsigned index; /* of the worker */
        pid_t pid;
        uint64_t memory_bytes; /* 0: not known */
        uint64_t growth_bytes; /* growth of that memory; 0: none was seen */
        usec_t growth_usec;    /* duration of that growth */
        struct job_classes classes;
};

/* The order or setting that cuts off jobs. */
enum cut_word {
        CUT_ORDER, /* by an operator: stop --force, or a second signal to end */
        CUT_DRAIN_TIMEOUT,
        CUT_STOP_TIMEOUT,
        CUT_SHUTDOWN_TIMEOUT,
        _CUT_WORD_MAX,
};

/* Number of job classes counted for each fleet. */
#define CULPRIT_CLASSES_MAX 32

/* Totals since sqmgr started. */
struct fleet_totals {
        uint64_t starts[_REASON_MAX]; /* by started_for */
        uint64_t ends[_REASON_MAX];   /* by the worker's reason */
        uint64_t events[_EVENT_MAX];
        uint64_t jobs_cut_off[_CUT_WORD_MAX]; /* jobs that ran in workers when these were asked to exit */
        struct {
                char name[JOB_CLASS_MAX]; /* "": the slot is free */
                uint64_t times[_CULPRITS_CAUSE_MAX];
        } culprits[CULPRIT_CLASSES_MAX];
        uint64_t other_culprits[_CULPRITS_CAUSE_MAX]; /* classes without a slot */
        uint64_t template_loads, template_failures, forks;
};

struct fleet {
        struct world *world;                   /* the world that contains it */
        const struct fleet_settings *settings; /* not owned */
        struct worker **workers;               /* owned, ordered by index */
        size_t n_workers;
        size_t workers_allocated;
        struct template templates[TEMPLATES_MAX];
        struct preload preload;

        uint64_t generation;                   /* from 1; workers of any other one are outdated */
        uint64_t newest_generation;            /* the highest number given so far */
        struct launch launches[LAUNCHES_KEPT]; /* model/rollout.h; [0] is of the last restart */
        enum fleet_order order;                /* see fleet_order() */
        usec_t order_at;                       /* when the order was given; 0: not to this sqmgr */
        struct orderer order_by;
        bool force;      /* stop --force */
        unsigned scale;  /* the operator's count; 0: none */
        usec_t scale_at; /* when that was given; 0: not to this sqmgr */
        struct orderer scale_by;
        unsigned automatic_count;    /* chosen by autoscaling; 0: the configured minimum applies */
        struct autoscale *autoscale; /* data of autoscaling, owned there; NULL: none */
        struct rollout rollout;
        struct fleet_trial *trial; /* data of trials, owned there; NULL: none */
        struct backoff crash;
        char crash_last[CRASH_LAST_MAX]; /* how the last worker died; "": none has */
        struct quoted crash_quoted;      /* quoted by crash_last */
        bool crash_last_apart; /* crash_last describes an exit that was no failed start and does not belong to
                                  the row */
        uint64_t lines_token;  /* the log tail in crash_quoted is still being read; 0: no */
        struct backoff churn;  /* replacements that exceeded the threshold themselves */
        struct backoff shortage; /* starts that failed in sqmgr itself, for lack of descriptors, memory or
                                    processes */
        int shortage_error;      /* errno of the last one */
        uint64_t random;         /* state of the jitter generator */
        bool held;               /* processes may be its workers: no start until that is known */
        bool unknown;            /* the state file has no record of its workers either */

        /* A worker with the fleet's start settings has shown its boot by a heartbeat, or by title or threads.
         * Only then is it evidence that another one does not. */
        bool boot_heard, boot_in_proc;
        enum reader_state server; /* READER_STATE_CONNECTED for a fleet without a server */
        bool redis_up;            /* server is READER_STATE_CONNECTED */
        usec_t redis_at;          /* when redis_up last changed; 0: it was never up */
        usec_t fresh_since;       /* since when at least one of its workers is fresh; 0: none is */
        /* Workers that were asked to exit, and have exited in the middle of jobs. */
        struct {
                size_t jobs;
                size_t released; /* of these jobs, those that Solid Queue runs again */
                usec_t after;    /* the shortest time until such an exit */
        } abandoned;
        bool rescue_off_reported;
        bool redis_reported;      /* a worker was reported whose environment names another Redis */
        bool shimless_reported;   /* a worker that runs without its shim was reported */
        uint64_t shim_refused;    /* a process of this generation did not start with its shim: the next ones
                                     start without it; 0: none */
        uint64_t shim_tried;      /* generation of the last failed start if it had the shim; 0: it had not */
        bool uncaught_reported;   /* a worker that does not catch the quiet signal was reported */
        usec_t shutdown_reported; /* exit time of a worker that was reported as longer than stop_timeout; 0:
                                     none */
        struct leak leak;
        struct culprits culprits[CULPRITS_KEPT]; /* the newest first */
        bool continued; /* crash is from an earlier sqmgr: the first connection to Redis does not reset it */

        enum wait waits_for;     /* the planner's verdict about starts */
        enum wait wait_reported; /* the wait that the last `places-held` event reported; WAIT_NONE once it has
                                    ended */
        usec_t wait_at;          /* when wait_reported changed */
        usec_t short_since;      /* since when fewer workers are active than should be; 0: they are not */
        struct fleet_totals totals;
        struct latency_work work; /* how fast its workers end jobs */
        struct link *link; /* the caller's connection to the server with its heartbeats; NULL: none yet */
        /* The same for its queues: link, or the connection to the Redis that is its broker. */
        struct link *queue_link;
};

/* Loops over the workers of a fleet by index, including those that are gone; declares worker. The body may
 * add workers (a lower index repeats the current one), but must not reap. */
#define FLEET_FOREACH_WORKER(of, worker) FOREACH_POINTER(worker, (of)->workers, (of)->n_workers)

/* Returns the number of these workers for which the condition on `worker` holds. */
#define FLEET_COUNT_WORKERS(of, worker, condition)                                                           \
        ({                                                                                                   \
                unsigned _n = 0;                                                                             \
                FLEET_FOREACH_WORKER(of, worker)                                                             \
                        _n += !!(condition);                                                                 \
                _n;                                                                                          \
        })

/* Loops over the template slots of a fleet, free ones included (template_is_alive()). */
#define FLEET_FOREACH_TEMPLATE(of, template) FOREACH_ELEMENT(template, (of)->templates)

/* Returns true if autoscaling computes the count that the queues need. */
static inline bool fleet_scales(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;

        return settings->active_process_max > 0 && fleet_settings_can_scale(settings) && !settings->removed;
}

/* Returns the current order. A fleet that is no longer configured stops. */
static inline enum fleet_order fleet_order(const struct fleet *fleet)
{
        return fleet->settings->removed ? ORDER_STOP : fleet->order;
}

/* Inserts a copy of model, ordered by index. Returns the new worker, or NULL if out of memory. */
struct worker *fleet_add_worker(struct fleet *fleet, const struct worker *model);

/* Returns the lowest free index above index. *at is the position in the list of workers: 0 for the first
 * call, then passed on from call to call with ascending indexes. */
unsigned fleet_next_index(const struct fleet *fleet, unsigned index, size_t *at);

/* Returns the lowest free index, from 1. */
unsigned fleet_free_index(const struct fleet *fleet);

/* Frees all workers in state WORKER_GONE; pointers to them become invalid. release: called with the handle of
 * each, which it frees; may be NULL. */
void fleet_reap(struct fleet *fleet, void (*release)(struct process *process));
