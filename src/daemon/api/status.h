/* SPDX-License-Identifier: MIT */
/* Renders the model as the status object that programs read, and as metrics. */
#pragma once

#include "wire/metrics.h"
#include "wire/varlink.h"

struct tick_totals;
struct fleet;
struct orderer;
struct problem_facts;
struct subsystems;
struct world;

/* State of the settings. */
struct status_settings {
        usec_t loaded_at; /* wall clock time of the last successful load */
        bool refused;     /* the last reload was refused */
};

struct status_info {
        const char *instance; /* the name of this sqmgr */
        const char *version;
        pid_t pid;
        usec_t started_at; /* monotonic start time of sqmgr */
        usec_t realtime;   /* current wall clock time */
        const struct status_settings *settings;
        const struct world *world;
        const struct subsystems *subsystems; /* NULL: none */
        const struct problem_facts *facts;   /* names the connections, too */
};

/* Renders the status of the given fleets. Returns a new reference, or NULL when memory is short. */
json_t *status_render(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                      usec_t now);

/* Render an orderer (JSON null: not known) and the list of a fleet's workers. Return a new reference, or NULL
 * when memory is short. */
json_t *status_orderer(const struct orderer *by);
json_t *status_workers(const struct fleet *fleet, usec_t now);
/* Renders the generation that the fleet has left for an earlier one; JSON null if it has not. fleet may be
 * NULL. Returns a new reference, or NULL when memory is short. */
json_t *status_rolled_back(const struct fleet *fleet);

/* Collects the metrics of the model. Returns a text that the caller frees; NULL: memory is short. */
char *metrics_collect(const struct status_info *info, const struct tick_totals *ticks, usec_t now);
