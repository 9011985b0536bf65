/* SPDX-License-Identifier: MIT */
/* Reads members of sqmgr's replies, and formats them as the phrases that both the terminal and the page
 * show. */
#pragma once

#include "base/parse.h"
#include "wire/varlink.h"

/* Replaces control characters in all strings of a reply, which an instance of another user may have sent to a
 * terminal. Newlines stay in what is quoted, and in members of the name `lines` (NULL: no others). Members
 * whose names have control characters are removed. Returns 0, or -ENOMEM. */
int reply_clean(json_t *reply, const char *lines);
/* Decodes a reply as varlink_decode_reply() does, and cleans it. */
int reply_decode(const char *text, size_t size, size_t max, const char *lines, struct varlink_reply *ret);

/* Return the member of that name: "", 0 or false if missing or of another type. A string is borrowed. */
const char *reply_string(const json_t *object, const char *key);
long long reply_integer(const json_t *object, const char *key);
bool reply_is_true(const json_t *object, const char *key);
/* Returns true if the member of that name is the string value. A missing member equals "". */
bool reply_is(const json_t *object, const char *key, const char *value);
/* Writes text, a sentence of the object, and on further lines the text that the object quotes. Returns ret,
 * which has REPLY_QUOTING_MAX bytes. */
#define REPLY_QUOTING_MAX 4096
const char *reply_quoting(const json_t *object, const char *text, char ret[static REPLY_QUOTING_MAX]);
/* Returns a member in seconds as microseconds; 0 if missing or negative. */
usec_t reply_usec(const json_t *object, const char *key);
/* Returns part as a percentage of whole, which is above 0; at most 1,000,000. */
long long reply_percent(long long part, long long whole);
/* Formats a member in seconds, rounded down to whole seconds. Returns text, which has FORMAT_MAX bytes. */
const char *reply_seconds(const json_t *object, const char *key, char *text);
/* As reply_seconds(), but rounded up: for the time left, which is at least 1 s until it is over. */
const char *reply_seconds_left(const json_t *object, const char *key, char *text);
/* Formats the member `memory_bytes`, or "-" if unknown. Returns text, which has FORMAT_MAX bytes. */
const char *reply_memory(const json_t *object, char *text);

/* Returns what the server of a Redis is: "redis" or "database". */
const char *reply_server_kind(const json_t *redis);

/* Returns a Worker's state, or "hung" for a hung one: its state alone would be "active". */
const char *reply_worker_state(const json_t *worker);
/* Format for how long it has been in that state, and the age of its last heartbeat, as reply_seconds(). */
const char *reply_worker_since(const json_t *worker, char *text);
const char *reply_heartbeat_age(const json_t *worker, char *text);
bool reply_has_heartbeat(const json_t *worker);
/* Formats why a Worker is retiring and what the worker waits for, in text of size bytes. Empty if neither
 * applies. */
void reply_worker_why(const json_t *worker, char *text, size_t size);

/* Returns "asleep, " for a Fleet without workers that autoscaling wakes, "disabled, " for one whose count is
 * 0;
 * "" for any other. */
const char *reply_at_zero(const json_t *fleet);

/* Formats a Fleet's Rollout: "restart running (2 replaced, 2 outdated)"; "" if there is nothing to report.
 * Returns text. */
#define REPLY_ROLLOUT_MAX 128
const char *reply_rollout(const json_t *rollout, char text[static REPLY_ROLLOUT_MAX]);

/* Formats the trial of a release as long as it runs; else "". Returns text. */
#define REPLY_TRIAL_MAX 256
const char *reply_trial(const json_t *fleet, char text[static REPLY_TRIAL_MAX]);

/* Formats the template that a Fleet's workers are forked from, or why there is none; "" if its Template is
 * null. Returns text. */
#define REPLY_TEMPLATE_MAX 1024
const char *reply_template(const json_t *template, char text[static REPLY_TEMPLATE_MAX]);

/* Formats the autoscaling of a Fleet; "" if its Scaling is null. Returns text. */
#define REPLY_SCALING_MAX 640
const char *reply_scaling(const json_t *scaling, char text[static REPLY_SCALING_MAX]);

/* Lists why sqmgr is not ready: the summaries of the problems with "unready" in a reply to GetStatus (NULL or
 * null: no reply, which is not ready either). An empty list means ready. A fleet that its operator quieted,
 * stopped, drained or scaled to 0 counts as ready.
 *
 * The caller owns the list; NULL if memory is short. */
json_t *reply_lacks(const json_t *status);

/* In the order of sending if several are due. */
enum instance_query {
        INSTANCE_QUERY_STATUS,
        INSTANCE_QUERY_EVENTS,
        INSTANCE_QUERY_QUEUES,
        INSTANCE_QUERY_METRICS,
        _INSTANCE_QUERY_MAX,
        /* Any call of sqmgrctl but GetMetrics. */
        INSTANCE_QUERY_TERMINAL = _INSTANCE_QUERY_MAX,
};

struct reply_limits {
        size_t bytes;        /* of the whole reply */
        size_t values;       /* numbers, strings, arrays and so on */
        size_t containers;   /* objects and arrays among the values: the largest in memory */
        size_t string_bytes; /* of each string, as written in JSON */
        size_t escaped;      /* characters of all strings that take five to six times as much on the page */
};

extern const struct reply_limits reply_limits[_INSTANCE_QUERY_MAX + 1];

#define REPLY_DEPTH_MAX       32
#define REPLY_FLEETS_MAX      1000
#define REPLY_WORKERS_MAX     10000 /* of all fleets together */
#define REPLY_NAME_MAX        256   /* bytes of the name of a fleet or worker, which the page repeats */
#define REPLY_EVENTS_MAX      1000
#define REPLY_EVENT_BYTES_MAX ((size_t)16 * 1024)
#define REPLY_METRICS_MAX     200000 /* lines */

#define REPLY_REASON_MAX 128

/* Checks a reply before it is parsed: parsing multiplies its size. Returns true if the reply is within the
 * limits. Otherwise reason says what is too much. */
bool reply_limits_scan(enum instance_query query, const char *text, size_t size,
                       char reason[static REPLY_REASON_MAX]);
/* Checks the parameters of a reply, which must have passed reply_limits_scan(). Returns as that. */
bool reply_limits_check(enum instance_query query, const json_t *answer,
                        char reason[static REPLY_REASON_MAX]);
