/* SPDX-License-Identifier: MIT */
/* Adopts the workers of a previous sqmgr: decides which live processes are ours, which worker each is, and
 * when that is certain. The caller reports what it sees of processes, and attaches to those that are judged
 * ours. Until a fleet is certain, nothing is started that could duplicate a worker. No I/O, no clock, no
 * descriptors; times are monotonic microseconds. */
#pragma once

#include "settings/traits.h"
#include <sys/types.h>

struct fleet;
struct ledger_start;
struct state_fleet;
struct worker;
struct world;

/* The visible facts of one process in one search. Pid and start time identify a process uniquely. The strings
 * are borrowed and untrusted; NULL: absent. */
struct sighting {
        pid_t pid, parent, group, session;
        uint64_t start;
        const char *instance, *worker, *generation; /* environment markers that sqmgr gives to its workers */
        usec_t started_at; /* start time of the worker, from its markers; 0: not known */
        bool in_service;   /* in the control group of our own service, which contains only workers */
        bool runs_one_job; /* runs a job for a worker and is no worker itself */
        const struct traits *booted_as; /* the framework whose worker it appears to be; NULL: none */
};

/* A process that claims, or appears, to be one of our workers. */
struct claimant {
        pid_t pid, parent, group;
        uint64_t start;
        struct fleet *fleet;
        unsigned index;      /* 0: not known; fleet is then a candidate only */
        uint64_t generation; /* 0: not known */
        usec_t started_at;   /* 0: not known */
        bool booted;         /* the process or a descendant has booted */
        bool runs_one_job;   /* runs one job, and is no worker itself */
        bool wanted;         /* to be adopted, and not returned by adoption_next() yet */
        bool extra;          /* another process has its place: gets an extra index */
};

/* A configured fleet whose workers are searched for. */
struct sought {
        struct fleet *fleet;
        bool lost;      /* the state file says nothing about its workers */
        usec_t until;   /* adoption.unread is awaited no longer than this */
        bool done;      /* the search for its workers has ended */
        unsigned found; /* number of adopted workers that a search found; see adoption_full() */
        bool full;      /* the search found more than may be adopted */
        bool full_reported;
};

struct adoption {
        struct world *world;  /* not owned */
        const char *instance; /* not owned; the instance marker of our workers */
        struct sought *sought;
        size_t n_sought;
        bool unsure; /* workers may exist that neither state nor ledger names; set by the caller if the ledger
                        is lost or incomplete */
        bool unread; /* a process could not be read yet */
        struct ended {
                struct fleet *fleet;
                unsigned index;
                uint64_t generation;
                usec_t spawned_at;
                bool quieted, succeeded; /* quieted by an operator's order; asked to leave, so that a process
                                            left behind succeeds the worker */
        } * ended; /* owned; known workers whose processes have ended; other processes of their commands may
                      live */
        size_t n_ended;
        struct taken {
                pid_t pid;
                uint64_t start;
        } * taken; /* all processes adopted by searches: a released one is not adopted again */
        size_t n_taken;

        /* Valid during one search. */
        struct claimant *claimants;
        size_t n_claimants;
        size_t allocated;

        unsigned adopted, gone, found; /* for the report: known workers that live, known workers that are
                                          gone, and workers found by searches */
};

/* Starts an adoption: the workers of all fleets of the world are searched for. instance and world are
 * borrowed and must outlive it. Returns 0 or -ENOMEM. */
int adoption_new(struct world *world, const char *instance, usec_t now, struct adoption **ret);
/* Accepts NULL; returns NULL. The adopted workers stay in the world. */
struct adoption *adoption_free(struct adoption *adoption);

/* The state file has a record of this fleet: the fleet continues from there. */
void adoption_continue_fleet(struct adoption *adoption, struct fleet *fleet, const struct state_fleet *saved,
                             usec_t now);
/* Describes a worker that the ledger knows and the state does not. Returns false if it cannot be adopted: its
 * fleet is not configured any more (*ret_fleet is NULL), or the state names it as a template, which will show
 * again that it is a worker. */
bool adoption_know_start(struct adoption *adoption, const struct ledger_start *start,
                         struct fleet **ret_fleet, struct worker *ret_known);
/* Adds a worker of the state file or of the ledger. Parameters and result as for observe_adopted(); NULL if
 * out of memory. */
struct worker *adoption_take_known(struct adoption *adoption, struct fleet *fleet, const struct worker *known,
                                   uint64_t pid_start, uint64_t heartbeat_pid_start, usec_t now);

/* Returns true if a search is necessary. */
bool adoption_needs_search(const struct adoption *adoption);

/* The steps of a search: begin, report each process with adoption_see(), judge, adopt each result of
 * adoption_next(), end. */
void adoption_search_begin(struct adoption *adoption);
/* Reports one process. Returns 0 or -ENOMEM. */
int adoption_see(struct adoption *adoption, const struct sighting *sighting);
/* Decides which of the reported processes to adopt. Call once all processes were reported. */
void adoption_judge(struct adoption *adoption);
/* Returns the next process to adopt: attach to it, then call adoption_take(). NULL: no more. */
struct claimant *adoption_next(struct adoption *adoption);
/* Adopts a claimant. Returns the new worker, which the caller attaches; NULL if out of memory. spawned_at:
 * start time of the process, used if its markers have none. */
struct worker *adoption_take(struct adoption *adoption, const struct claimant *claimant, usec_t spawned_at,
                             usec_t now);
/* Returns a fleet with more matching processes than may be adopted, each fleet once; NULL: no more. The
 * surplus is left alone. The limit exists because a user can forge markers for any number of processes. */
const struct fleet *adoption_full(struct adoption *adoption);
/* A process could not be read, and may be a worker: fleets are not certain before their deadline. A known
 * worker holds nothing. Call during a search. */
void adoption_await(struct adoption *adoption, pid_t pid, uint64_t start);
/* Call while a search is running: holds the starts that could duplicate a worker. */
void adoption_hold(struct adoption *adoption);
/* Ends a search. error: why the search is incomplete, or 0. Returns true if all is certain or given up.
 * Otherwise search again soon; until then no worker starts in a fleet that is not certain. */
bool adoption_search_end(struct adoption *adoption, int error, usec_t now);
