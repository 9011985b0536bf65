/* SPDX-License-Identifier: MIT */
/* Jobs that were cut off by the death of their worker: when that is so, and what is told of them. */
#pragma once

#include "model/fleet.h"

struct exit_status;

enum rescue_outcome {
        RESCUE_LEFT,     /* its entry in the work list is gone: done by somebody else, or expired */
        RESCUE_LOST,     /* it is only told of */
        RESCUE_REQUEUED, /* it is at the head of its queue again */
        RESCUE_PARKED,   /* it is in the dead set: it was put back often enough */
        RESCUE_PRIVATE,  /* the process had private queues, from which its jobs come back by other means */
        _RESCUE_OUTCOME_MAX,
};

/* How long a work list can be read after its process has died, in microseconds. */
#define RESCUE_USEC (60 * USEC_PER_SEC)

/* The process that beat is dead: did that cut its jobs off? worker as it was before that; exit: how that very
 * process ended, as far as it is known. */
bool rescue_is_due(const struct worker *worker, const struct exit_status *exit);

/* Was the work list of such a worker gone already when it died at that time, while jobs ran? */
bool rescue_is_late(const struct worker *dead, usec_t died_at);

/* What became of one job of a worker that is dead. times: it has been put back; how: the worker ended. */
void rescue_observe(struct fleet *fleet, const struct worker *dead, const struct job *job,
                    enum rescue_outcome outcome, unsigned times, const char *how);
/* Nothing could be learned of its jobs as long as they could be read: why, in words. */
void rescue_observe_failed(struct fleet *fleet, const struct worker *dead, const char *why);
/* So many of its jobs are told of in words that are not Sidekiq's. */
void rescue_observe_unreadable(struct fleet *fleet, const struct worker *dead, size_t n_jobs);
