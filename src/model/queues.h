/* SPDX-License-Identifier: MIT */
/* The queues of one Redis, as last read, and which of them exceed their limits. */
#pragma once

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
        usec_t target; /* for autoscaling: no job shall wait longer; 0: the queue is ignored */
};

struct queues {
        struct queue *list; /* owned; sorted by name after queues_sort() */
        size_t n;
        size_t left_out;                /* queues that were not read because there are too many */
        uint64_t retry, schedule, dead; /* sizes of these sets */
        usec_t service;                 /* how long any job takes; 0: unknown */
};

/* Loops over queues, which may be NULL; declares item, a pointer to each. */
#define QUEUES_FOREACH(of, item)                                                                             \
        for (__auto_type item = (of) ? (of)->list : NULL; item && item < (of)->list + (of)->n; item++)

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

/* Latencies of queues whose jobs carry no time: the length of a queue, divided by the jobs per second that
 * the workers of its fleets have ended within about a minute. A worker that serves several queues counts in
 * full for each of them, and jobs that a worker holds ahead are not in the queue, so the estimate is low.
 * Times are of the monotonic clock. */

/* The window of a rate has two parts of this length: the one before is complete, the current one is not. */
#define LATENCY_PART_USEC (30 * USEC_PER_SEC)
/* Less than this gives no rate. */
#define LATENCY_LEAST_USEC (10 * USEC_PER_SEC)
/* Queues that were not read for longer may have been empty meanwhile. */
#define LATENCY_UNREAD_USEC (2 * USEC_PER_MIN)
/* Longer estimates are cut. */
#define LATENCY_MAX_USEC (365 * USEC_PER_DAY)

/* The jobs that the workers of one fleet have ended. Starts zeroed. */
struct latency_work {
        usec_t since[2];   /* start of the part before, and of the current one; 0: none */
        uint64_t ended[2]; /* jobs in these parts */
        usec_t moved_at;   /* when a job ended, or none was found to wait; 0: never */
        usec_t read_at;    /* the last reading of the fleet's queues; 0: none */
};

/* Records that a worker of the fleet has reported `ended` jobs since its last report. The first report only
 * starts the window. */
void latency_count(struct latency_work *work, uint64_t ended, usec_t now);

/* The progress of one queue. Starts zeroed. */
struct latency_flow {
        bool known;
        double rate; /* jobs per second */
        usec_t moved_at;
};

/* Adds a fleet that serves these queues (queue_names_have()) to flows, an element for each of queues, which
 * have their sizes. Has no effect if the fleet serves none of them. */
void latency_add(struct latency_flow *flows, const struct queues *queues, struct latency_work *work,
                 const char *served, usec_t now);

/* Sets the latencies once all fleets are added:
 *
 * - an empty queue: 0;
 * - no fleet with enough data: unknown;
 * - no job has ended within the window: the time since one has, or since none waited;
 * - otherwise: size / rate. */
void latency_judge(struct queues *queues, const struct latency_flow *flows, usec_t now);
