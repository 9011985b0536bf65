/* SPDX-License-Identifier: MIT */
/* Judges all that is known: what is a problem, and how severe. status, the page, readiness, metrics and
 * doctor print the result and judge nothing. No I/O, no clock. */
#pragma once

#include "advice/problem.h"
#include "model/fleet.h"

/* A connection to Redis or to a database. */
struct problem_redis {
        const char *kind;     /* "redis", "postgresql" or "sqlite" */
        const char *database; /* "PostgreSQL" or "SQLite"; NULL: a Redis */
        const char *url;      /* without passwords */
        const char *server;   /* `host:port` of the current master, if Sentinels named it; else NULL */
        enum reader_state state;
        usec_t rtt_usec;                  /* 0: not known */
        const struct queues *queues;      /* as last read; NULL: not read */
        const struct link *link;          /* as that of its fleets */
        bool for_queues;                  /* only queues are read from it */
        bool quarantined;                 /* see continuity/quarantine.h */
        const struct error_report *error; /* why it is not up; NULL: not known */
};

/* A process of our service that belongs to no worker. */
struct problem_process {
        pid_t pid;
        bool leads;       /* leads its session, as a worker does */
        char command[16]; /* untrusted */
};

/* Facts that the model does not have. */
struct problem_facts {
        const struct problem_redis *redis;
        size_t n_redis;
        const struct problem_process *unknown;
        size_t n_unknown;
        bool is_root, in_container;
        /* A fleet for whose framework the environment of sqmgr's own process sets another host name than
         * sqmgr uses; NULL: none. */
        const struct fleet_settings *renamed;
        uint64_t memory_bytes;  /* 0: not known */
        uint64_t files_limit;   /* descriptors that sqmgr may have; 0: not known */
        uint64_t files_needed;  /* with all workers that its fleets may have */
        int save_error;         /* errno of the last attempt to write the state; 0: it was written */
        const char *orders_why; /* why orders cannot be written to orders_file; NULL: they are */
        const char *orders_file;
        usec_t orders_since;                /* of orders_why */
        const char *instance, *config_path; /* for commands, see problem_command() */
        const char *refused;                /* the config file that the next start would refuse; NULL: none */
        usec_t refused_since;               /* 0: not known */
        /* Returns the signal that asks the worker to exit. NULL: not known. */
        int (*stop_signal)(const struct worker *worker);
        /* Adds the problems of optional features of one fleet. NULL: no such features. */
        void (*features)(const void *userdata, const struct fleet *fleet, usec_t now,
                         struct problems *problems);
        const void *userdata;
};

/* Adds the problems of sqmgr and its machine, then those of each of the fleets. */
void problems_judge(struct problems *problems, const struct problem_facts *facts, const struct world *world,
                    struct fleet *const *fleets, size_t n_fleets, usec_t now);

/* Returns the problem of one worker, or PROBLEM_NONE. */
enum problem_code problem_of_worker(const struct worker *worker);
