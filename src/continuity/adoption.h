/* SPDX-License-Identifier: MIT */
/* Takes over the workers of an earlier sqmgr: who of the living is ours, which worker, and when that is
 * clear. The shell tells what it could see of processes and takes hold of those that are judged ours;
 * meanwhile nothing is started where something is not clear. No I/O, no clock, no descriptor; times are
 * monotonic microseconds. */
#pragma once

#include "settings/traits.h"
#include <sys/types.h>

struct fleet;
struct state_fleet;
struct underway;
struct worker;
struct world;

/* What is to be seen of one process, in one search. Pid and start time name it for good. The strings are
 * borrowed, and of anybody's making; NULL: not there. */
struct sighting {
        pid_t pid, parent, group, session;
        uint64_t start;
        uid_t uid;
        const char *instance, *worker, *generation; /* what sqmgr put into the environment of its workers */
        usec_t started_at;  /* and when that very start was made; 0: not told, as by an 0.1.0 */
        bool launching;     /* named as a child of a sqmgr's is before it begins its command */
        bool parent_starts; /* its parent lives, and is a sqmgr or launching itself */
        bool in_service;    /* in the control group that we have as a service, where nothing but workers is */
        bool runs_one_job;  /* in which it is no worker, but runs a job for one */
        const struct traits *booted_as; /* the framework that it shows to work for; NULL: it shows none */
};

/* One that says, or shows, that it is a worker of ours. */
struct claimant {
        pid_t pid, parent, group;
        uint64_t start;
        uid_t uid;
        struct fleet *fleet;
        unsigned index;      /* 0: not told, fleet is one that it may be of */
        uint64_t generation; /* 0: not told */
        usec_t started_at;   /* the same */
        bool booted;         /* it shows that, or what runs below it */
        bool runs_one_job;   /* and is no worker itself */
        bool wanted;         /* and not taken yet */
        bool extra;          /* another one has its place: it takes one of its own */
};

/* A configured fleet, whose workers are looked for. */
struct sought {
        struct fleet *fleet;
        uid_t uid;    /* whose its workers are */
        bool lost;    /* nothing is known of them */
        usec_t until; /* what is not clear by then is given up; put off while searches fail */
        unsigned
                launching; /* of this search: processes that have not begun their command, and may be these */
        unsigned clear;    /* searches in a row that found no such */
        bool done;         /* all that is ours is known, or was given up: no search is for these any more */
        unsigned found;    /* and taken: see adoption_full() */
        bool full;         /* there were more than that */
        bool full_reported;
};

struct adoption {
        struct world *world;  /* not owned */
        const char *instance; /* not owned: what our workers carry */
        uid_t uid;            /* whose we are ourselves */
        struct sought *sought;
        size_t n_sought;
        struct underway *underway;
        size_t n_underway;
        struct underway *ended; /* workers that the state names, and whose processes have ended: what else
                                 * their commands have started may live on */
        size_t n_ended;
        struct taken {
                pid_t pid;
                uint64_t start;
        } * taken; /* all that were found: who has been let go of since is not found again */
        size_t n_taken;

        /* Of one search. */
        unsigned launching; /* processes that have not begun their command */
        struct claimant *claimants;
        size_t n_claimants;
        size_t allocated;

        unsigned adopted, gone, found; /* of the state's, and those that were found; for what is told */
};

/* Begins, with all fleets as they are configured. instance and world must outlive it. Returns 0 or
 * -ENOMEM. */
int adoption_new(struct world *world, const char *instance, uid_t uid, struct adoption **ret);
struct adoption *adoption_free(struct adoption *adoption);

/* Workers of this fleet, whose processes are this user's, are looked for: before anything else is told. */
void adoption_seek(struct adoption *adoption, struct fleet *fleet, uid_t uid, usec_t now);
/* Whose this fleet's workers are. Returns false where it is no longer configured, or came with a reload. */
bool adoption_uid(const struct adoption *adoption, const struct fleet *fleet, uid_t *ret);

/* The state tells of this fleet: it goes on where it was, and its starts that were under way are looked for.
 * Returns 0 or -ENOMEM. */
int adoption_continue_fleet(struct adoption *adoption, struct fleet *fleet, const struct state_fleet *saved,
                            usec_t now);
/* The state tells of this worker; the rest is as for observe_adopted(). */
struct worker *adoption_take_known(struct adoption *adoption, struct fleet *fleet, const struct worker *known,
                                   uint64_t pid_start, uint64_t heartbeat_pid_start, usec_t now);

/* Are there workers of this user's that are looked for? */
bool adoption_seeks_user(const struct adoption *adoption, uid_t uid);

/* Is there anything that only a search can tell? */
bool adoption_needs_search(const struct adoption *adoption);

/* One search: begin, see each process there is, judge, take all that adoption_next() names, end. */
void adoption_search_begin(struct adoption *adoption);
/* Returns 0 or -ENOMEM. */
int adoption_see(struct adoption *adoption, const struct sighting *sighting);
void adoption_judge(struct adoption *adoption);
/* The next that is to be adopted: take hold of it, and then adoption_take() it. NULL: that was all. */
struct claimant *adoption_next(struct adoption *adoption, usec_t now);
/* Returns the new worker, with nothing to watch it by yet; or NULL where memory is short. spawned_at: when it
 * was started. */
struct worker *adoption_take(struct adoption *adoption, const struct claimant *claimant, usec_t spawned_at,
                             usec_t now);
/* A fleet of which more was found than is taken, for whoever may write its user's marks could have us hold as
 * many processes as he likes: the others are left alone. Each is named once; NULL: there is no more. */
const struct fleet *adoption_full(struct adoption *adoption);
/* While a search goes on: nothing is started that it may find. */
void adoption_hold(struct adoption *adoption);
/* error: why the search is not whole, or 0. Returns whether all is clear, or given up; else there must be
 * another search soon, and until then none is started in a fleet of which something is not clear. */
bool adoption_search_end(struct adoption *adoption, int error, usec_t now);
