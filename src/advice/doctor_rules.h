/* SPDX-License-Identifier: MIT */
/* Checks of doctor beside problems: Redis, databases, the machine, workers, and what is in order. */
#pragma once

#include "wire/quoted.h"

struct database_facts;
struct fleet;
struct problem_facts;
struct problems;
struct redis_facts;
struct traits;
struct worker;
struct world;

/* about: the Redis or the database. error: why it did not answer; NULL: it answered, and has reported facts
 * about itself, a database about the framework of these traits. */
void doctor_redis(struct problems *findings, const char *about, const struct error_report *error,
                  const struct redis_facts *facts);
void doctor_database(struct problems *findings, const char *about, const struct error_report *error,
                     const struct database_facts *facts, const struct traits *traits);

/* Moves the problems of sqmgr and its machine from `problems` to `findings`, and adds what is in order there.
 * overcommit: vm.overcommit_memory; below 0: not known, or no Redis runs on this machine. */
void doctor_machine(struct problems *findings, int overcommit, const struct problem_facts *facts,
                    struct problems *problems, const struct world *world);

/* Facts about a worker that only doctor asks for. */
struct doctor_worker {
        const struct worker *worker;
        char version[32];     /* "": not known */
        bool other_namespace; /* the worker runs in another pid namespace than sqmgr */
};

struct doctor_fleet {
        const struct fleet *fleet;
        const struct doctor_worker *workers; /* the live workers */
        size_t n_workers;
        /* Why a worker could not be started now; NULL: it could, or is not known. */
        const struct error_report *start_error;
};
/* Moves the problems of the fleet to `findings`, and adds what was found, or that there is nothing. */
void doctor_fleet(struct problems *findings, struct problems *problems, const struct doctor_fleet *facts);
