/* SPDX-License-Identifier: MIT */
/* The queues of one Redis, as last read, and which of them exceed their limits. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "settings/settings.h"

struct queue {
        char *name; /* owned */
        uint64_t size;
        bool latency_known;
        usec_t latency; /* how long the oldest job has waited; 0 if empty */
        bool paused;
};

struct queues {
        struct queue *list; /* owned; sorted by name after queues_sort() */
        size_t n;
        size_t left_out;                /* queues that were not read because there are too many */
        uint64_t retry, schedule, dead; /* sizes of these sets */
};

/* Accepts NULL. Returns NULL. */
struct queues *queues_free(struct queues *queues);

/* Appends an empty queue; copies name. Returns the queue, valid until the next call; NULL: out of memory. */
struct queue *queues_add(struct queues *queues, const char *name, size_t length);
void queues_sort(struct queues *queues);

/* A queue that exceeded a limit. */
struct queue_over {
        char *name; /* owned */
        bool late;  /* the latency exceeds its limit; otherwise only the size does */
};

/* The queues of one Redis that exceeded a limit. */
struct queue_watch {
        struct queue_over *over; /* owned */
        size_t n;
};
void queue_watch_clear(struct queue_watch *watch);

#define QUEUE_WATCH_TEXT_MAX 1024

/* Compares queues with the limits in settings. over, back: the queues that newly exceed a limit and that no
 * longer do, in words; "": none. A queue whose latency exceeded its limit still does while it has jobs and
 * the latency is unknown. Returns 0, or -ENOMEM with nothing changed. */
int queue_watch_judge(struct queue_watch *watch, const struct queues *queues,
                      const struct redis_settings *settings, char over[static QUEUE_WATCH_TEXT_MAX],
                      char back[static QUEUE_WATCH_TEXT_MAX]);

/* Returns true if any limit is set. */
bool queue_watch_wanted(const struct redis_settings *settings);

/* Returns true if list contains name. list: names, each terminated by a NUL, the last one by two; NULL:
 * empty. */
bool queue_names_have(const char *list, const char *name);
