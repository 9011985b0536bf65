/* SPDX-License-Identifier: MIT */
/* Takes apart what sqmgr answers, and puts it into the phrases that terminal and page show alike. */
#pragma once

#include "base/parse.h"
#include "wire/json.h"

/* The member of that name: "" or 0 where there is none, or one of another kind. */
const char *reply_string(const json_t *object, const char *key);
long long reply_integer(const json_t *object, const char *key);
bool reply_is_true(const json_t *object, const char *key);
/* Is the member of that name the string value? Without that member value is "". */
bool reply_is(const json_t *object, const char *key, const char *value);
/* The same of seconds: microseconds. */
usec_t reply_usec(const json_t *object, const char *key);
/* The same of seconds, in words without parts of seconds, in text, which has FORMAT_MAX bytes and is
 * returned. */
const char *reply_seconds(const json_t *object, const char *key, char *text);
/* The same of what is left: what is not over is a second at least. */
const char *reply_seconds_left(const json_t *object, const char *key, char *text);
/* The member `memory_bytes`, in words, "-" where it is not known. text has FORMAT_MAX bytes and is returned.
 */
const char *reply_memory(const json_t *object, char *text);

/* A Worker's state: a hung one is active by its last beat; what people want to know is that it hangs. */
const char *reply_worker_state(const json_t *worker);
/* Why a Worker leaves and what it waits for, in a text of size bytes; "" where there is nothing to say. */
void reply_worker_why(const json_t *worker, char *text, size_t size);

/* What there is to say of a Fleet's Rollout: "restart running (2 replaced, 2 outdated)"; "" where that is
 * nothing. Returns text. */
#define REPLY_ROLLOUT_MAX 128
const char *reply_rollout(const json_t *rollout, char text[static REPLY_ROLLOUT_MAX]);

/* What workers of a Fleet are forked from, or why they are not; "" where its Template is null. Returns text.
 */
#define REPLY_TEMPLATE_MAX 1024
const char *reply_template(const json_t *template, char text[static REPLY_TEMPLATE_MAX]);

/* How the count of a Fleet follows its queues; "" where its Scaling is null. Returns text. */
#define REPLY_SCALING_MAX 640
const char *reply_scaling(const json_t *scaling, char text[static REPLY_SCALING_MAX]);

/* What a Redis that is not connected keeps from being done. Returns text. */
#define REPLY_REDIS_MAX 1024
const char *reply_redis_away(const json_t *redis, char text[static REPLY_REDIS_MAX]);
