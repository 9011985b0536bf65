/* SPDX-License-Identifier: MIT */
/* How many workers a fleet needs for its queues: readings in, a count and the arithmetic behind it out. Of
 * fleets it knows nothing: whoever asks it reads, and puts the count in force.
 *
 * Threads are needed for the greatest of three.
 *
 * The load: the threads that run jobs, and those that the growth of the queues asks for besides.
 *
 * What waits: a thread that is free at once begins 1 + left / service jobs in the time that is left for them,
 * so (waiting + running) / (1 + left / service) threads begin all in time, be a job short or of hours.
 *
 * Being late: all threads run jobs, the oldest job has waited for more than a third of its target, and at
 * this pace the others will not begin in theirs. So a service time that is not known, or is that of other
 * jobs, misleads for a while and never for good.
 */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

/* Over so long rates are averaged, and a service time by them needs half of it. */
#define SCALING_AVERAGE_USEC (40 * USEC_PER_SEC)
/* The greatest needs of a while, in so many parts of it. */
#define SCALING_SLOTS 16

/* One of the queues from which the fleet's workers take. */
struct scaling_queue {
        uint64_t size;
        usec_t age;    /* its oldest job waits for so long; 0 where it is empty */
        usec_t target; /* no job is to wait for longer; 0: it is not looked at */
        bool paused;   /* nobody may take from it: left out, too */
};

/* Why the count is kept, whatever waits. */
enum scaling_hold {
        SCALING_FREE,
        SCALING_HELD_REDIS,      /* the queues could not be read */
        SCALING_HELD_HOSTS,      /* nor what other hosts take of the need */
        SCALING_HELD_PAUSED,     /* nothing may be taken from any queue that is looked at */
        SCALING_HELD_ROLLOUT,    /* a restart runs */
        SCALING_HELD_HALTED,     /* or has halted */
        SCALING_HELD_HEARTBEATS, /* no worker has told yet how many threads it has */
        _SCALING_HOLD_MAX,
};

/* What there is at one moment. `All` are the fleet and those whose counts follow the same need: other fleets
 * and hosts that scale by the same queues. */
struct scaling_reading {
        const struct scaling_queue *queues;
        size_t n_queues;
        enum scaling_hold
                hold; /* SCALING_HELD_PAUSED and _HEARTBEATS follow from the rest and need not be told */

        double busy;        /* threads of all that run jobs */
        double threads;     /* of all that take jobs */
        double others_idle; /* of others, whose count is not ours to change, that serve these queues and run
                               nothing */
        double part;        /* of the need is the fleet's: 1 where it is alone */

        /* All jobs that were done, ever, those that failed included, and the threads that ran jobs of which
         * it counts: of one Redis, as far as they are known. */
        bool done_known;
        uint64_t done;
        double done_busy;
        usec_t service; /* how long a job takes, as its framework tells; 0: it does not, and `done` is used */
        usec_t boot;    /* how long a worker takes until it takes jobs; 0: not known */
        usec_t every;   /* a reading is due so often; 0: more often than averages notice */

        unsigned count;       /* in force */
        unsigned active;      /* workers of the fleet that take jobs */
        unsigned draining;    /* that leave since they are too many */
        unsigned concurrency; /* threads of one worker; 0: not known */
};

struct scaling_limits {
        unsigned min, max; /* workers: 1 <= min <= max */
        usec_t down_after; /* fewer must have been enough for so long */
};

/* What is remembered from one reading to the next; zeroes at first. */
struct scaling {
        usec_t read_at; /* the last reading that was not held; 0: none, or held since */
        usec_t since;   /* readings follow upon each other since then */
        uint64_t waiting, done;
        double busy;                    /* averages */
        double leak;                    /* jobs in a second */
        double scan_throttle;           /* the same, of the last few readings */
        double busy_seconds, jobs_done; /* decayed sums, whose ratio is the service time */
        double service;                 /* by these, in seconds; 0: not known yet */
        struct {
                usec_t begun_at; /* 0: not used */
                usec_t read_at;  /* the last reading in it */
                double need;
        } slots[SCALING_SLOTS];
        unsigned slot;
};

enum scaling_cause {
        SCALING_KEPT,    /* the count is right, or fewer were not enough for long enough */
        SCALING_HELD,    /* see scaling_hold */
        SCALING_LOAD,    /* more, for the load */
        SCALING_WAITING, /* for what waits */
        SCALING_LATE,    /* for the age alone */
        SCALING_FEWER,   /* one less was enough for down_after */
        SCALING_LIMITS,  /* it was outside of min and max */
        _SCALING_CAUSE_MAX,
};

/* The count and the figures that made it, in threads where nothing else is said. */
struct scaling_verdict {
        unsigned wanted; /* workers */
        enum scaling_cause cause;
        enum scaling_hold hold;
        uint64_t waiting; /* jobs in the queues that are looked at */
        usec_t age;       /* of that queue where the greatest part of its target has passed */
        usec_t target;    /* its target; 0: there is no queue with one */
        usec_t left;      /* for what waits in it */
        usec_t service;   /* of a job; 0: not known */
        unsigned threads; /* of the count in force */
        double busy, growing, backlog, late; /* the parts of the need of all */
        double need;                         /* the fleet's own */
        double peak; /* the greatest of down_after; of less, where peak_whole does not hold */
        bool peak_whole;
        bool bounded_by_boot, bounded_by_max; /* more were needed than wanted says */
};

/* Folds one reading in and says how many workers are wanted. Readings must not be older than the last; some
 * 10 s between two are enough. After a gap of more than SCALING_AVERAGE_USEC, or of two readings where these
 * are rarer, and after each that is held, the first is but a mark: nothing is concluded from what happened
 * unseen, and down_after begins anew. */
void scaling_observe(struct scaling *scaling, const struct scaling_limits *limits,
                     const struct scaling_reading *reading, usec_t now, struct scaling_verdict *ret);

/* Why that many are wanted, as one sentence. Returns text. */
#define SCALING_TEXT_MAX 320
const char *scaling_text(const struct scaling_verdict *verdict, const struct scaling_limits *limits,
                         char text[static SCALING_TEXT_MAX]);
