/* SPDX-License-Identifier: MIT */
/* A template: a process with the application loaded, from which workers are forked (model/preload.h). */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "model/event.h"

struct fleet;

struct template_process; /* the shell's: descriptors and event sources */

enum template_state {
        TEMPLATE_NONE,    /* this place is free */
        TEMPLATE_LOADING, /* it loads the application */
        TEMPLATE_READY,   /* it can be forked */
        TEMPLATE_ENDING,  /* it was told to end */
        _TEMPLATE_STATE_MAX,
};

/* The old one, from which workers come back while a new one is tried, and that. */
#define TEMPLATES_MAX 2

struct template
{
        struct fleet *fleet;
        enum template_state state;
        uint64_t generation;
        pid_t pid;          /* the process started; pid and start time name it for good */
        uint64_t pid_start; /* field 22 of /proc/PID/stat */
        pid_t serving_pid;  /* the one that forks: the same, or a descendant; 0: it has not come so far, and
                             * could turn out to be a worker */
        uint64_t serving_start;
        usec_t started_at;
        usec_t state_at;
        bool lost;             /* an earlier sqmgr's, with which nobody speaks */
        usec_t boot_polled_at; /* when it was last looked whether it works; 0: never */
        usec_t killed_at;
        uint64_t memory_bytes; /* 0: not known */

        /* The fork that was asked for, one at a time. */
        struct {
                unsigned index; /* of its worker; 0: there is none */
                enum reason reason;
                usec_t asked_at;
                usec_t waited;  /* of the time since, as far as it counts */
                usec_t seen_at; /* up to when that was counted */
        } fork;

        struct template_process *process; /* what the shell holds of it; NULL: nothing, or not yet */
};

#define PRELOAD_REFUSED_MAX 512

/* What is known of a fleet's templates as such. */
struct preload {
        char refused[PRELOAD_REFUSED_MAX]; /* why workers of this generation boot separately; "": they need
                                              not */
        uint64_t refused_generation;
        unsigned failures;       /* loads and forks that failed in a row */
        uint64_t lines_token;    /* of a load that failed, whose last lines are still being read; 0: there is
                                    none */
        uint64_t template_bytes; /* what one that was ready held at last; 0: not known */
        usec_t slowest_fork;     /* so far, in time that counts; 0: there was none */
        usec_t retry_at;         /* memory or processes were short: no fork before this; 0: they are not */
};

static inline bool template_lives(const struct template *template)
{
        return template->state != TEMPLATE_NONE;
}

/* A fork of it was asked for, and has not come forward yet. */
static inline bool template_forks(const struct template *template)
{
        return template->fork.index != 0;
}

/* The process that forks, where that is known, else the one that was started. */
static inline pid_t template_pid(const struct template *template)
{
        return template->serving_pid != 0 ? template->serving_pid : template->pid;
}
