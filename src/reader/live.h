/* SPDX-License-Identifier: MIT */
/* The live object of a reader, for a framework that has one (frameworks/live_format.h). */
#pragma once

#include "frameworks/live_format.h"
#include "queries/configuration.h"
#include "redis/redis.h"

struct connector; /* redis/connection.h */

/* All zeros: the framework keeps records. */
struct reader_live {
        const struct live_format *format;
        struct live_server server;
        struct live *live;
};

struct reader_live_request {
        sd_event *event;
        const struct reader_configuration *configuration;
        struct redis *redis;         /* for commands */
        struct connector *connector; /* opens Unix sockets; NULL: the connection does so itself */
        redis_state_fn on_state;     /* of the connection that subscribes */
        void *userdata;
};

/* Makes the object, and its connection if it subscribes. Call before the loop runs the connections. Returns 0
 * or -errno; call reader_live_end() in both cases. */
int reader_live_begin(struct reader_live *live, const struct reader_live_request *request);
/* Call after redis was freed. Ends the asks that the object holds. */
void reader_live_end(struct reader_live *live);

/* Returns true if the object answers queries of this kind. */
bool reader_live_answers(const struct reader_live *live, enum query_kind kind);
/* Answers the query within this call, or later. */
void reader_live_ask(struct reader_live *live, struct live_ask *ask);
