/* SPDX-License-Identifier: MIT */
/* Sentences about workers, fleets and the world, for people. */
#pragma once

#include "model/fleet.h"

/* The same of one that leaves, or is to. */
const char *worker_reason_text(const struct worker *worker);

/* Since when, and by whom, a fleet is quieted or stopped: "3h ago by deploy (uid 1001)"; "" where nothing is
 * known of it, or it is neither. */
#define FLEET_ORDERED_MAX (ORDERER_TEXT_MAX + 48)

const char *fleet_ordered_text(const struct fleet *fleet, usec_t now, char text[static FLEET_ORDERED_MAX]);

/* The same of its count: "scaled 4min ago by deploy (uid 1001)", "scaled" where no more is known, "" where it
 * is the configured one. */
#define FLEET_SCALED_MAX (sizeof("scaled ") + FLEET_ORDERED_MAX)

const char *fleet_scaled_text(const struct fleet *fleet, usec_t now, char text[static FLEET_SCALED_MAX]);

/* One sentence on what it waits for; "" where it waits for nothing. Returns text. */
const char *worker_waits_for(const struct worker *worker, usec_t now, char *text, size_t size);

const char *fleet_waits_for(const struct fleet *fleet, usec_t now, char *text, size_t size);

/* The same on its short lives. */
#define CRASH_TEXT_MAX (CRASH_LAST_MAX + 256)

const char *fleet_crash_text(const struct fleet *fleet, usec_t now, char *text, size_t size);

/* How the end of sqmgr comes forward: "2 workers left, 3 running jobs, 25s until all are told to exit".
 * Returns text. */
const char *world_stopping_text(const struct world *world, usec_t now, char *text, size_t size);

/* How high it is: "32% of the time something waits for memory (pressure_limit 20%), 410M of 16G are left".
 * Returns text. */
#define PRESSURE_RESPONSE_TEXT_MAX 192

const char *pressure_response_text(const struct world *world, char text[static PRESSURE_RESPONSE_TEXT_MAX]);

/* A worker and its process, as events name them: "web/3 (pid 28650)". Returns text. */
#define WORKER_EVENT_NAME_MAX 300
const char *worker_event_name(const struct worker *worker, char text[static WORKER_EVENT_NAME_MAX]);

/* The same as a value, which stays until the end of the block around it. */
#define WORKER_EVENT_NAME(worker) worker_event_name(worker, (char[WORKER_EVENT_NAME_MAX]){""})
