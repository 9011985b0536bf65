/* SPDX-License-Identifier: MIT */
/* Findings of doctor: all problems, what it asks Redis and the machine for, and what is in order. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "wire/quoted.h"

struct database_facts;
struct fleet;
struct problem_facts;
struct problems;
struct queues;
struct redis_facts;
struct traits;
struct worker;
struct world;

enum finding_level { FINDING_OK, FINDING_WARNING, FINDING_PROBLEM, _FINDING_LEVEL_MAX };

struct finding {
        enum finding_level level;
        char *about;          /* the subject; all three strings are owned */
        char *text;           /* a sentence without a full stop */
        char *remedy;         /* a sentence without a full stop; NULL if no action is needed */
        struct quoted quoted; /* quoted by text */
};

struct findings {
        const char *socket, *config_path; /* for commands, see problem_command(); not owned */
        struct finding *list;
        size_t n;
        bool lost; /* out of memory: some findings are missing */
};
void findings_clear(struct findings *findings);
/* Appends a finding; all strings are copied. remedy: NULL if no action is needed. */
void findings_add(struct findings *findings, enum finding_level level, const char *about, const char *remedy,
                  const char *format, ...) _printf_(5, 6);

/* Quotes text from elsewhere with the last finding. */
void findings_quote(struct findings *findings, const struct quoted *quoted);

/* "ok", "warning", "problem". */
const char *finding_level_name(enum finding_level value);

/* The facts that one Redis reported about itself. */
struct doctor_redis {
        const char *url;
        const struct error_report *error; /* why Redis did not answer; NULL: it answered */
        const struct redis_facts *facts;  /* if it answered */
        const char *left_out; /* a query that is skipped because its reply was too large; NULL: none */
        size_t n_left_out;
};
void doctor_redis(struct findings *findings, const struct doctor_redis *redis);

/* The facts that a database reported about a framework. */
struct doctor_database {
        const char *noun; /* "PostgreSQL" or "SQLite" */
        const char *url;
        const struct error_report *error;   /* why the database did not answer; NULL: it answered */
        const struct database_facts *facts; /* if it answered */
        const struct traits *traits;        /* of the framework */
};
void doctor_database(struct findings *findings, const struct doctor_database *database);

struct doctor_machine {
        bool has_redis;      /* a Redis runs on this machine */
        int overcommit;      /* vm.overcommit_memory; below 0: not known */
        const char *readers; /* the group whose members may connect; NULL: only root and sqmgr's own user */
};
/* Adds the problems of sqmgr and its machine, and what is in order there. */
void doctor_machine(struct findings *findings, const struct doctor_machine *machine,
                    const struct problem_facts *facts, const struct problems *problems,
                    const struct world *world);

/* Facts about a worker that only doctor asks for. */
struct doctor_worker {
        const struct worker *worker;
        const char *identity; /* under which it sends heartbeats: HOST:PID:...; NULL: not known */
        char version[32];     /* "": not known */
        bool other_namespace; /* the worker runs in another pid namespace than sqmgr */
        int uncaught; /* the quiet signal, if the application has to catch it, and does not; otherwise 0 */
};

struct doctor_fleet {
        const struct fleet *fleet;
        const struct doctor_worker *workers; /* the live workers */
        size_t n_workers;
        /* Why a worker could not be started now; NULL: it could, or is not known. */
        const struct error_report *start_error;
};
/* Adds the problems of the fleet and what was found, or that there is nothing. */
void doctor_fleet(struct findings *findings, const struct problems *problems,
                  const struct doctor_fleet *facts);
