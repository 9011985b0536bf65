/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue. */
#pragma once

#include "observe/rescue.h"
#include "redis/redis.h"

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
