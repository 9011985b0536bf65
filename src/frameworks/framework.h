/* SPDX-License-Identifier: MIT */
/* What the shell must do otherwise for each framework. What settings and model must know is in its traits. */
#pragma once

#include "frameworks/redis_beats.h"
#include "frameworks/title.h"
#include "observe/rescue.h"

struct queues;

/* One Redis as the workers see it. */
struct works_request {
        sd_event *event;
        struct redis *redis;   /* may be freed meanwhile */
        const char *namespace; /* of redis-namespace, NULL or "" for none */
        const char *const *identities;
        size_t n; /* of them, at least one */
};

struct works; /* a reading of work lists that is under way */

/* lists: one for each identity, in their order, until done returns: what is to stay is moved out of them.
 * error: NULL, or a sentence: then not all of them could be read. Called once, never from within read(); the
 * works is gone then. */
typedef void (*works_fn)(struct job_list *lists, const char *error, void *userdata);

/* Reads what processes run, of one Redis, in one round trip. */
struct works_ops {
        /* Decodes the lists in slices, between which the loop goes on. Returns 0 with *ret; -ENOTCONN,
         * -ENOMEM or another -errno of sd-event: done is not called. */
        int (*read)(const struct works_request *request, works_fn done, void *userdata, struct works **ret);
        /* Gives a reading up: done is not called any more. Takes NULL, and returns it. */
        struct works *(*free)(struct works *works);
};

struct queues_read; /* a reading of queues that is under way */

/* Called once, from the loop, with queues that are taken over; NULL: they could not be read, since Redis went
 * away, did not answer in time, or refused, which error says in a sentence that lives as long as the read.
 * That is to be freed, in it or later. */
typedef void (*queues_read_fn)(struct queues *queues, const char *error, void *userdata);

/* Reads the queues of one Redis. */
struct queues_ops {
        /* namespace: of redis-namespace, NULL or "" for none. redis must outlive it. Returns 0 with *ret to
         * be freed by free(); -ENOTCONN or -ENOMEM. */
        int (*read)(struct redis *redis, const char *namespace, queues_read_fn callback, void *userdata,
                    struct queues_read **ret);
        /* Nobody is called any more. Returns NULL. */
        struct queues_read *(*free)(struct queues_read *read);
};

struct demand; /* what some queues of one Redis ask for, as far as it is remembered */

/* What was read. error: NULL, or why it could not be, a sentence that lives as long as the call. */
struct demand_reading {
        struct queues *queues; /* those that were asked for, to be taken over; NULL: they could not be read */
        const char *error;
        bool done_known; /* all jobs of this Redis that were done, ever */
        uint64_t done;
};

/* Called once for each reading, from the loop. Not for freeing the demand. */
typedef void (*demand_fn)(struct demand_reading *reading, void *userdata);

/* Reads a few queues, and remembers what their jobs take. Lists of names are as struct autoscale has them. */
struct demand_ops {
        /* redis must outlive it. Returns 0 with *ret to be freed by free(), or -ENOMEM. */
        int (*new)(struct redis *redis, const char *namespace, demand_fn callback, void *userdata,
                   struct demand **ret);
        /* Begins a reading. realtime: by the wall clock. Returns 0; -EBUSY: the one before is under way;
         * -ENOTCONN or -ENOMEM. */
        int (*read)(struct demand *demand, const char *names, usec_t realtime);
        /* What a job of these queues takes, as the framework itself has measured it; 0: that is not known. */
        usec_t (*service)(const struct demand *demand, const char *names);
        /* Takes NULL, and returns it. */
        struct demand *(*free)(struct demand *demand);
};

struct crowd; /* the processes of one Redis that are nobody's here */

struct crowd_count {
        bool any;         /* there are some, whatever they serve */
        unsigned serving; /* those that take from these queues */
        double idle;      /* their threads that run nothing */
};

/* Counts them now and then, at a bounded share of what Redis can do. */
struct crowd_ops {
        /* is_ours: the process of this identity is one of ours. redis must outlive it. Returns 0 with *ret to
         * be freed by free(), or -ENOMEM. */
        int (*new)(struct redis *redis, const char *namespace,
                   bool (*is_ours)(const char *identity, size_t len, void *userdata), void *userdata,
                   struct crowd **ret);
        /* Begins a count where one is due. */
        void (*look)(struct crowd *crowd, usec_t now);
        /* As they were counted last. is_told: whether that one, which takes from these queues, is known
         * otherwise, and left out of all but `any`; NULL: none is. Returns false where they were not, or that
         * was long ago. */
        bool (*count)(const struct crowd *crowd, const char *names, usec_t now,
                      bool (*is_told)(const char *host, const char *queues, void *userdata), void *userdata,
                      struct crowd_count *ret);
        /* Takes NULL, and returns it. */
        struct crowd *(*free)(struct crowd *crowd);
};

struct requeue_request {
        struct redis *redis;
        const char *namespace;
        const char *identity; /* in whose work list the job stands */
        const struct job *job;
        const struct fleet_settings *settings; /* rescue_jobs and rescue_limit say where the job goes */
        const char *why;                       /* how its process ended */
        usec_t realtime;                       /* now, by the wall clock */
};

struct requeue; /* a request that is under way */

/* error: NULL, or why it is not known what became of the job: it may be asked again. Called once, never from
 * within the request, which is gone when it returns. */
typedef void (*requeue_fn)(enum rescue_outcome outcome, unsigned times, const char *error, void *userdata);

/* Puts a job of a dead process back into its queue: it is done once, however many try. Where it is only to be
 * told of it stays there. */
struct requeue_ops {
        /* Returns 0 with *ret; -ENOTCONN or -ENOMEM: done is not called. */
        int (*begin)(const struct requeue_request *request, requeue_fn done, void *userdata,
                     struct requeue **ret);
        /* Not in done. That is not called any more, and nobody learns what became of the job. Takes NULL, and
         * returns it. */
        struct requeue *(*free)(struct requeue *requeue);
};

struct framework {
        const struct traits *traits;
        int quiet_signal; /* 0 where quiet is stop: stop_signal, once */
        int stop_signal;
        int cut_off_signal; /* in its place to one that may run jobs, which are not waited for any more; 0:
                             * the same */
        int wake_signal;    /* sent right after stop_signal, that a frozen process sees that; 0: none */
        int dump_signal;    /* see traits.can_dump; 0: there is none */
        /* Is a thread of this name one that runs jobs? info: what the process told of itself, NULL: not
         * known. NULL where the traits have no job threads. */
        bool (*thread_is_processor)(const char *comm, const struct beat_info *info);
        /* Returns false where the title is not that of a worker that has booted. NULL: no title tells. */
        bool (*title_parse)(const char *title, struct title *ret);
        bool title_may_lack; /* its application need not have what sets titles: none is no proof */
        const struct beats_format *beats; /* NULL: its heartbeats stand in no Redis */
        /* Decodes the text of a file that holds one. Returns false, with *ret untouched, where it is none.
         * NULL: they stand in no file. */
        bool (*take_record)(const char *text, size_t len, struct heartbeat *ret);
        const struct works_ops *works;   /* NULL where the traits have no work list */
        const struct queues_ops *queues; /* NULL: they are not known */
        /* These three where the traits say that they tell their queues, and NULL else. The first: of what a
         * process told of itself, a list of names as struct autoscale has them, NULL: none. */
        const char *(*queue_names)(const struct beat_info *info);
        const struct demand_ops *demand;
        const struct crowd_ops *crowd;
        const struct requeue_ops *requeue; /* NULL where the traits have no rescue */
};
