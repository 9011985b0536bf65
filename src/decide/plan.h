/* SPDX-License-Identifier: MIT */
/* Decides what to start, quiet, stop and kill. No I/O, no clock: the caller passes the model and the time,
 * and receives actions. */
#pragma once

#include "base/macro.h"
#include "decide/action.h"

struct world;

/* The signal that an action sends to its worker. */
enum action_signal {
        ACTION_SIGNAL_NONE, /* the action starts something or concerns a template, or the worker already has
                               its stop signal, which is never sent twice */
        ACTION_SIGNAL_QUIET,
        ACTION_SIGNAL_STOP,
        ACTION_SIGNAL_KILL,
};
enum action_signal action_signal(const struct action *action);

/* Plans for all fleets into plan, which is reused from call to call. Changes only the verdicts in the model
 * (retire_reason, waits_for, short_since). Returns 0 or -ENOMEM; after -ENOMEM the plan holds the actions
 * that fit. */
int plan_make(struct plan *plan, struct world *world, usec_t now);
/* Returns true if the plan has an action of this kind. */
bool plan_has(const struct plan *plan, enum action_kind kind);
void plan_free(struct plan *plan);
