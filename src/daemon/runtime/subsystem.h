/* SPDX-License-Identifier: MIT */
/* An optional feature of the daemon, as the daemon calls it: rollouts over many hosts, autoscaling. The table
 * of all of them is daemon/subsystems.c; the daemon knows of a feature what stands here, and no more. */
#pragma once

#include "advice/findings.h"
#include "base/usec.h"
#include "wire/json.h"
#include <stdbool.h>
#include <stddef.h>

struct fleet;
struct persist;
struct link;
struct metrics;
struct codec_reader;
struct codec_writer;
struct state_features;

/* All functions but begin() may be NULL. They are called from the loop, never from within each other. `now`
 * is CLOCK_MONOTONIC. Each costs next to nothing while no fleet uses the feature. */
struct subsystem {
        const char *name;
        /* Once, before the control socket is opened and before workers are adopted. keeper lends the loop,
         * the world and the connections (keeper->crew), and outlives the subsystem. Returns 0 with *ret,
         * which the other functions are given and which is not NULL; or -errno. */
        int (*begin)(struct persist *persist, void **ret);
        /* Other settings apply, and fleets may have been added or removed: before the adoption of workers,
         * and after each reload. A fleet that is removed leaves the world only later. */
        void (*join)(void *self);
        /* At each regular poll of the workers. */
        void (*poll)(void *self, usec_t now);
        /* Before each pass: what was observed since is to be put into the model. */
        void (*observe)(void *self, usec_t now);
        /* After each pass, before its events are reported. */
        void (*tick)(void *self, usec_t now);
        /* After each pass, once its events are reported: answers control calls that wait. */
        void (*answer)(void *self, usec_t now);
        /* Writes samples of its own for GetMetrics; see daemon/api/metrics.h. */
        void (*metrics)(const void *self, struct metrics *metrics);
        /* Adds findings on one fleet for GetDiagnosis; see advice/findings.h. */
        void (*diagnose)(const void *self, const struct fleet *fleet, struct findings *findings);
        /* Adds findings on one fleet, headed by `about`. Without any, its settings are reported as OK. */
        void (*trouble)(const void *self, const struct fleet *fleet, const char *about, usec_t now,
                        struct findings *findings);
        /* Adds findings on one Redis, whose queues were read, for GetDiagnosis. */
        void (*diagnose_link)(const void *self, const struct link *link, struct findings *findings,
                              usec_t now);
        /* Sets members of the status of a fleet, which are null until then. Returns 0 or -ENOMEM. */
        int (*status)(const void *self, const struct fleet *fleet, json_t *object);
        /* Before the connections to Redis are closed, with no control call left. Frees self. */
        void (*end)(void *self);
        /* Writes what a later sqmgr has to know of the fleet, if there is anything. */
        void (*pack)(const void *self, const struct fleet *fleet, struct codec_writer *writer);
        /* The fleet continues where it was: reads what pack() has written, which may be of another version of
         * sqmgr. */
        void (*unpack)(void *self, struct fleet *fleet, struct codec_reader *reader);
};

#define SUBSYSTEMS_MAX 8

/* Those of one daemon. All zero before subsystems_begin(), and after subsystems_end(). */
struct subsystems {
        const struct subsystem *const *table; /* not owned */
        size_t n;                             /* that have begun */
        void *self[SUBSYSTEMS_MAX];
};

/* table: ends with NULL. Returns 0 or -errno; subsystems_end() is due in both cases. */
int subsystems_begin(struct subsystems *subsystems, const struct subsystem *const table[],
                     struct persist *persist);
void subsystems_join(const struct subsystems *subsystems);
void subsystems_poll(const struct subsystems *subsystems, usec_t now);
void subsystems_observe(const struct subsystems *subsystems, usec_t now);
void subsystems_tick(const struct subsystems *subsystems, usec_t now);
void subsystems_answer(const struct subsystems *subsystems, usec_t now);
void subsystems_metrics(const struct subsystems *subsystems, struct metrics *metrics);
void subsystems_diagnose(const struct subsystems *subsystems, const struct fleet *fleet,
                         struct findings *findings);
/* As struct doctor_machine takes it, userdata is the subsystems. */
void subsystems_trouble(const void *userdata, const struct fleet *fleet, const char *about, usec_t now,
                        struct findings *findings);
void subsystems_diagnose_link(const struct subsystems *subsystems, const struct link *link,
                              struct findings *findings, usec_t now);
/* subsystems: NULL for none. Returns 0 or -ENOMEM. */
int subsystems_status(const struct subsystems *subsystems, const struct fleet *fleet, json_t *object);
/* What a later sqmgr has to know of the fleet; as state_source takes it, userdata is the subsystems. */
void subsystems_pack(struct codec_writer *writer, const struct fleet *fleet, void *userdata);
/* The fleet continues with that. Parts of subsystems that this sqmgr does not have are passed over. */
void subsystems_unpack(const struct subsystems *subsystems, struct fleet *fleet,
                       const struct state_features *features);
/* In the reverse order of the table. */
void subsystems_end(struct subsystems *subsystems);
