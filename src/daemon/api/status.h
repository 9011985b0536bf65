/* SPDX-License-Identifier: MIT */
/* Renders the model as the status object that programs read. */
#pragma once

#include "base/usec.h"
#include "wire/varlink.h"

struct fleet;
struct orderer;
struct queues;
struct subsystems;
struct world;

/* One connection to Redis. */
struct status_redis {
        const char *url;    /* without passwords */
        const char *server; /* `host:port` of the master in use, where Sentinels named it; NULL else */
        const char *state;  /* "connecting", "connected" or "down" */
        const char *error;  /* why it is not connected; NULL: there is no error */
        double rtt_ms;      /* below 0: not known */
        const struct queues *queues; /* as they were read of late; NULL: they were not */
};

/* Of the settings in force. */
struct status_settings {
        usec_t loaded_at; /* by the wall clock: when they were read */
        bool refused;     /* those that were read last are not among them */
};

struct status_info {
        const char *version;
        pid_t pid;
        usec_t started_at; /* monotonic: when sqmgr started */
        usec_t realtime;   /* now, since 1970 */
        const struct status_settings *settings;
        const struct world *world;
        const struct subsystems *subsystems; /* NULL: none */
        const struct status_redis *redis;
        size_t n_redis;
};

/* The status of the n_fleets fleets given. Returns a new reference, or NULL where memory is short. */
json_t *status_render(const struct status_info *info, struct fleet *const *fleets, size_t n_fleets,
                      usec_t now);

/* The list of the fleet's workers in it, with the same result. */
json_t *status_orderer(const struct orderer *by);
json_t *status_workers(const struct fleet *fleet, usec_t now);
