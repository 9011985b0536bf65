/* SPDX-License-Identifier: MIT */
/* Facts that a process that sends heartbeats has reported about itself, constant for its life. */
#pragma once

#include "model/worker.h"

#define HEARTBEAT_CAPSULES_MAX 16
#define HEARTBEAT_COMM_MAX     15 /* bytes of a thread's name that the kernel keeps */
#define HEARTBEAT_QUEUES_MAX   4096

struct heartbeat_info {
        unsigned concurrency; /* 0: not reported here */
        uint64_t born_usec;   /* when it registered, by its wall clock; 0: not reported here */
        size_t n_capsules;    /* groups of threads; 0: not reported. Further ones are dropped */
        char capsules[HEARTBEAT_CAPSULES_MAX][HEARTBEAT_COMM_MAX + 1]; /* names, truncated */
        /* The queues that the process serves, each once: each name ends with a NUL, the list with two. Names
         * beyond HEARTBEAT_QUEUES_MAX bytes, empty names, and names that contain a NUL are dropped. */
        char queues[];
};

/* Returns the queues, for struct framework.queue_names; NULL: none reported, or info is NULL. */
static inline const char *heartbeat_info_queues(const struct heartbeat_info *info)
{
        return info && info->queues[0] != '\0' ? info->queues : NULL;
}

struct heartbeat_record {
        struct heartbeat heartbeat;
        struct job_list jobs;        /* the running jobs that the file names */
        struct heartbeat_info *info; /* owned; NULL: the file names no queue */
};

static inline void heartbeat_record_clear(struct heartbeat_record *record)
{
        job_list_clear(&record->jobs);
        free(record->info);
        record->info = NULL;
}
