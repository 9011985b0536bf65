/* SPDX-License-Identifier: MIT */
/* Judges the surroundings: what there may be wrong with Redis, the machine and the settings, and what to do
 * about it. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct queues;
struct worker;
struct world;

enum finding_level { FINDING_OK, FINDING_WARNING, FINDING_PROBLEM, _FINDING_LEVEL_MAX };

struct finding {
        enum finding_level level;
        char *about;  /* owned, as the others: what it is of */
        char *text;   /* one sentence without a full stop */
        char *remedy; /* the same; NULL where all is well */
};

struct findings {
        struct finding *list;
        size_t n;
        bool lost; /* memory was short for some */
};
void findings_clear(struct findings *findings);
/* remedy: NULL where all is well. */
void findings_add(struct findings *findings, enum finding_level level, const char *about, const char *remedy,
                  const char *format, ...) _printf_(5, 6);

/* "ok", "warning", "problem". */
const char *finding_level_name(enum finding_level value);

/* What one Redis told of itself. */
struct doctor_redis {
        const char *url;
        const char *error; /* why it tells nothing; NULL: it does */
        const char *info;  /* the text of INFO; NULL: it refuses, as info_error says */
        const char *info_error;
        const char *save; /* of CONFIG GET save; NULL: it refuses, as config_error says */
        const char *config_error;
        bool has_group;           /* a fleet of it has a rollout_group */
        const char *min_replicas; /* of CONFIG GET min-replicas-to-write; NULL: not known */
        const char *left_out;     /* a question that is, since its reply was too large; NULL: none */
        size_t n_left_out;
};
void doctor_redis(struct findings *findings, const struct doctor_redis *redis);

struct doctor_machine {
        bool is_root;
        bool has_redis; /* one runs on this machine */
        /* Has another host name in our environment than we have; NULL: no framework of ours. */
        const struct traits *renamed;
        uint64_t memory_bytes; /* 0: not known */
        int overcommit;        /* vm.overcommit_memory; below 0: not known */
        int save_error;        /* errno of the last try to write the state, 0: it is written */
        const char
                *pressure;   /* the file that tells of memory pressure; NULL: none can be read, or is to be */
        bool has_readers;    /* whoever may only look can connect to read_socket */
        const char *readers; /* the group whose members may; NULL: root and our own user alone may */
        /* Adds findings of optional features on a fleet. NULL: there are no such features. */
        void (*trouble)(const void *userdata, const struct fleet *fleet, const char *about, usec_t now,
                        struct findings *findings);
        const void *userdata;
};
void doctor_machine(struct findings *findings, const struct doctor_machine *machine,
                    const struct world *world, usec_t now);

/* What can be seen of a worker besides the model. */
struct doctor_worker {
        const struct worker *worker;
        char version[32];     /* "": not known */
        bool other_namespace; /* of pids, than ours */
};
/* Of a fleet with rollout_group. trouble: why this host takes no part; "": it does. */
void doctor_group(struct findings *findings, const struct fleet *fleet, const char *trouble);
/* workers: those of the fleet that live. */
void doctor_fleet(struct findings *findings, const struct doctor_machine *machine, const struct fleet *fleet,
                  const struct doctor_worker *workers, size_t n_workers, usec_t now);
