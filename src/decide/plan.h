/* SPDX-License-Identifier: MIT */
/* Decides what to start, quiet, stop and kill. No I/O, no clock: the model and the time in, actions out. */
#pragma once

#include "base/usec.h"
#include "model/event.h"

struct fleet;
struct template;
struct worker;
struct world;

enum action_kind {
        ACTION_START, /* a worker of `index`, in the fleet's generation, or forked from `template` */
        ACTION_GO,    /* one that was forked: it may be what it is, once that is in the state */
        ACTION_QUIET,
        ACTION_STOP,
        ACTION_KILL,
        ACTION_LOAD,          /* a template of the fleet's generation */
        ACTION_TEMPLATE_END,  /* `template` */
        ACTION_TEMPLATE_KILL, /* one that was told to end, and did not */
};

struct action {
        enum action_kind kind;
        struct fleet *fleet;
        struct worker *worker;     /* NULL for a start, and what is done with templates */
        struct template *template; /* that is forked or ended; NULL: none is */
        unsigned index;
        enum reason reason; /* for ACTION_START: why an extra one, or REASON_NONE */
};

/* What an action sends to its worker. */
enum action_signal {
        ACTION_SIGNAL_NONE, /* it begins something, or is of a template; or the worker has its stop signal,
                             * which is never sent twice */
        ACTION_SIGNAL_QUIET,
        ACTION_SIGNAL_STOP,
        ACTION_SIGNAL_KILL,
};
enum action_signal action_signal(const struct action *action);

struct plan {
        struct action *actions; /* owned */
        size_t n_actions;
        size_t allocated;
        struct worker **scratch; /* owned; for sorting */
        size_t scratch_allocated;
        uint64_t reserved_bytes; /* where reserved_known: see model/memory.h */
        bool reserved_known;
        usec_t wake_at; /* plan again then at the latest; USEC_INFINITY: nothing is due by time alone */
};

/* Plans for all fleets into plan, reused from call to call. Changes of the model: only each worker's and
 * fleet's verdict (wanted_out, waits_for). Returns 0 or -ENOMEM; then plan holds the actions that found room.
 */
int plan_make(struct plan *plan, struct world *world, usec_t now);
/* Is there one of this kind among its actions? */
bool plan_has(const struct plan *plan, enum action_kind kind);
void plan_free(struct plan *plan);
