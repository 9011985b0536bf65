/* SPDX-License-Identifier: MIT */
/* Keeps the latest events and sends new ones to followers. */
#pragma once

#include "daemon/api/api_server.h"

struct event;
struct fleet;

/* Size of the ring: older events are dropped. */
#define EVENTS_KEPT 512

struct events;

/* Returns 0 with *ret, to be freed with events_free(), or -ENOMEM. */
int events_new(struct events **ret);
/* Call after api_server_free(), which cancels the calls that are kept here. Returns NULL. */
struct events *events_free(struct events *events);

/* Renders an event as in the reply to GetEvents. realtime is the wall clock time of the report. Returns a new
 * reference, or NULL when memory is short. */
json_t *event_render(const struct event *event, usec_t realtime);

/* Adds an event. realtime is the wall clock time of the report. The event is lost when memory is short. */
void events_add(struct events *events, const struct event *event, usec_t realtime);

/* Returns the number that the next event will get. */
uint64_t events_end(const struct events *events);

/* Appends the warnings and errors of a fleet from number since on, rendered as in GetEvents. Leaves out
 * halted and aborted rollouts. Returns 0 or -ENOMEM. */
int events_add_troubles(const struct events *events, uint64_t since, const char *fleet, json_t *list);

/* True if an event of this worker (FLEET/INDEX) is kept. */
bool events_have(const struct events *events, const char *worker);

/* Returns the number after the last kept event with time at, in seconds since 1970 as in GetEvents. If no
 * event has that time, returns the number of the first later event. Clock jumps between events do no harm. */
uint64_t events_after(const struct events *events, double at);

/* The fleets named by a call, without duplicates. */
struct handler_fleets {
        struct fleet **fleets; /* owned */
        size_t n_fleets;
        bool all; /* the call names none */
};

/* Replies with the events of these fleets from number `from` on, oldest first; for all fleets, also with
 * events without a fleet. worker: of this one alone; NULL: of all. A call with "more" is kept and gets later
 * events, too. */
void events_reply(struct events *events, struct call *call, const struct handler_fleets *list,
                  const char *worker, uint64_t from);

/* Sends new events to the followers. */
void events_tick(struct events *events);
