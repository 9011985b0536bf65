/* SPDX-License-Identifier: MIT */
/* A fleet: its workers and templates, its orders, and what is known of it as a whole. Observations
 * (observe/), commands and reloads change it, planning (decide/plan.h) only reads it. All times are
 * CLOCK_MONOTONIC microseconds. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/rollout_state.h"
#include "model/template.h"
#include "model/worker.h"
#include "settings/settings.h"
#include <sys/types.h>

struct world;
struct link;       /* the shell's: a connection to Redis */
struct host_group; /* of rollout_hosts/ */

/* Generations that grew, kept to compare with. */
#define LEAK_PAST 2

struct leak_past {
        uint64_t generation; /* 0: there is none */
        uint64_t bytes_per_day;
};

/* Of a fleet. */
struct leak {
        bool grows;           /* more than half of its workers that can be judged do */
        uint64_t generation;  /* of which that is so */
        struct trend_fit fit; /* the median of those that grow */
        bool due;             /* there are new points */
        usec_t judged_at;
        struct leak_past past[LEAK_PAST]; /* the newest first; told of already */
};

enum fleet_order { ORDER_RUN, ORDER_QUIET, ORDER_STOP, _FLEET_ORDER_MAX };

#define ROLLOUT_ERROR_MAX 2304

#define CRASH_LAST_MAX 2048

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
        bool loop_reported;
};

enum culprits_cause {
        CULPRITS_MEMORY, /* it went over memory_threshold or memory_limit */
        CULPRITS_OOM,    /* it died while the kernel's OOM killer was at work */
        _CULPRITS_CAUSE_MAX,
};

#define CULPRITS_KEPT 5

/* What a worker was running as its memory ran out (observe/culprits.h). */
struct culprits {
        usec_t at; /* 0: nothing is here */
        enum culprits_cause cause;
        unsigned index; /* of the worker */
        pid_t pid;
        uint64_t memory_bytes; /* 0: not known */
        uint64_t leak_bytes;   /* 0: none was seen */
        usec_t leak_usec;      /* within so long */
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

struct autoscale;

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
        unsigned automatic_count;    /* as autoscaling chose it; 0: it chose none, which is the least */
        struct autoscale *autoscale; /* what autoscaling knows of it, owned there; NULL: nothing */
        struct rollout rollout;
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
        bool rescue_off_reported;
        bool uncaught_reported;   /* that a worker of it does not catch the quiet signal */
        usec_t shutdown_reported; /* that a worker of it takes so long to exit; 0: was not told */
        struct leak leak;
        struct culprits culprits[CULPRITS_KEPT]; /* the newest first */
        bool continued; /* crash is of an earlier sqmgr's, and Redis was not seen away since */

        enum wait waits_for; /* the planner's verdict on starts */
        enum wait wait_reported;
        struct fleet_totals totals;
        struct link *link;        /* the shell's connection to its Redis; NULL: none, or not yet */
        struct host_group *group; /* its part in rollouts over many hosts, not owned; NULL: none */
        bool name_taken;          /* in its rollout_group, another machine has the name of this host */
};

/* Loops over the workers of a fleet by index, those that are gone included; worker is declared. Workers may
 * be added in the loop (one of a lower index makes the present one come again), but not reaped. */
#define FLEET_FOREACH_WORKER(of, worker) FOREACH_POINTER(worker, (of)->workers, (of)->n_workers)

/* The same of its places for templates, those in use and those not (template_lives()). */
#define FLEET_FOREACH_TEMPLATE(of, template) FOREACH_ELEMENT(template, (of)->templates)

/* Its count follows its queues, unless the operator has given one. */
static inline bool fleet_scales(const struct fleet *fleet)
{
        const struct fleet_settings *settings = fleet->settings;

        return settings->active_process_max > 0 && settings->traits->reports_queues && !settings->removed;
}

/* The order in force: a fleet that is no longer configured stops. */
static inline enum fleet_order fleet_order(const struct fleet *fleet)
{
        return fleet->settings->removed ? ORDER_STOP : fleet->order;
}

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
