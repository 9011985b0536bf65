/* SPDX-License-Identifier: MIT */
/* What the shell must do otherwise for each framework. What settings and model must know is in its traits. */
#pragma once

#include "frameworks/title.h"
#include "observe/rescue.h"
#include "settings/traits.h"

struct heartbeat_info;      /* what the framework notes of a process that beats */
struct heartbeat_format;    /* heartbeat_format.h */
struct running_jobs_format; /* redis_running_jobs.h */
struct queues_format;       /* queue_reader.h */
struct heartbeat;
struct redis;

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
        bool (*thread_is_processor)(const char *comm, const struct heartbeat_info *info);
        /* Returns false where the title is not that of a worker that has booted. NULL: no title tells. */
        bool (*title_parse)(const char *title, struct title *ret);
        bool title_may_lack; /* its application need not have what sets titles: none is no proof */
        const struct heartbeat_format *heartbeats; /* NULL: its heartbeats stand in no Redis */
        /* Decodes the text of a file that holds one. Returns false, with *ret untouched, where it is none.
         * NULL: they stand in no file. */
        bool (*take_record)(const char *text, size_t len, struct heartbeat *ret);
        const struct running_jobs_format *running_jobs; /* NULL where the traits have no work list */
        const struct queues_format *queues;             /* NULL: they are not known */
        /* Where the traits say that they tell their queues, and NULL else: of what a process told of itself,
         * the names, each ended by a NUL, the last by two; NULL: none. */
        const char *(*queue_names)(const struct heartbeat_info *info);
        const struct requeue_ops *requeue; /* NULL where the traits have no rescue */
};
