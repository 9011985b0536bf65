/* SPDX-License-Identifier: MIT */
/* How the reader process observes a framework whose workers write no heartbeat record of their own: by events
 * that they publish, by the list of the server's clients, by what they answer to a request. The reader has
 * one live object for each server, made when the server is configured. The object answers the queries about
 * heartbeats, from memory or later.
 *
 * An identity of such a worker is also `HOST:PID:...`, so sqmgr's side (frameworks/server_heartbeats.c) is
 * the same as for records. A scan costs the server nothing, so hosts need no permit for it: the reader
 * answers QUERY_SCANNERS itself. */
#pragma once

#include "queries/answer.h"
#include <systemd/sd-event.h>

struct live;  /* each framework defines its own */
struct redis; /* redis/redis.h */
struct redisReply;

/* A query that a live object answers. */
struct live_ask {
        const struct query *query; /* each text is followed by a NUL: see query_text() */
        /* All zeros but the kind. The live object fills in the member of the kind, within its bounds. */
        struct answer *answer;
        /* Sends the answer and frees the ask. Call exactly once: from within the function that was asked, or
         * later. */
        void (*done)(struct live_ask *ask);
        struct live_ask *next; /* for lists of the live object: live_ask_add() */
        uint64_t number;       /* for the live object */
};

typedef void (*live_ask_fn)(struct live *live, struct live_ask *ask);

/* The part of a reader that a live object uses. All of it outlives the object, apart from the connections:
 * they may be freed right before it, and all their callbacks have run then. */
struct live_server {
        sd_event *event;
        struct redis *redis; /* for commands: redis_command_forbiddable(); reconnects by itself */
        /* The connection of a format that subscribes, for redis_subscribe(); NULL: it does not. */
        struct redis *subscriber;
        const char *namespace; /* of redis-namespace; NULL or "": none */
        unsigned database;     /* the number in the URL */
        bool sentinels;        /* the server is the master that Sentinels name */
};

struct live_format {
        bool subscribes; /* needs struct live_server.subscriber */
        /* Returns the key that a connection must be able to read to count as up, which the caller frees;
         * NULL: out of memory. */
        char *(*probe_key)(const char *namespace);
        /* Returns 0 with *ret, or -errno. Called before the loop runs the connections. server stays valid. */
        int (*begin)(const struct live_server *server, struct live **ret);
        /* Ends all asks that it holds (live_asks_end()), and frees the object. */
        void (*end)(struct live *live);
        /* By enum query_kind: QUERY_HEARTBEAT, QUERY_SCAN, and as the traits require QUERY_WORK_LIST,
         * QUERY_JOBS, QUERY_SIGNAL. A QUERY_SCAN is answered with one page: the cursor stays "". NULL: the
         * reader answers the kind as for records, or refuses it. */
        live_ask_fn asks[_QUERY_KIND_MAX];
};

/* Appends an ask to a list. */
void live_ask_add(struct live_ask **list, struct live_ask *ask);
/* Ends the ask with the error that format describes. status: not ANSWER_OK. */
_printf_(3, 4) void live_ask_fail(struct live_ask *ask, enum answer_status status, const char *format, ...);
/* Ends all asks of a list as ANSWER_LOST, and empties the list. */
void live_asks_end(struct live_ask **list);
/* Returns true, after ending the ask, if reply is NULL (connection lost) or an error of the server. */
bool live_ask_failed(struct live_ask *ask, const struct redisReply *reply);
/* Adds an identity to the answer to QUERY_SCAN, if the query asks for its host and the answer has room.
 * Returns 0, or -ENOMEM. */
int live_scan_add(struct live_ask *ask, const char *identity, size_t host_len, pid_t pid);
