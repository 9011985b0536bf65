/* SPDX-License-Identifier: MIT */
/* The last known state of each sqmgr, and its age. No I/O, no clock. */
#pragma once

#include "base/macro.h"
#include <jansson.h>

/* Maximum number of events kept for all instances together. The oldest event of the instance with the most
 * events makes room for another: an instance with many events displaces none of the others. */
#define INSTANCES_EVENTS 200

/* Maximum number of instances. */
#define INSTANCES_MAX 64

struct instance {
        char *socket;
        char *name; /* of the instance, owned; NULL: only its socket is known */
        bool reachable;
        char *error;        /* reason if not reachable; NULL before the first attempt */
        usec_t reported_at; /* time of the last status reply, monotonic clock */
        json_t *status;     /* reply of GetStatus; NULL before the first reply */
        json_t *queues;     /* list in the reply of GetQueues; NULL before the first reply */
        char *metrics;      /* text for Prometheus, owned; NULL: no reply */
        double event_at;    /* time of the newest event in seconds since 1970; 0: no event */
        size_t n_events;    /* of the events that are kept */
};

struct instances {
        struct instance
                *list; /* owned; allocated for INSTANCES_MAX, so the addresses of instances never change */
        size_t n;
        json_t *events; /* events of all instances, the newest first, each with a member "socket" */
};

/* Returns 0 or -ENOMEM. */
int instances_init(struct instances *instances);
/* Adds an instance; copies socket and name, which may be NULL. Returns NULL if there are INSTANCES_MAX
 * already, or memory is short. */
struct instance *instances_add(struct instances *instances, const char *socket, const char *name);
/* Returns the instance with that socket, or NULL. */
struct instance *instances_find(const struct instances *instances, const char *socket);
/* Removes the last instance. Only for an instance without events. */
void instances_remove_last(struct instances *instances);
/* Returns what people call the instance: its name, or its socket. */
const char *instance_title(const struct instance *instance);
void instances_done(struct instances *instances);

/* Stores a reply of GetStatus; answer is borrowed. now: monotonic clock. A reply without fleets makes the
 * instance unreachable. */
void instance_take_status(struct instance *instance, json_t *answer, usec_t now);
/* Stores a reply of GetQueues. A reply without queues is ignored. */
void instance_take_queues(struct instance *instance, const json_t *answer);
/* Stores a reply of GetMetrics. If answer is NULL, the old metrics are dropped. */
void instance_take_metrics(struct instance *instance, const json_t *answer);
void instance_lose(struct instance *instance, const char *error);

/* Returns the time from which to query events, in seconds since 1970; 0: all. now: realtime clock. */
double instance_events_after(const struct instance *instance, usec_t now);
/* Stores a reply of GetEvents and modifies its events. Appends new events to the array news, the oldest
 * first. */
void instances_take_events(struct instances *instances, struct instance *instance, json_t *answer,
                           json_t *news);

/* Returns the document of /api/status, or NULL if memory is short. host: name of this host, or NULL. now:
 * monotonic clock. */
json_t *instances_render(const struct instances *instances, const char *host, usec_t now);

/* Returns what is missing, one sentence per line, without a newline at the end. Returns "" if each instance
 * answers and each of its fleets has its workers. The caller frees the text. Returns NULL if memory is
 * short. */
char *instances_lacks(const struct instances *instances);
