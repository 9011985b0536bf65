/* SPDX-License-Identifier: MIT */
/* A connection to one sqmgr: sends queries one at a time and reconnects automatically. */
#pragma once

#include "wire/reply.h"
#include <systemd/sd-event.h>

struct instance_client;

/* answered() and lost() are called only from the event loop, never from within instance_client_*().
 * parameters() is also called from within instance_client_ask(). Callbacks must not free the client. */
struct instance_client_ops {
        /* Returns the parameters of a query, a new reference. NULL: none, or memory is short, which is
         * harmless. */
        json_t *(*parameters)(void *userdata, enum instance_query question);
        /* answer is borrowed; NULL: sqmgr returned an error. */
        void (*answered)(void *userdata, enum instance_query question, json_t *answer);
        /* The connection failed or was lost; called again at each failed attempt. Pending queries are
         * dropped. */
        void (*lost)(void *userdata, const char *error);
};

struct instance_client_limits {
        size_t reply_bytes;      /* a longer reply, or one beyond reply_limits, ends the connection */
        usec_t answer_usec;      /* a reply that takes longer ends the connection */
        usec_t backoff_min_usec; /* delay before the next attempt, doubled after each failure */
        usec_t backoff_max_usec; /* maximum delay */
};

extern const struct instance_client_limits instance_client_default_limits;

/* The strings are not copied. */
struct instance_address {
        const char *path;
        const char *name; /* of the instance, which must answer by it; NULL: only the path is known */
};

/* Starts to connect. Queries status, events and queues after each connect. limits and ops are not copied.
 * Returns 0 or -errno. Free *ret with instance_client_free(). */
int instance_client_new(struct instance_client **ret, sd_event *event, struct instance_address address,
                        const struct instance_client_limits *limits, const struct instance_client_ops *ops,
                        void *userdata);
/* instance_client may be NULL. Returns NULL. */
struct instance_client *instance_client_free(struct instance_client *instance_client);

/* Sends the query as soon as possible; repeated calls until then send it once. Does nothing without a
 * connection. */
void instance_client_ask(struct instance_client *instance_client, enum instance_query question);
/* Returns true if the query is pending: not yet sent, or not yet answered. */
bool instance_client_awaits(const struct instance_client *instance_client, enum instance_query question);
