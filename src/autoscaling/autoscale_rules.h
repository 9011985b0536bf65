/* SPDX-License-Identifier: MIT */
/* Puts the count in force that a fleet's queues ask for: gathers what autoscaling/scaling_rules.h is to know,
 * out of what was read and of the model, and holds what comes of it to memory and to the operator's word. */
#pragma once

#include "autoscaling/scaling_rules.h"

struct fleet;
struct link;
struct peer_share;
struct peers;
struct queues;
struct world;

/* How a service time was learnt. */
enum autoscale_source {
        AUTOSCALE_BY_NOTHING,
        AUTOSCALE_BY_METRICS, /* the framework's own, by class */
        AUTOSCALE_BY_COUNT,   /* of all jobs that were done, in a Redis that only this fleet serves */
        _AUTOSCALE_SOURCE_MAX,
};

/* Of one Redis, of all its fleets; those with a target come first, and no more are looked at. */
#define AUTOSCALE_QUEUES_MAX 64

/* How the count of a fleet follows its queues. */
struct autoscale {
        usec_t read_at; /* the last verdict; 0: none */
        char *served;   /* owned: the queues from which its workers take, see queue_names_have(); NULL: not
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

/* Whether the count of any fleet follows the queues at this link. */
bool autoscale_reads(const struct world *world, const struct link *link);
/* What is known of this fleet; all zero where that is nothing. Never NULL. */
const struct autoscale *autoscale_of(const struct fleet *fleet);
/* Makes room for what is to be known of a fleet whose count follows its queues. Returns 0 or -ENOMEM. */
int autoscale_attach(struct fleet *fleet);

/* What was read for one fleet. */
struct autoscale_reading {
        struct queues *queues; /* those from which it takes, taken over; NULL: they could not be read */
        bool done_known;       /* all jobs of its Redis that were done, ever */
        uint64_t done;
        usec_t service; /* what a job takes, as its framework tells; 0: it does not */

        bool others_known;  /* the processes of nobody here were counted */
        bool others_any;    /* there is any in its Redis, whatever it serves */
        unsigned others;    /* those that serve these queues */
        double others_idle; /* their threads that run nothing */

        bool peers_unread;         /* what other hosts of its group tell is yet to be read */
        const struct peers *peers; /* it, sorted; NULL: there is nothing to be read, or it cannot be */
};

/* From which queues its workers take: names, each ended by a NUL, the last by two; taken over. NULL: that is
 * not known. */
void autoscale_serves(struct fleet *fleet, char *names);
/* How long a job may wait there; 0: it is not looked at. */
usec_t autoscale_target(const struct fleet *fleet, const char *queue);

/* Folds one reading in, and puts the count in force that follows from it, unless the operator has given one.
 * Returns whether that is another than before. */
bool autoscale_observe(struct fleet *fleet, struct autoscale_reading *reading, usec_t now);
/* What its host tells others of the group: of this fleet, and of those that scale with it or serve its
 * queues. idle: threads that run nothing, of processes of nobody on this host that serve them. ret->queues is
 * the fleet's. */
void autoscale_share(const struct fleet *fleet, double idle, struct peer_share *ret);
/* Frees what is known of it: also before the fleet itself is freed. */
void autoscale_forget(struct fleet *fleet);

/* The workers that are wanted: those in force, or those that would be, were it not for the operator's count.
 */
unsigned autoscale_wanted(const struct fleet *fleet);
/* Why, as one sentence. Returns text. */
#define AUTOSCALE_TEXT_MAX (SCALING_TEXT_MAX + 160)
const char *autoscale_text(const struct fleet *fleet, char text[static AUTOSCALE_TEXT_MAX]);
/* The arithmetic, a line for each i from 0. Returns false where there are no more. Names of queues in it are
 * as they came from Redis, control characters replaced. */
bool autoscale_line(const struct fleet *fleet, size_t i, char text[static AUTOSCALE_TEXT_MAX]);
