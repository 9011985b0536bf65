/* SPDX-License-Identifier: MIT */
/* A query that a Redis answers. One function for each kind of query starts the work, and a callback
 * of redis/redis.h ends it. */
#pragma once

#include "frameworks/redis_format.h"
#include "redis/redis.h"
#include "redis/redis_command.h"
#include "servers/server.h"

struct queue_reader;

/* A reading of queues, whose reader keeps measures between queries. */
struct queue_reading {
        struct queue_reader *queue_reader; /* NULL: none yet; the backend frees it */
        struct ask *ask;                   /* in progress; NULL: none */
};

/* The part of the backend that the queries use: its first member. */
struct redis_link {
        struct redis *redis;
        const struct redis_format *format;
        char *namespace;                        /* owned; NULL: none */
        struct queue_reading queue_readings[2]; /* of all queues; of named ones */
};

/* Returns true, after ending the ask, if reply is NULL (connection lost) or an error of the server. */
bool ask_failed(struct ask *ask, const redisReply *reply);

/* Ends the ask, whose answer is its status alone. */
void ask_done_unless_failed(struct ask *ask, const redisReply *reply);

/* Sends a command and clears it. callback gets the ask as its userdata, later. If the command cannot be sent,
 * the ask ends within this call, which returns false. forbiddable: see redis_command_forbiddable(). */
bool ask_command(struct ask *ask, redis_reply_fn callback, struct redis_command *command, bool forbiddable);

/* The server of the ask: */
struct redis *ask_redis(const struct ask *ask);
const struct redis_format *ask_format(const struct ask *ask);
const char *ask_namespace(const struct ask *ask); /* NULL: none */

/* Start the work of a query. Whatever happens, ask_done() or an ask_fail function is called exactly once,
 * within this call or later. */
void ask_heartbeat(struct ask *ask);
void ask_work_list(struct ask *ask);
void ask_scan(struct ask *ask);
void ask_requeue(struct ask *ask);
void ask_signal(struct ask *ask);
void ask_scanners(struct ask *ask);
void ask_scan_leave(struct ask *ask);
void ask_queues(struct ask *ask);
void ask_jobs(struct ask *ask);
void ask_diagnosis(struct ask *ask);
