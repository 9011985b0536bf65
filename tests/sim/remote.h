/* SPDX-License-Identifier: MIT */
/* Workers out of reach: what sqmgr started is a client, such as `docker run`. They take signals from their
 * server, one with each heartbeat, and /proc does not show them. */
#pragma once

#include "base/macro.h"
#include <stdbool.h>

struct action;
struct fleet_sim;
struct process;
struct sim;
struct worker;

#define REMOTE_SIGNALS_MAX 16

/* Part of a process. */
struct remote_sim {
        bool is; /* out of reach */
        int signals[REMOTE_SIGNALS_MAX];
        unsigned n_signals;
        usec_t expire_at;
        usec_t repeated_at; /* when the stop signal was last sent again; 0: never */
};

/* Chooses whether the workers of this fleet are out of reach. */
bool remote_is_fleet(const struct sim *sim, unsigned fleet);
/* Call when the worker has a process that sends heartbeats. */
void remote_found(const struct sim *sim, struct process *process);
/* Sends a signal through the server. Returns false if it goes another way; *ret_error is 0 or an errno. */
bool remote_signal(struct sim *sim, const struct worker *worker, int signo, bool forced, int *ret_error);
/* The process has written a heartbeat. */
void remote_heartbeat(struct sim *sim, struct process *process);
/* Checks what is read of the worker. */
void remote_polled(struct sim *sim, const struct worker *worker, unsigned poll_items);
/* Checks a stop signal that is sent again. Returns false if it is the first. */
bool remote_repeats(struct sim *sim, const struct action *action, struct process *process);
