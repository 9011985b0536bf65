/* SPDX-License-Identifier: MIT */
/* Checks of doctor beside problems: Redis, databases, the machine, workers, and what is in order. */
#pragma once

#include "base/macro.h"
#include "wire/quoted.h"

struct database_facts;
struct fleet;
struct problem_facts;
struct problems;
struct redis_facts;
struct traits;
struct worker;
struct world;

/* The facts that one Redis reported about itself. */
struct doctor_redis {
        const char *url;
        const struct error_report *error; /* why Redis did not answer; NULL: it answered */
        const struct redis_facts *facts;  /* if it answered */
        const char *left_out; /* a query that is skipped because its reply was too large; NULL: none */
        size_t n_left_out;
};
void doctor_redis(struct problems *findings, const struct doctor_redis *redis);

/* The facts that a database reported about a framework. */
struct doctor_database {
        const char *noun; /* "PostgreSQL" or "SQLite" */
        const char *url;
        const struct error_report *error;   /* why the database did not answer; NULL: it answered */
        const struct database_facts *facts; /* if it answered */
        const struct traits *traits;        /* of the framework */
};
void doctor_database(struct problems *findings, const struct doctor_database *database);

struct doctor_machine {
        bool has_redis; /* a Redis runs on this machine */
        int overcommit; /* vm.overcommit_memory; below 0: not known */
};
/* Moves the problems of sqmgr and its machine from `problems` to `findings`, and adds what is in order there.
 */
void doctor_machine(struct problems *findings, const struct doctor_machine *machine,
                    const struct problem_facts *facts, struct problems *problems, const struct world *world);

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
