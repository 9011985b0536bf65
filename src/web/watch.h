/* SPDX-License-Identifier: MIT */
/* Asks the instances: each second while somebody looks, else every five; metrics when they are wanted. So
 * what sqmgr has to do does not depend on how many look. */
#pragma once

#include "base/usec.h"
#include "web/instances.h"
#include <systemd/sd-event.h>

struct watch;

/* They come out of the loop, never out of a call of watch_*(), and must not free the watch. */
struct watch_ops {
        /* Whoever was asked has answered, or does not: instances_*() tell. news: the events that came, the
         * oldest first, borrowed. */
        void (*reported)(void *userdata, json_t *news);
        /* What watch_ask_metrics() asked for is there, as far as it comes. */
        void (*metrics_reported)(void *userdata);
};

/* sockets and ops are not copied. Returns 0 or -errno; *ret is to be freed by watch_free(). */
int watch_new(struct watch **ret, sd_event *event, const char *const *sockets, size_t n_sockets,
              const struct watch_ops *ops, void *userdata);
/* Returns NULL, as watch may be. */
struct watch *watch_free(struct watch *watch);

const struct instances *watch_instances(const struct watch *watch);

/* Somebody looks now. */
void watch_poll(struct watch *watch);
/* So many look all the time from now on. */
void watch_set_viewers(struct watch *watch, unsigned n);

/* Returns true where they are asked for: metrics_reported() follows. False: those of a moment ago will do. */
bool watch_ask_metrics(struct watch *watch);
