/* SPDX-License-Identifier: MIT */
/* Puts the count in force that a fleet's queues ask for: gathers what model/scaling.h is to know, out of what
 * was read and of the model, and holds what comes of it to memory and to the operator's word. */
#pragma once

#include "model/scaling.h"

struct fleet;
struct peer_share;
struct peers;
struct queues;

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
/* Is there such a name? list: the same, or NULL. */
bool autoscale_list_has(const char *list, const char *name);
/* How long a job may wait there; 0: it is not looked at. */
usec_t autoscale_target(const struct fleet *fleet, const char *queue);

/* Folds one reading in, and puts the count in force that follows from it, unless the operator has given one.
 * Returns whether that is another than before. */
bool autoscale_observe(struct fleet *fleet, struct autoscale_reading *reading, usec_t now);
/* What its host tells others of the group: of this fleet, and of those that scale with it or serve its
 * queues. idle: threads that run nothing, of processes of nobody on this host that serve them. ret->queues is
 * the fleet's. */
void autoscale_share(const struct fleet *fleet, double idle, struct peer_share *ret);
/* Nothing is remembered, and nothing in force. */
void autoscale_forget(struct fleet *fleet);

/* The workers that are wanted: those in force, or those that would be, were it not for the operator's count.
 */
unsigned autoscale_wanted(const struct fleet *fleet);
/* Why, as one sentence. Returns text. */
#define AUTOSCALE_TEXT_MAX (SCALING_TEXT_MAX + 160)
const char *autoscale_text(const struct fleet *fleet, char text[static AUTOSCALE_TEXT_MAX]);
/* What keeps its targets from being kept, the i-th such thing: one sentence, with what to do about it.
 * Returns false where there are no more. */
bool autoscale_trouble(const struct fleet *fleet, size_t i, usec_t now, char text[static AUTOSCALE_TEXT_MAX],
                       const char **ret_remedy);
/* The arithmetic, a line for each i from 0. Returns false where there are no more. Names of queues in it are
 * as they came from Redis, control characters replaced. */
bool autoscale_line(const struct fleet *fleet, size_t i, char text[static AUTOSCALE_TEXT_MAX]);
