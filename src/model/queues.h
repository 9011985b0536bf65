/* SPDX-License-Identifier: MIT */
/* The queues of one Redis, as last read, and which of them exceed their limits. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "settings/settings.h"

/* At most this many queues are read; the number of queues left out is reported. A longer name is left out. */
#define QUEUES_READ_MAX 1000
#define QUEUE_NAME_MAX  255
/* Queues of one server that are read by name; those with a target come first. */
#define QUEUES_NAMED_MAX 64
/* More jobs than a server can hold. */
#define QUEUE_JOBS_MAX UINT64_C(1000000000000)
/* How many job classes of a queue have a known duration, and the longest duration. */
#define QUEUE_CLASSES_MAX 16
#define QUEUE_SERVICE_MAX (30 * USEC_PER_DAY)

struct queue {
        char *name; /* owned */
        uint64_t size;
        bool latency_known;
        usec_t latency; /* how long the oldest job has waited; 0 if empty */
        bool paused;
        bool due_known; /* scheduled jobs were read, and the queue has one */
        usec_t due_in;  /* time until the first of them falls due; 0: it is due */
        /* As the framework itself has measured: of how many classes of its jobs the duration is known, and
         * the sum of these durations. */
        unsigned n_classes;
        usec_t service;
};

struct queues {
        struct queue *list; /* owned; sorted by name after queues_sort() */
        size_t n;
        size_t left_out;                /* queues that were not read because there are too many */
        uint64_t retry, schedule, dead; /* sizes of these sets */
        usec_t service;                 /* how long any job takes; 0: unknown */
};

/* The result of a reading of queues. */
struct queues_reading {
        struct queues *queues; /* owned; NULL: the reading failed */
        bool done_known;       /* `done` is valid: the total of jobs ever done in this Redis */
        uint64_t done;
};

/* Accepts NULL. Returns NULL. */
struct queues *queues_free(struct queues *queues);

/* Appends an empty queue; copies name. Returns the queue, valid until the next call; NULL: out of memory. */
struct queue *queues_add(struct queues *queues, const char *name, size_t length);
void queues_sort(struct queues *queues);
/* Returns how long a job of these queues takes: the mean over the classes of known duration, or else of any
 * job; 0: unknown. */
usec_t queues_service(const struct queues *queues);

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
/* Returns the bytes of such a list, which is not NULL, without the last NUL. */
size_t queue_names_length(const char *list);
