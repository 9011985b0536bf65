/* SPDX-License-Identifier: MIT */
/* Keeps the last events, and tells new ones to those who follow. */
#pragma once

#include "daemon/api/server.h"

struct event;
struct fleet;

/* So many are kept. */
#define EVENTS_KEPT 512

struct events;

/* Returns 0 with *ret to be freed by events_free(), or -ENOMEM. */
int events_new(struct events **ret);
/* After server_free(), which cancels the calls that are kept here. Returns NULL. */
struct events *events_free(struct events *events);

/* An event as GetEvents tells it; realtime: when it is told, by the wall clock. To be released; NULL: memory
 * is short. */
json_t *event_render(const struct event *event, usec_t realtime);

/* realtime: when it is told, by the wall clock. Lost where memory is short. */
void events_add(struct events *events, const struct event *event, usec_t realtime);

/* The number of the next event. */
uint64_t events_end(const struct events *events);

/* Appends to list the warnings and errors of a fleet, from that number on, as GetEvents tells them. Returns 0
 * or -ENOMEM. */
int events_add_troubles(const struct events *events, uint64_t since, const char *fleet, json_t *list);

/* Is any kept of this worker (FLEET/INDEX)? */
bool events_have(const struct events *events, const char *worker);

/* The number of the first event that is kept and was told behind the last one of that time, as GetEvents
 * tells it (seconds since 1970), whatever has been done to the clock since; where no event has it, of the
 * first that is later. */
uint64_t events_after(const struct events *events, double at);

/* Which events are asked for. */
struct events_request {
        struct fleet *const *fleets;
        size_t n_fleets;
        bool all;           /* those of no fleet, too */
        const char *worker; /* NULL: of all */
        uint64_t from;      /* the number of the first */
};

/* Answers with those that are kept, oldest first. A call that asks for more is kept for those to come. */
void events_reply(struct events *events, struct call *call, const struct events_request *request);

/* Sends what was added since to those who follow. */
void events_tick(struct events *events);
