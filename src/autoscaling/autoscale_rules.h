/* SPDX-License-Identifier: MIT */
/* How many workers a fleet needs for its queues, and why it misses its targets. The rule (scaling_*) knows
 * nothing of fleets: autoscale_*() collect its input from readings and the model, and limit the count that it
 * returns by memory and by the operator's count.
 *
 * The need in threads is the greatest of three:
 *
 * 1. Load: the threads that run jobs, plus the threads that the growth of the queues requires.
 * 2. Backlog: a thread that is free now starts 1 + left / service jobs in the time that is left for them.
 *    Then (waiting + running) / (1 + left / service) threads start all of them in time, whether jobs are
 *    short or take hours.
 * 3. Lateness: all threads run jobs, and the oldest job has waited for more than a third of its target. At
 *    the current pace, the other jobs will start too late. An unknown or wrong service time therefore
 *    misleads only for a while. */
#pragma once

#include "advice/doctor_rules.h"
#include "model/queues.h"

struct codec_reader;
struct codec_writer;
struct link;

/* Rates are averaged over this time. A service time derived from them needs half of it. */
#define SCALING_AVERAGE_USEC (40 * USEC_PER_SEC)
/* The history of the need is kept in this many parts. */
#define SCALING_SLOTS 16

/* Why the count is kept, however many jobs wait. */
enum scaling_hold {
        SCALING_FREE,
        SCALING_HELD_REDIS,      /* the queues could not be read */
        SCALING_HELD_HOSTS,      /* the workers of other hosts were not counted yet */
        SCALING_HELD_PAUSED,     /* no served queue has a target and is not paused */
        SCALING_HELD_ROLLOUT,    /* a restart is in progress */
        SCALING_HELD_HALTED,     /* a restart has halted */
        SCALING_HELD_HEARTBEATS, /* no worker has reported its number of threads yet */
        _SCALING_HOLD_MAX,
};

/* The situation at one moment. "All" below means this fleet plus the fleets of this host that scale by the
 * same queues. */
struct scaling_reading {
        const struct queues *queues; /* served by the fleet's workers, with their targets; NULL only with
                                      * SCALING_HELD_REDIS. A paused queue is ignored. While the age of an
                                      * oldest job is unknown, the count is not lowered. */
        enum scaling_hold hold; /* SCALING_HELD_PAUSED and _HEARTBEATS follow from the other members; callers
                                 * need not set them */

        double busy;         /* threads of all that run jobs */
        double threads;      /* threads of all that accept jobs */
        double share;        /* waiting jobs for this host, as a part of all; other hosts take the rest */
        double foreign_idle; /* idle threads of other consumers of these queues, whose count we cannot change
                              */
        double part;         /* the fleet's part of the need; 1 if no other fleet shares it */

        /* done: the total of jobs ever done in one Redis, including failed ones. done_busy: the threads
         * that ran these jobs, as far as known. */
        bool done_known;
        uint64_t done;
        double done_busy;
        usec_t service; /* how long a job takes by the framework's metrics; 0: unknown, `done` is used */
        usec_t boot;    /* how long a worker takes until it is active; 0: unknown */
        usec_t every;   /* interval of the readings; 0: too short to affect averages */

        unsigned count;       /* current number of workers */
        unsigned active;      /* active workers of the fleet */
        unsigned draining;    /* workers being stopped because there are too many */
        unsigned concurrency; /* threads of one worker; 0: unknown */
        bool unserved;        /* the queues that the next worker will serve are not known */
};

struct scaling_limits {
        unsigned min, max; /* workers: min <= max, max >= 1 */
        usec_t down_after; /* fewer workers must have sufficed for this long */
};

/* State kept between readings; starts zeroed. */
struct scaling {
        usec_t read_at; /* the last reading that was not held; 0: none, or held since */
        usec_t since;   /* start of the current series of readings */
        usec_t used_at; /* the last reading with a job that waits, runs, has run or is about to fall due */
        uint64_t waiting, done;
        double busy;                    /* averages */
        double growth;                  /* growth of the queues, in jobs per second */
        double recent_growth;           /* the same, over the last few readings */
        double busy_seconds, jobs_done; /* decayed sums; their ratio is the service time */
        double service;                 /* busy_seconds / jobs_done, in seconds; 0: not known yet */
        struct {
                usec_t begun_at; /* 0: unused */
                usec_t read_at;  /* the last reading in this slot */
                double need;
        } slots[SCALING_SLOTS];
        unsigned slot;
};

enum scaling_cause {
        SCALING_KEPT,    /* the count is right, or fewer workers have not sufficed for long enough */
        SCALING_HELD,    /* see scaling_hold */
        SCALING_LOAD,    /* more, for the load */
        SCALING_WAITING, /* more, for the backlog */
        SCALING_LATE,    /* more, because jobs are late */
        SCALING_ASLEEP,  /* no worker, since no job waits */
        SCALING_LEARN,   /* a worker is to show which queues the fleet serves */
        SCALING_WAKE,    /* the first worker, for jobs that wait */
        SCALING_DUE,     /* the first worker, for a job that falls due */
        SCALING_FEWER,   /* the count less one has sufficed for down_after */
        SCALING_LIMITS,  /* the count was outside of min and max */
        _SCALING_CAUSE_MAX,
};

/* The count and the figures behind it, in threads unless stated otherwise. */
struct scaling_verdict {
        unsigned wanted; /* workers */
        enum scaling_cause cause;
        enum scaling_hold hold;
        uint64_t waiting; /* jobs in all queues with a target */
        usec_t age; /* age of the oldest job in the queue that has used up the greatest part of its target */
        usec_t target;    /* the target of that queue; 0: no queue has a target */
        bool age_unknown; /* for at least one queue with a target */
        usec_t due_in;    /* until a scheduled job falls due; USEC_INFINITY: none known */
        usec_t left;      /* the time in which the waiting jobs of that queue are to start */
        usec_t service;   /* of a job; 0: unknown */
        double share;     /* see struct scaling_reading */
        unsigned threads; /* of the current workers */
        double busy, growing, backlog, late; /* the parts of the need of all */
        double need;                         /* of this fleet alone */
        double peak; /* greatest need within down_after; within a shorter time unless peak_is_complete */
        bool peak_is_complete;
        bool need_unknown;                    /* jobs wait whose service time is not known yet */
        bool bounded_by_boot, bounded_by_max; /* more workers were needed than `wanted` says */
};

/* With a minimum of 0, the last worker ends once no job has waited, run or been about to fall due for
 * down_after. From none, the first job that waits starts one, and so does a scheduled job that falls due
 * within the time of a boot. Of the holds that callers set, only SCALING_HELD_REDIS holds that. */

/* Returns the share of the waiting jobs that a host with `own` threads takes beside `foreign` threads of
 * other processes that serve the same queues. A host without threads counts with one worker. */
double scaling_share(double own, double foreign, unsigned concurrency);

/* Evaluates one reading and sets the wanted number of workers in *ret. now must not be earlier than at the
 * last call; about 10 s between readings suffice. A new series of readings starts after a gap and after
 * each held reading. A gap is longer than SCALING_AVERAGE_USEC and longer than two reading intervals. The
 * first reading of a series only sets the starting point, and down_after starts again. */
void scaling_observe(struct scaling *scaling, const struct scaling_limits *limits,
                     const struct scaling_reading *reading, usec_t now, struct scaling_verdict *ret);

/* Writes the reason for the wanted number as one sentence. Returns text. */
#define SCALING_TEXT_MAX 320
const char *scaling_text(const struct scaling_verdict *verdict, const struct scaling_limits *limits,
                         char text[static SCALING_TEXT_MAX]);

/* The source of a service time. */
enum autoscale_source {
        AUTOSCALE_BY_NOTHING,
        AUTOSCALE_BY_METRICS, /* the framework's own metrics, by class */
        AUTOSCALE_BY_COUNT,   /* the count of all jobs done, in a Redis that only this fleet serves */
        _AUTOSCALE_SOURCE_MAX,
};

/* The autoscaling state of one fleet. A fleet with a fixed count has only served, queues and queues_at. */
struct autoscale {
        usec_t read_at; /* time of the last verdict; 0: none */
        char *served;   /* owned: the queues that its workers serve, see queue_names_have(); NULL: unknown */
        uint64_t served_generation; /* the newest of the workers that served them */
        struct queues *queues; /* owned: the served queues as last read; NULL: the last reading failed, or
                                * none was made */
        usec_t queues_at;      /* when they were read */
        unsigned concurrency;  /* threads of one worker, as last reported; 0: never reported */
        usec_t boot;           /* boot time of the newest worker, until it was active; 0: unknown */
        struct scaling rule;
        struct scaling_verdict verdict; /* the last verdict */
        enum autoscale_source source;   /* of the verdict's service time */
        double busy, threads;           /* of this fleet plus the fleets that scale with it */
        double foreign_idle;
        unsigned foreign_consumers; /* foreign processes that serve these queues */
        double share;               /* the part of the waiting jobs that this host takes; 1: all; 0: no
                                     * reading yet */
        usec_t shared_at;           /* when the foreign processes were counted for it; 0: never */
        unsigned fleets;            /* of this sqmgr that scale by these queues, including this one */
        bool bounded_by_memory;
        bool queues_left_out; /* the workers serve more queues than QUEUES_NAMED_MAX allows */
};

/* True if any fleet that reads its queues at this link is one of these. */
bool autoscale_any(const struct world *world, const struct link *link,
                   bool (*is_one)(const struct fleet *fleet));
/* Returns the autoscaling state of the fleet; all zero if nothing is known. Never NULL. */
const struct autoscale *autoscale_of(const struct fleet *fleet);

/* Processes of one server that accept jobs there and are not workers of this host. */
struct foreign_count {
        bool known;          /* counted, and not too long ago */
        bool unread;         /* the first count has not ended yet */
        usec_t counted_at;   /* when the last count that did not fail ended */
        bool any;            /* some exist, for any queue */
        unsigned serving;    /* accept jobs from at least one of the fleet's queues */
        double idle;         /* idle threads of the processes in serving */
        double partial_idle; /* idle threads of those that serve only some of these queues */
        double threads;      /* threads of those that serve all of these queues */
};

/* The readings for one fleet. */
struct autoscale_reading {
        struct queues *queues; /* the queues that the fleet serves; ownership is taken; NULL: not readable */
        bool done_known;       /* `done` is valid: the total of jobs ever done in its Redis */
        uint64_t done;
        usec_t service; /* how long a job takes by the framework's metrics; 0: unknown */
        struct foreign_count foreign;
};

/* Sets the queues that the fleet's workers serve: each name ends with a NUL, the list with two. Takes
 * ownership of names. NULL: unknown. */
void autoscale_serves(struct fleet *fleet, char *names);
/* Returns the target of the queue: how long a job may wait there; 0: no target. */
usec_t autoscale_target(const struct fleet *fleet, const char *queue);

/* Keeps the queues that the fleet serves, as read now. Takes ownership of queues; NULL: not readable. */
void autoscale_keep(struct fleet *fleet, struct queues *queues, usec_t now);
/* Evaluates one reading and applies the resulting count, unless the operator has set one. Takes ownership
 * of reading->queues. Returns true if the applied count has changed. */
bool autoscale_observe(struct fleet *fleet, struct autoscale_reading *reading, usec_t now);
/* Writes, for a fleet that may sleep, what the next sqmgr needs to wake it: the queues that it serves, the
 * threads and the boot time of a worker. Otherwise writes nothing. */
void autoscale_pack(const struct fleet *fleet, struct codec_writer *writer);
/* Bytes that are wrong are ignored. */
void autoscale_unpack(struct fleet *fleet, struct codec_reader *reader);
/* Frees the fleet's state. Must be called before the fleet is freed. */
void autoscale_forget(struct fleet *fleet);

/* Returns the wanted number of workers: the current count, or the one that autoscaling would apply if the
 * operator had set none. */
unsigned autoscale_wanted(const struct fleet *fleet);
/* Writes the reason for the count as one sentence. Returns text. */
#define AUTOSCALE_TEXT_MAX (SCALING_TEXT_MAX + 160)
const char *autoscale_text(const struct fleet *fleet, char text[static AUTOSCALE_TEXT_MAX]);
/* Writes line i, from 0, of the calculation. Returns false if there are no more lines. Queue names are as
 * read from Redis, with control characters replaced. */
bool autoscale_line(const struct fleet *fleet, size_t i, char text[static AUTOSCALE_TEXT_MAX]);

/* Adds what keeps a fleet from its targets. A function of struct subsystem. */
void autoscale_problems(const void *self, const struct fleet *fleet, usec_t now, struct problems *problems);

/* Adds findings about jobs that wait in queues of this link, as read, that no worker serves. is_served: true
 * if a process outside our fleets serves the queue, or if that is unknown. */
void doctor_queues(struct problems *findings, const struct world *world, const struct link *link,
                   const struct queues *queues, bool (*is_served)(const char *queue, const void *userdata),
                   const void *userdata);
