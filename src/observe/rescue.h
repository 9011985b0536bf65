/* SPDX-License-Identifier: MIT */
/* Jobs cut off by the death of their worker: detection and report. */
#pragma once

#include "model/fleet.h"

struct exit_status;

enum rescue_outcome {
        RESCUE_LEFT,     /* the entry in the work list is gone: completed by another process, or expired; not
                            reported */
        RESCUE_LOST,     /* only reported */
        RESCUE_REQUEUED, /* back at the head of its queue */
        RESCUE_PARKED,   /* in the dead set: it was put back too often */
        RESCUE_PRIVATE,  /* the process had private queues, whose jobs return by other means */
        _RESCUE_OUTCOME_MAX,
};

/* How long a work list in Redis remains readable after its process has died, in microseconds; and how long
 * one that stays is tried while the server answers, and in total. */
#define RESCUE_USEC      (60 * USEC_PER_SEC)
#define RESCUE_STAY_USEC USEC_PER_DAY

/* The number of times that a job is re-enqueued after the death of its worker. A job that was running at each
 * of these deaths probably causes them. */
#define RESCUE_LIMIT 3U

/* Returns true if the death of the process that sent heartbeats cut off its jobs. worker: as it was before.
 * exit: how that process ended, as far as known. */
bool rescue_is_due(const struct worker *worker, const struct exit_status *exit);

/* Returns true while an attempt to put back the jobs of a worker that died at died_at may be repeated. */
bool rescue_is_repeated(const struct fleet *fleet, usec_t died_at, usec_t now);

/* Returns true if jobs were running and the work list had already expired when the worker died. */
bool rescue_is_late(const struct worker *dead, usec_t died_at);

/* Reports the outcome of one job of a dead worker. times: how often the job has been put back. how: how the
 * worker ended. */
void rescue_observe(const struct worker *dead, const struct job *job, enum rescue_outcome outcome,
                    unsigned times, const char *how);
/* Reports that the worker, which was asked to exit and was not killed, has exited in the middle of jobs.
 * n_left: of how many it still has the claims; they count if nothing else can have ended it: exit is known.
 * n_released: how many it has given back, as only a worker that exits by itself does. */
void rescue_observe_abandoned(const struct worker *dead, const struct exit_status *exit, size_t n_left,
                              size_t n_released, usec_t died_at);
/* The jobs could not be read in time. */
void rescue_observe_failed(const struct worker *dead, const struct error_report *why);
/* Reports the entries of the worker's work list that are unknown, if any: those that do not have Sidekiq's
 * format, and those that are too large to be read. They are not put back. */
void rescue_observe_unknown(const struct worker *dead, const struct job_list *jobs);

/* All zeroes but `since` at the beginning. */
struct leftover {
        usec_t since;          /* when its client ended */
        uint64_t written_usec; /* of the last heartbeat; 0: none was read yet */
        usec_t changed_at;     /* when a heartbeat was last seen to change; 0: never */
        unsigned idle_count;   /* changed heartbeats in a row that say quiet, 0 busy and an empty work list */
        unsigned unheeded;     /* changed heartbeats since the last signal that do not show that it arrived */
        bool signaled, stopped; /* any signal was sent; the stop signal was sent */
};

enum leftover_step {
        LEFTOVER_WAIT,
        LEFTOVER_QUIET, /* send the quiet signal */
        LEFTOVER_STOP,  /* send the stop signal */
        LEFTOVER_ENDED, /* sends heartbeats no more */
};

/* A reading of its heartbeat. heartbeat: NULL: there is none. The work list counts as empty only if known. A
 * heartbeat outlasts its process by a minute, so only changes show life; what the process left in its work
 * list can still be read when LEFTOVER_ENDED is returned. */
enum leftover_step leftover_observe(struct leftover *leftover, const struct fleet *fleet,
                                    const struct heartbeat *heartbeat, usec_t now);
