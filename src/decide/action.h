/* SPDX-License-Identifier: MIT */
/* The parts of a plan. */
#pragma once

#include "base/macro.h"
#include "model/event.h"

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
        uint64_t reserved_bytes; /* valid if reserved_known; see model/memory.h */
        bool reserved_known;
        usec_t wake_at; /* plan again at this time at the latest; USEC_INFINITY: no deadline is pending */
};
