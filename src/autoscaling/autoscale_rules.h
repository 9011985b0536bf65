/* SPDX-License-Identifier: MIT */
/* Applies the worker count that a fleet's queues need. Collects the input of autoscaling/scaling_rules.h
 * from readings and the model, and limits the result by memory and by the operator's count. */
#pragma once

#include "autoscaling/scaling_rules.h"

struct codec_reader;
struct codec_writer;
struct fleet;
struct link;
struct queues;
struct world;

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

/* True if any fleet at this link is autoscaled. */
bool autoscale_reads(const struct world *world, const struct link *link);
/* Returns the autoscaling state of the fleet; all zero if nothing is known. Never NULL. */
const struct autoscale *autoscale_of(const struct fleet *fleet);
/* Allocates the state of an autoscaled fleet unless it exists. Returns 0 or -ENOMEM. */
int autoscale_attach(struct fleet *fleet);

/* The readings for one fleet. */
struct autoscale_reading {
        struct queues *queues; /* the queues that the fleet serves; ownership is taken; NULL: not readable */
        bool done_known;       /* `done` is valid: the total of jobs ever done in its Redis */
        uint64_t done;
        usec_t service; /* how long a job takes by the framework's metrics; 0: unknown */

        bool foreign_unread;         /* the first count of foreign processes has not ended yet */
        bool foreign_known;          /* foreign processes were counted */
        usec_t foreign_counted_at;   /* when the count ended */
        bool foreign_any;            /* the fleet's Redis has a foreign process, for any queue */
        unsigned foreign_consumers;  /* foreign processes that serve at least one of these queues */
        double foreign_idle;         /* idle threads of these foreign processes */
        double foreign_partial_idle; /* idle threads of those that serve only some of these queues */
        double foreign_threads;      /* threads of those that serve all of these queues */
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
