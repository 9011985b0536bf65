/* SPDX-License-Identifier: MIT */
/* What is known of each sqmgr, and how old that is. No I/O, no clock. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <jansson.h>

/* The newest that are kept of all instances. */
#define INSTANCES_EVENTS 200

struct instance {
        const char *socket;
        bool reachable;
        char *error;        /* why it is not; NULL before the first try */
        usec_t reported_at; /* when status came, of the monotonic clock */
        json_t *status;     /* GetStatus's reply; NULL before the first one */
        json_t *queues;     /* those of GetQueues' reply; NULL before the first one */
        json_t *rollouts;   /* those of GetRollouts' reply; NULL: none came, or no fleet has a group */
        char *metrics;      /* GetMetrics' reply, as text 0.0.4; NULL: none came */
        double event_at;    /* of the newest event, seconds since 1970; 0: none came */
};

struct instances {
        struct instance *list;
        size_t n;
        json_t *events; /* of all, the newest first, each with its "socket" */
};

/* sockets are not copied. Returns 0 or -ENOMEM. */
int instances_init(struct instances *instances, const char *const *sockets, size_t n);
void instances_done(struct instances *instances);

/* What it answered; the answers are borrowed. An answer that is not what was asked for is passed over. */
void instance_take_status(struct instance *instance, json_t *answer, usec_t now);
/* Stores the list that is the answer's member of that name in *place: queues or rollouts of an instance. */
void instance_take_list(json_t **place, const json_t *answer, const char *name);
/* NULL where there is no answer: what came before is forgotten. */
void instance_take_metrics(struct instance *instance, const json_t *answer);
void instance_lose(struct instance *instance, const char *error);

/* Is one of its fleets rolled together with those of other hosts? */
bool instance_has_group(const struct instance *instance);

/* Since when events are to be asked for, in seconds since 1970; 0: all. now: realtime. */
double instance_events_after(const struct instance *instance, usec_t now);
/* Takes the answer, of which it changes the events. Those that had not been told before are appended to the
 * array news, the oldest first. */
void instances_take_events(struct instances *instances, struct instance *instance, json_t *answer,
                           json_t *news);

/* The document of /api/status; NULL where memory is short. */
json_t *instances_render(const struct instances *instances, usec_t now);

/* What is missing, a sentence on a line each, without the last line's end, to be freed: "" where each
 * instance answers and each of its fleets has the workers that it is to have. NULL where memory is short. */
char *instances_lacks(const struct instances *instances);
