/* SPDX-License-Identifier: MIT */
/* How a framework keeps its data in Redis, as the reader process needs it. */
#pragma once

#include "observe/match.h"
#include "observe/rescue.h"
#include "redis/redis.h"

struct running_jobs_format; /* frameworks/redis_running_jobs.h */
struct queues_format;       /* frameworks/queue_reader.h */
struct redis_command;
struct traits;

/* Called with each identity of a set. Returns 0 or -errno. */
typedef int (*identity_fn)(const struct match_found *found, void *userdata);

/* How a framework stores its heartbeats: a set of identities, and one or two commands to read each of them.
 * An identity begins with the host and a colon and contains the pid. namespace: of redis-namespace; NULL or
 * "": none. */
struct heartbeat_format {
        char *(*key)(const char *namespace, const char *name, const char *suffix); /* like decode_key() */
        const char *set; /* the name of the set's key */
        /* Set both or neither; together they replace SSCAN. ask_list makes the one command that reads the
         * whole set. take_list decodes its reply: it builds an identity that contains host and pid for
         * each member and calls found. take_list returns 0 or -errno, including that of found. */
        void (*ask_list)(const char *set_key, struct redis_command *ret);
        int (*take_list)(const struct redisReply *reply, identity_fn found, void *userdata);
        /* Like that of struct framework. */
        bool (*identity_parse)(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
        /* Makes the command that reads a heartbeat. with_info: read the constant data of the process too.
         * Returns 0 or -ENOMEM. */
        int (*ask_heartbeat)(const char *namespace, const char *identity, bool with_info,
                             struct redis_command *ret);
        /* Decodes the reply. Returns true if the reply is a heartbeat; the work list in *ret stays
         * unknown. If *info is NULL, *info is set to the constant data in one allocation that the caller
         * owns, or stays NULL. */
        bool (*take_heartbeat)(const struct redisReply *reply, struct heartbeat *ret,
                               struct heartbeat_info **info);
        /* For a framework whose heartbeat does not contain the outcomes of jobs; both are NULL otherwise.
         * ask_outcomes makes the command that reads them, and returns 0 or -ENOMEM. take_outcomes decodes its
         * reply. */
        int (*ask_outcomes)(const char *namespace, const char *identity, struct redis_command *ret);
        struct worker_outcomes (*take_outcomes)(const struct redisReply *reply);
        /* Makes the command that follows ask_heartbeat if the traits have a work list. The command counts
         * the existing keys of the work list. Returns 0 or -ENOMEM. */
        int (*ask_work_list)(const char *namespace, const char *identity, struct redis_command *ret);
};

struct requeue_request {
        const char *namespace;
        const char *identity; /* of the work list that holds the job */
        const struct job *job;
        bool puts_back;  /* else the job is only reported, and stays in the work list */
        unsigned limit;  /* how often it is put back */
        const char *why; /* how the job's process ended */
        usec_t realtime; /* wall clock, now */
};

/* How a framework puts jobs back. The job moves only once, however many hosts try. */
struct requeue_format {
        /* Sends one command. Returns 0; -ENOTCONN or -ENOMEM: callback is not called. */
        int (*send)(struct redis *redis, const struct requeue_request *request, redis_reply_fn callback,
                    void *userdata);
        /* Takes the reply, which is not an error. *times: how often the job has been put back; 0 unless it
         * was now. Returns false if the reply is not understood. */
        bool (*take)(const struct redisReply *reply, enum rescue_outcome *outcome, unsigned *times);
};

struct redis_format {
        const struct traits *traits;
        const struct heartbeat_format *heartbeats;      /* NULL: only the queues are in Redis */
        const struct running_jobs_format *running_jobs; /* NULL if the traits have no work list */
        const struct queues_format *queues;             /* NULL: queues are unknown */
        const struct requeue_format *requeue;           /* NULL if the traits have no rescue */
        /* The suffix of the key, beside that of an identity, with the list of signals that its process takes
         * from the end, one at each heartbeat. NULL if not traits.signals_by_server. */
        const char *signals_suffix;
};

extern const struct redis_format sidekiq_redis_format, native_redis_format, rq_redis_format,
        resque_redis_format, celery_redis_format, bullmq_redis_format;

/* Returns the format of the framework with this id (struct traits); NULL: it has none. */
const struct redis_format *redis_format_of(unsigned id);
