/* SPDX-License-Identifier: MIT */
/* Interface of the optional features of the daemon, such as autoscaling. daemon/supervisor.c has the table of
 * all features. The daemon knows nothing else about them. */
#pragma once

#include "advice/doctor_rules.h"
#include "advice/problem.h"
#include "wire/json.h"

struct fleet;
struct runtime;
struct link;
struct metrics;
struct world;
struct codec_reader;
struct codec_writer;
struct state_features;

/* All functions but begin() may be NULL. The loop calls them, never from within each other. now is
 * CLOCK_MONOTONIC. Each call must be cheap while no fleet uses the feature. */
struct subsystem {
        const char *name;
        /* Called once, before the control socket is opened and workers are adopted. runtime outlives the
         * subsystem and gives access to the loop, the world and the connections. Returns 0 with *ret, or
         * -errno. *ret is passed to the other functions and must not be NULL. */
        int (*begin)(struct runtime *runtime, void **ret);
        /* Called before workers are adopted and after each reload: settings may have changed, fleets may have
         * been added or removed. A removed fleet stays in the world for a while. */
        void (*join)(void *self);
        /* Called at each regular poll of the workers. */
        void (*poll)(void *self, usec_t now);
        /* Called before each pass: updates the model with what was observed since. */
        void (*observe)(void *self, usec_t now);
        /* Adds families of metrics; see wire/metrics.h. */
        void (*metrics)(const void *self, const struct world *world, struct metrics *metrics);
        /* Adds findings on one fleet for GetDiagnosis; see advice/doctor_rules.h. */
        void (*diagnose)(const void *self, const struct fleet *fleet, struct problems *findings);
        /* Adds the problems of one fleet; see advice/problem.h. */
        void (*problems)(const void *self, const struct fleet *fleet, usec_t now, struct problems *problems);
        /* Adds findings on one Redis for GetDiagnosis. The queues were read before. */
        void (*diagnose_link)(const void *self, const struct link *link, struct problems *findings);
        /* Sets members of the status of a fleet, which are null by default. Returns 0 or -ENOMEM. */
        int (*status)(const void *self, const struct fleet *fleet, json_t *object);
        /* Called before the connections to Redis are closed, with no control call in progress. Frees self. */
        void (*end)(void *self);
        /* Writes the state of the fleet for a later sqmgr, if any. */
        void (*pack)(const void *self, const struct fleet *fleet, struct codec_writer *writer);
        /* Restores the state of the fleet that pack() of any version of sqmgr wrote. */
        void (*unpack)(void *self, struct fleet *fleet, struct codec_reader *reader);
};

#define SUBSYSTEMS_MAX 8

/* The subsystems of one daemon. Zeroed before subsystems_begin(), and empty after subsystems_end(). */
struct subsystems {
        const struct subsystem *const *table; /* not owned */
        size_t n;                             /* number of subsystems begun */
        void *self[SUBSYSTEMS_MAX];
};

/* table is terminated by NULL. Returns 0 or -errno; call subsystems_end() in both cases. */
int subsystems_begin(struct subsystems *subsystems, const struct subsystem *const table[],
                     struct runtime *runtime);
/* Calls the function of that name of each subsystem that has one, in the order of the table. */
#define SUBSYSTEMS_CALL(subsystems, function, ...)                                                           \
        for (size_t _at = 0; _at < (subsystems)->n; _at++)                                                   \
                if ((subsystems)->table[_at]->function)                                                      \
        (subsystems)->table[_at]->function((subsystems)->self[_at], ##__VA_ARGS__)
/* For struct problem_facts; userdata is the struct subsystems. */
void subsystems_problems(const void *userdata, const struct fleet *fleet, usec_t now,
                         struct problems *problems);
/* subsystems may be NULL: none. Returns 0 or -ENOMEM. */
int subsystems_status(const struct subsystems *subsystems, const struct fleet *fleet, json_t *object);
/* Writes the state of all features for a fleet. For struct state_source; userdata is the struct
 * subsystems. */
void subsystems_pack(struct codec_writer *writer, const struct fleet *fleet, void *userdata);
/* Restores that state. Parts of features that this sqmgr does not have are skipped. */
void subsystems_unpack(const struct subsystems *subsystems, struct fleet *fleet,
                       const struct state_features *features);
/* Ends the subsystems in reverse order of the table. */
void subsystems_end(struct subsystems *subsystems);
