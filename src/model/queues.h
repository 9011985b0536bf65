/* SPDX-License-Identifier: MIT */
/* The queues of one Redis: what was read of them, and which are over their limits. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "settings/settings.h"

struct queue {
        char *name; /* owned */
        uint64_t size;
        bool latency_known;
        usec_t latency; /* how long its oldest job waits; 0 where it is empty */
        bool paused;
};

struct queues {
        struct queue *list; /* owned, by name once read */
        size_t n;
        size_t left_out;                /* queues that were not read, for their number */
        uint64_t retry, schedule, dead; /* their sizes */
};

/* Takes NULL, too. Returns NULL. */
struct queues *queues_free(struct queues *queues);

/* Adds an empty queue of that name. Returns it, valid until the next is added; NULL: memory is short. */
struct queue *queues_add(struct queues *queues, const char *name, size_t length);
void queues_sort(struct queues *queues);

/* The queues of one Redis that were over a limit. */
struct queue_watch {
        char **over; /* owned: their names */
        size_t n;
};
void queue_watch_clear(struct queue_watch *watch);

#define QUEUE_WATCH_TEXT_MAX 1024

/* Compares queues with the limits of settings. over and back: those that are now and were not, and those that
 * were and are not, in words; "": none. Returns 0, or -ENOMEM with nothing changed. */
int queue_watch_judge(struct queue_watch *watch, const struct queues *queues,
                      const struct redis_settings *settings, char over[static QUEUE_WATCH_TEXT_MAX],
                      char back[static QUEUE_WATCH_TEXT_MAX]);

/* Is there any limit? */
bool queue_watch_wanted(const struct redis_settings *settings);

/* Does a list have this name? list: names, each ended by a NUL, the last by two; NULL: it has none. */
bool queue_names_have(const char *list, const char *name);
