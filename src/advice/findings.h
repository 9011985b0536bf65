/* SPDX-License-Identifier: MIT */
/* Checks the environment: problems with Redis, the machine and the settings, each with its remedy. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct queues;
struct redis_facts;
struct worker;
struct world;

enum finding_level { FINDING_OK, FINDING_WARNING, FINDING_PROBLEM, _FINDING_LEVEL_MAX };

struct finding {
        enum finding_level level;
        char *about;  /* the subject; all three strings are owned */
        char *text;   /* one sentence without a full stop */
        char *remedy; /* one sentence without a full stop; NULL if no action is needed */
};

struct findings {
        struct finding *list;
        size_t n;
        bool lost; /* out of memory: some findings are missing */
};
void findings_clear(struct findings *findings);
/* Appends a finding; all strings are copied. remedy: NULL if no action is needed. */
void findings_add(struct findings *findings, enum finding_level level, const char *about, const char *remedy,
                  const char *format, ...) _printf_(5, 6);

/* "ok", "warning", "problem". */
const char *finding_level_name(enum finding_level value);

/* The facts that one Redis reported about itself. */
struct doctor_redis {
        const char *url;
        const char *error;               /* why Redis did not answer; NULL: it answered */
        const struct redis_facts *facts; /* if it answered */
        bool has_group;                  /* one of its fleets has a rollout_group */
        const char *left_out; /* a query that is skipped because its reply was too large; NULL: none */
        size_t n_left_out;
};
void doctor_redis(struct findings *findings, const struct doctor_redis *redis);

struct doctor_machine {
        bool is_root;
        bool has_redis; /* a Redis runs on this machine */
        /* The framework whose environment in sqmgr's own process sets another host name than sqmgr uses;
         * NULL: none. */
        const struct traits *renamed;
        uint64_t memory_bytes; /* 0: not known */
        int overcommit;        /* vm.overcommit_memory; below 0: not known */
        uint64_t files_limit;  /* descriptors that sqmgr may have; 0: not known */
        uint64_t files_needed; /* with all workers that its fleets may have */
        int save_error;        /* errno of the last attempt to write the state; 0: it was written */
        const char *pressure;  /* the file with the memory pressure figures; NULL: none readable, or not
                                  configured */
        bool has_readers;      /* read-only clients can connect to read_socket */
        const char *readers;   /* the group whose members may connect; NULL: only root and sqmgr's own user */
        /* Adds findings of optional features about a fleet. NULL: no such features. */
        void (*trouble)(const void *userdata, const struct fleet *fleet, const char *about, usec_t now,
                        struct findings *findings);
        const void *userdata;
};
void doctor_machine(struct findings *findings, const struct doctor_machine *machine,
                    const struct world *world, usec_t now);

/* Facts about a worker that the model does not have. */
struct doctor_worker {
        const struct worker *worker;
        char version[32];     /* "": not known */
        int stop_signal;      /* see execute_stop_signal() */
        bool other_namespace; /* the worker runs in another pid namespace than sqmgr */
};
struct doctor_group {
        const char *trouble; /* why this host takes no part; "": it takes part */
        bool is_unsigned;    /* because the rollout is not signed with the key of this host */
        /* The path of the key that the package makes: the key counts once rollout_key_file names it. */
        const char *default_key;
        bool has_default_key; /* the file exists */
};
/* Checks a fleet with a rollout_group. */
void doctor_group(struct findings *findings, const struct fleet *fleet, const struct doctor_group *facts);

struct doctor_fleet {
        const struct fleet *fleet;
        const struct doctor_worker *workers; /* the live workers */
        size_t n_workers;
        const char *start_error; /* why a worker could not be started now; NULL: it could, or is not known */
};
void doctor_fleet(struct findings *findings, const struct doctor_machine *machine,
                  const struct doctor_fleet *facts, usec_t now);
