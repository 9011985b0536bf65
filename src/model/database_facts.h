/* SPDX-License-Identifier: MIT */
/* Facts about the processes and jobs of a framework in a database, for doctor. */
#pragma once

#include "base/macro.h"

struct database_facts {
        char version[64];     /* of the server; "": not reported */
        bool read_only;       /* writes are refused, as by a standby */
        uint64_t forking;     /* processes of the host of the query that run in a mode which sqmgr cannot
                                 supervise */
        bool has_roles;       /* the framework has dispatchers and schedulers: */
        uint64_t dispatchers; /* with a current heartbeat, on all hosts */
        uint64_t schedulers;  /* the same */
        uint64_t recurring;   /* tasks that a scheduler enqueues */
        uint64_t paused_queues;
        uint64_t failed; /* jobs that the framework failed in the last hour because their process died */
};
