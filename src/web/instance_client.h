/* SPDX-License-Identifier: MIT */
/* One connection to one sqmgr: asks, one question after another, and connects again by itself. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <jansson.h>
#include <systemd/sd-event.h>

/* In the order in which they are asked where several are due. */
enum instance_query {
        INSTANCE_QUERY_STATUS,
        INSTANCE_QUERY_EVENTS,
        INSTANCE_QUERY_QUEUES,
        INSTANCE_QUERY_METRICS,
        INSTANCE_QUERY_ROLLOUTS,
        _INSTANCE_QUERY_MAX,
};

struct instance_client;

/* They come out of the loop, never out of a call of instance_client_*(), and must not free the link. */
struct instance_client_ops {
        /* What is asked with; NULL: nothing, or memory is short, which is no harm. */
        json_t *(*parameters)(void *userdata, enum instance_query question);
        /* answer is borrowed; NULL: sqmgr refused the question. */
        void (*answered)(void *userdata, enum instance_query question, json_t *answer);
        /* The connection is lost, or there is none yet; told again with each try. What was asked is
         * forgotten. */
        void (*lost)(void *userdata, const char *error);
};

struct instance_client_limits {
        size_t reply_bytes;      /* a longer reply ends the connection */
        usec_t answer_usec;      /* so does one that does not come for so long */
        usec_t backoff_min_usec; /* until the next try, doubled each time that it is in vain */
        usec_t backoff_max_usec; /* up to this */
};

extern const struct instance_client_limits instance_client_default_limits;

/* Begins to connect to path, and asks for status, events and queues as soon as it is connected. path is not
 * copied, as limits and ops are not. Returns 0 or -errno; *ret is to be freed by instance_client_free(). */
int instance_client_new(struct instance_client **ret, sd_event *event, const char *path,
                        const struct instance_client_limits *limits, const struct instance_client_ops *ops,
                        void *userdata);
/* Returns NULL, as link may be. */
struct instance_client *instance_client_free(struct instance_client *instance_client);

/* Asks as soon as it can, once however often it is called until then. Without a connection it is not asked.
 */
void instance_client_ask(struct instance_client *instance_client, enum instance_query question);
/* Is an answer still to come? */
bool instance_client_awaits(const struct instance_client *instance_client, enum instance_query question);
