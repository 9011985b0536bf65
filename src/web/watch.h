/* SPDX-License-Identifier: MIT */
/* Polls the instances: each second while there are viewers, otherwise every five seconds. Metrics are queried
 * on demand. The load on sqmgr does not depend on the number of viewers. */
#pragma once

#include "base/locate.h"
#include "web/instances.h"
#include <systemd/sd-event.h>

struct watch;

/* Callbacks are called only from the event loop, never from within watch_*(). Callbacks must not free the
 * watch. */
struct watch_ops {
        /* Data may have changed, see watch_instances(): all queried instances have answered or failed, or
         * some have not by the time of the next poll. news: new events, the oldest first, borrowed; may be
         * NULL. */
        void (*reported)(void *userdata, json_t *news);
        /* The metrics queried by watch_ask_metrics() are available, as far as instances answered. */
        void (*metrics_reported)(void *userdata);
};

/* The instances that are polled: those with these sockets; if n is 0, those that find_instances()
 * finds now or at a later poll. An instance that was found stays. */
struct watch_places {
        const char *const *sockets;
        size_t n;
        const char *runtime_dir, *enabled_dir;
};

/* places, its strings and ops are not copied. Returns 0 or -errno. Free *ret with watch_free(). */
int watch_new(struct watch **ret, sd_event *event, const struct watch_places *places,
              const struct watch_ops *ops, void *userdata);
/* watch may be NULL. Returns NULL. */
struct watch *watch_free(struct watch *watch);

const struct instances *watch_instances(const struct watch *watch);

/* A client is looking now: polls each second for a while. */
void watch_poll(struct watch *watch);
/* Sets the number of permanent viewers. */
void watch_set_viewers(struct watch *watch, unsigned n);

/* Returns true if metrics were queried: metrics_reported() follows. Returns false if the present metrics are
 * recent enough. */
bool watch_ask_metrics(struct watch *watch);

#define FIND_INSTANCES_ENABLED "/etc/systemd/system/multi-user.target.wants"

/* instance is valid during the call; its owner is not set. */
typedef void (*find_instances_found)(void *userdata, const struct located *instance);

/* Calls found() for each system instance, in order of names. Instances are all enabled units, running or not,
 * and all that locate_instances() finds in runtime_dir; some are found twice. */
void find_instances(const char *runtime_dir, const char *enabled_dir, find_instances_found found,
                    void *userdata);
