/* SPDX-License-Identifier: MIT */
/* The connections to Redis: one for each server and framework that fleets name. */
#pragma once

#include "daemon/runtime/wakeup.h"
#include "frameworks/heartbeats.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_running_jobs.h"
#include "io/redis.h"
#include "model/queues.h"

struct fleet;
struct worker;
struct world;

/* What autoscaling keeps of one link, as the first member of a struct of its own. end() is called before the
 * connection is closed, and frees it. */
struct link_user {
        void (*end)(struct link_user *user);
};

/* One Redis as one framework uses it, with the fleets whose heartbeats are there: their link. */
struct link {
        struct links *links;
        const struct framework *framework;
        char *url;         /* NULL: the Sentinels of the settings name the server */
        char *server_text; /* the master that was used last, of those that they named; NULL: none yet */
        struct redis *redis;
        struct heartbeats *heartbeats;
        struct queue_reader *queue_reader; /* NULL: not needed yet; see queue_reading.h, as for those below */
        struct queues *queues;             /* as last read; NULL: they could not be, see queues_error */
        char queues_error[256];
        bool queues_error_reported; /* while Redis answers, and limits wait for it */
        struct queue_watch queue_watch;

        struct link_user *user; /* owned; NULL: none */
};

struct links {
        sd_event *event; /* not owned; nor are turn and world */
        struct wakeup *wakeup;
        struct world *world;
        /* The worker was found to beat as process pid. */
        void (*found)(struct worker *worker, pid_t pid, usec_t now);
        char host_name[256]; /* this machine's, as the workers see it, when it was last asked; "": never */
        struct link **list;
        size_t n;
        bool reads_queues; /* the queues of all links are being read; see queue_reading.h */
};

/* Makes those that fleets of these settings need. Returns 0 or -errno. */
int links_make(struct links *links, const struct settings *settings);
/* Gives each fleet of the world its own, and ends those that none needs. */
void links_join(struct links *links);
/* This machine's name, as the workers see it. */
const char *links_host_name(struct links *links);
/* Makes *ret, where that is NULL, a reader of its queues. Returns 0 or -ENOMEM. */
int link_open_queues(struct link *link, queues_reading_fn callback, struct queue_reader **ret);
/* Reads the work lists of n identities at this link; see redis_running_jobs_read(). */
int link_read_running_jobs(const struct link *link, const char *const *identities, size_t n,
                           running_jobs_fn done, void *userdata, struct running_jobs **ret);
/* Once no process of a worker is held any more. */
void links_end(struct links *links);
