/* SPDX-License-Identifier: MIT */
/* The content of a heartbeat file. */
#pragma once

#include "model/heartbeat_info.h"
#include "model/worker.h"

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
