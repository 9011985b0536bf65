/* SPDX-License-Identifier: MIT */
/* A query that a reader answers. One function for each kind of query starts the work, and a callback of
 * redis/redis.h ends it. */
#pragma once

#include "frameworks/live_format.h"
#include "frameworks/redis_format.h"
#include "queries/answer.h"
#include "redis/redis.h"
#include "redis/redis_command.h"

struct queue_reader;
struct reader_server;

struct ask {
        struct reader_server *server;
        struct query_read read;
        struct answer answer; /* filled in by the functions of its kind */
        struct live_ask live; /* of a query that the live object of the server answers */
        void *work;           /* of the functions of its kind */
        struct ask *next;     /* see ask_keep() */
        void (*cancel)(struct ask *ask);
};

/* Sends the answer and frees the ask. */
void ask_done(struct ask *ask);
/* Ends the ask with the error that format describes; frees the ask. status: not ANSWER_OK. */
_printf_(3, 4) void ask_fail(struct ask *ask, enum answer_status status, const char *format, ...);
/* Ends the ask with this error, which is copied; frees the ask. status: not ANSWER_OK. */
void ask_fail_as(struct ask *ask, enum answer_status status, const struct error_report *error);
/* Writes that the server refused a command, and quotes the error in reply. */
void ask_quote_refusal(struct error_report *ret, const redisReply *reply);
/* Ends the ask because a command could not be sent. error: -errno. Frees the ask. */
void ask_fail_errno(struct ask *ask, int error);
/* Returns true, after ending the ask, if reply is NULL (connection lost) or an error of the server. */
bool ask_failed(struct ask *ask, const redisReply *reply);

/* Sends a command and clears it. callback gets the ask as its userdata, later. If the command cannot be sent,
 * the ask ends within this call. forbiddable: see redis_command_forbiddable(). */
void ask_command(struct ask *ask, redis_reply_fn callback, struct redis_command *command, bool forbiddable);

static inline const struct query *ask_query(const struct ask *ask)
{
        return &ask->read.query;
}

/* For work that needs the loop beside commands: cancel() ends the work if the server is freed before
 * ask_done(). */
void ask_keep(struct ask *ask, void (*cancel)(struct ask *ask));

/* A reading of queues, whose reader keeps measures between queries. */
struct queue_reading {
        struct queue_reader *queue_reader; /* NULL: none yet; the server frees it */
        struct ask *ask;                   /* in progress; NULL: none */
};
/* Returns the reading of named queues, or that of all queues. Owned by the server. */
struct queue_reading *ask_queue_reading(const struct ask *ask, bool named);

/* The server of the ask: */
struct redis *ask_redis(const struct ask *ask);
const struct redis_format *ask_format(const struct ask *ask);
const char *ask_namespace(const struct ask *ask); /* NULL: none */
sd_event *ask_event(const struct ask *ask);

/* Start the work of a query. Whatever happens, ask_done() or an ask_fail function is called exactly once,
 * within this call or later. */
void ask_heartbeat(struct ask *ask);
void ask_work_list(struct ask *ask);
void ask_scan(struct ask *ask);
void ask_requeue(struct ask *ask);
void ask_share(struct ask *ask);
void ask_rollout(struct ask *ask);
void ask_glance(struct ask *ask);
void ask_scanners(struct ask *ask);
void ask_scan_leave(struct ask *ask);
void ask_roster(struct ask *ask);
void ask_queues(struct ask *ask);
void ask_jobs(struct ask *ask);
void ask_diagnosis(struct ask *ask);
