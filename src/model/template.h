/* SPDX-License-Identifier: MIT */
/* A template: a process with the loaded application, from which workers are forked (model/preload.h). */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/event.h"
#include "wire/quoted.h"

struct fleet;

struct template_process; /* defined by the caller: descriptors and event sources */

enum template_state {
        TEMPLATE_NONE,    /* the slot is free */
        TEMPLATE_LOADING, /* loads the application */
        TEMPLATE_READY,   /* can be forked */
        TEMPLATE_ENDING,  /* was asked to end */
        _TEMPLATE_STATE_MAX,
};

/* The new template, and the old one for replacing crashed workers while the new one is tried. */
#define TEMPLATES_MAX 2

struct template
{
        struct fleet *fleet;
        enum template_state state;
        uint64_t generation;
        pid_t pid;          /* the process that was started; pid and start time identify it uniquely */
        uint64_t pid_start; /* field 22 of /proc/PID/stat */
        pid_t serving_pid;  /* the process that forks: pid or a descendant of it; 0: unknown yet, and the
                               template may turn out to be a worker */
        uint64_t serving_start;
        usec_t started_at;
        usec_t state_at;
        bool lost;             /* from a previous sqmgr, without a connection to it */
        usec_t boot_polled_at; /* last check whether it works as a worker; 0: never */
        usec_t killed_at;
        uint64_t memory_bytes; /* 0: not known */

        /* The requested fork; only one at a time. */
        struct {
                unsigned index; /* of its worker; 0: no fork */
                enum reason reason;
                usec_t asked_at;
                usec_t waited;  /* the part of the time since asked_at that counts, see fleet_fork_patience()
                                 */
                usec_t seen_at; /* waited covers the time until then */
        } fork;

        struct template_process *process; /* the caller's data; NULL: none yet */
};

#define PRELOAD_REFUSED_MAX 512

/* Facts about the templates of a fleet as a whole. */
struct preload {
        char refused[PRELOAD_REFUSED_MAX]; /* why workers of that generation boot separately; "": not refused
                                            */
        struct quoted quoted;              /* quoted by that sentence */
        uint64_t refused_generation;
        bool unrecorded;      /* the state could not be written for boot_timeout: no worker is forked, since
                                 the next sqmgr would not find it */
        unsigned failures;    /* failed loads and forks in a row */
        uint64_t lines_token; /* of a failed load whose log tail is still being read; 0: none */
        uint64_t template_bytes; /* last size of a ready template; 0: not known */
        usec_t slowest_fork;     /* so far, counted time only; 0: none */
        usec_t retry_at;         /* memory or processes were short: no fork before this; 0: no limit */
};

static inline bool template_is_alive(const struct template *template)
{
        return template->state != TEMPLATE_NONE;
}

/* Returns true if a fork was requested and has not connected yet. */
static inline bool template_forks(const struct template *template)
{
        return template->fork.index != 0;
}

/* Returns the process that forks if known, else the one that was started. */
static inline pid_t template_pid(const struct template *template)
{
        return template->serving_pid != 0 ? template->serving_pid : template->pid;
}
