/* SPDX-License-Identifier: MIT */
/* Has the queues read of each fleet whose count follows them, and applies the count that follows. Nothing is
 * read where there is no such fleet. */
#pragma once

#include "daemon/run/links.h"
#include "frameworks/queue_reader.h"
#include "model/queues.h"

struct keeper;
struct sharing;

/* Functions of the subsystem. self is the struct links. poll() begins a reading of each Redis whose fleets
 * need one; observe() folds in what was answered since, and changes what the state holds if a count has
 * changed. */
int scaler_begin(struct keeper *keeper, void **ret);
void scaler_join(void *self);
void scaler_poll(void *self, usec_t now);
void scaler_observe(void *self, usec_t now);
void scaler_end(void *self);

/* What autoscaling keeps of one link; the link owns it. */
struct scaled_link {
        struct link_user user; /* the first member */
        struct link *link;     /* not owned */
        struct queue_reader *demand;
        struct foreign_consumers *foreign;
        struct sharing *sharing;        /* owned; NULL: no fleet shares a need with other hosts */
        struct queues_reading demanded; /* what was read last, until that is folded in; without its error */
        bool answered;
        bool error_told;
};

/* NULL: the count of no fleet of this link has followed its queues yet. */
struct scaled_link *scaled_link_of(const struct link *link);
