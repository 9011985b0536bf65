/* SPDX-License-Identifier: MIT */
/* The operations that differ between frameworks. The properties that settings and model need are in struct
 * traits. */
#pragma once

#include "frameworks/title.h"
#include "observe/rescue.h"
#include "settings/traits.h"

struct heartbeat_info;   /* what the framework stores about a process that sends heartbeats */
struct heartbeat_format; /* heartbeat_format.h */
struct heartbeat;
struct redis;

struct requeue_request {
        struct redis *redis;
        const char *namespace;
        const char *identity; /* whose work list holds the job */
        const struct job *job;
        const struct fleet_settings *settings; /* rescue_jobs and rescue_limit decide where the job goes */
        const char *why;                       /* how the job's process ended */
        usec_t realtime;                       /* wall clock, now */
};

struct requeue; /* a request in progress */

/* error: NULL, or why the fate of the job is unknown; the caller may then retry. Called once, never from
 * within begin(). The request is freed when the callback returns. */
typedef void (*requeue_fn)(enum rescue_outcome outcome, unsigned times, const char *error, void *userdata);

/* Puts a job of a dead process back into its queue. The job moves only once, however many hosts try. If
 * the job is only to be reported, it stays in the work list. */
struct requeue_ops {
        /* Returns 0 with *ret; -ENOTCONN or -ENOMEM: done is not called. */
        int (*begin)(const struct requeue_request *request, requeue_fn done, void *userdata,
                     struct requeue **ret);
        /* Not allowed within done. Afterwards done is never called, and the fate of the job stays unknown.
         * Takes NULL. Returns NULL. */
        struct requeue *(*free)(struct requeue *requeue);
};

struct framework {
        const struct traits *traits;
        int quiet_signal; /* 0: quieting is stopping; stop_signal is sent once */
        int stop_signal;
        int cut_off_signal; /* replaces stop_signal for a worker that may run jobs, once these are no longer
                             * waited for; 0: stop_signal */
        int wake_signal;    /* sent right after stop_signal so that a stopped process handles that; 0: none */
        int dump_signal;    /* see traits.can_dump; 0: none */
        /* True if a thread of this name runs jobs. info: what the process reported about itself; NULL:
         * unknown. The member is NULL if the traits have no job threads. */
        bool (*thread_is_processor)(const char *comm, const struct heartbeat_info *info);
        /* Returns false if the title is not that of a booted worker. NULL: titles show nothing. */
        bool (*title_parse)(const char *title, struct title *ret);
        bool title_may_lack; /* the application may lack the library that sets titles: a missing title proves
                              * nothing */
        const struct heartbeat_format *heartbeats; /* NULL: its heartbeats are not in Redis */
        /* Decodes the text of a heartbeat file. Returns false, with *ret untouched, if the text is not a
         * heartbeat. NULL: the framework writes no heartbeat files. */
        bool (*take_record)(const char *text, size_t len, struct heartbeat *ret);
        bool has_queues; /* its queues can be read */
        /* Returns the queue names that a process reported: each name ends with a NUL, the list with two;
         * NULL: none reported. The member is set only if the traits say that workers report their queues. */
        const char *(*queue_names)(const struct heartbeat_info *info);
        const struct requeue_ops *requeue; /* NULL if the traits have no rescue */
};
