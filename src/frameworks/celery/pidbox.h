/* SPDX-License-Identifier: MIT */
/* Sends requests to the control mailbox of Celery workers, and collects their replies from a list.
 *
 * The list has a random name, and an expiry from before the first reply: a placeholder element keeps it. So
 * nothing remains in Redis after kill -9. */
#pragma once

#include "frameworks/celery/message.h"
#include "frameworks/celery/names.h"
#include "wire/quoted.h"
#include <systemd/sd-event.h>

struct redis;

struct pidbox;

/* Requests that are sent together, in this order: each worker executes them in order. */
struct pidbox_round {
        const enum celery_method *methods;
        size_t n_methods;
        const char *const *nodes; /* at least one, or all workers if NULL */
        size_t n_nodes;
};

struct pidbox_ops {
        /* A reply to a request that was sent at asked_at. readable: false if what it lists cannot be read.
         * The callee may take parts of the reply. */
        void (*on_reply)(struct celery_reply *reply, bool readable, usec_t asked_at, void *userdata);
        /* The round has ended: all nodes have replied to all of it, or its time is over. Another may begin.
         */
        void (*on_end)(void *userdata);
};

/* redis, names and ops must stay valid; redis may be freed before. Returns 0 with *ret, to be freed by
 * pidbox_free(); or -errno. */
int pidbox_new(sd_event *event, struct redis *redis, const struct celery_names *names,
               const struct pidbox_ops *ops, void *userdata, struct pidbox **ret);
/* Accepts NULL; returns NULL. Call after redis was freed, so that no callback follows. */
struct pidbox *pidbox_free(struct pidbox *pidbox);

/* Begins a round. on_end() is called later, unless an error is returned: -EBUSY during a round, -ENOTCONN or
 * -ENOMEM. */
int pidbox_begin(struct pidbox *pidbox, const struct pidbox_round *round);
bool pidbox_is_busy(const struct pidbox *pidbox);
/* Sends a request without a reply. Returns 0, -ENOTCONN or -ENOMEM. */
int pidbox_send(struct pidbox *pidbox, const struct celery_request *request);
/* The last command that the server has refused, as an error; NULL: none was, or the last round went well. */
const struct error_report *pidbox_error(const struct pidbox *pidbox);
