/* SPDX-License-Identifier: MIT */
/* Decides what to start, quiet, stop and kill. No I/O, no clock: the caller passes the model and the time,
 * and receives actions. */
#pragma once

#include "model/event.h"

struct world;
struct template;
struct worker;
enum action_kind {
        ACTION_START, /* a worker at `index`, in the fleet's generation, or forked from `template` */
        ACTION_GO,    /* let a forked worker run; only after it is recorded */
        ACTION_QUIET,
        ACTION_STOP,
        ACTION_KILL,
        ACTION_LOAD,          /* start a template of the fleet's generation */
        ACTION_TEMPLATE_END,  /* ask `template` to end */
        ACTION_TEMPLATE_KILL, /* kill a template that was asked to end and did not */
};

struct action {
        enum action_kind kind;
        struct fleet *fleet;
        struct worker *worker;     /* NULL for starts and for templates */
        struct template *template; /* the template to fork or to end; NULL: none */
        unsigned index;
        enum reason reason; /* why the worker is to leave; for ACTION_START why an extra worker is started, or
                               REASON_NONE */
};

struct plan {
        struct action *actions; /* owned */
        size_t n_actions;
        size_t allocated;
        struct worker **scratch; /* owned; scratch space for sorting */
        size_t scratch_allocated;
        uint64_t reserved_bytes; /* by this plan; if reserved_known, by all others, too (model/memory.h) */
        bool reserved_known;
        usec_t wake_at; /* plan again at this time at the latest; USEC_INFINITY: no deadline is pending */
};

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
