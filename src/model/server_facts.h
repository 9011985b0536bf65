/* SPDX-License-Identifier: MIT */
/* Facts that a server has reported, for doctor. */
#pragma once

#include "wire/quoted.h"

/* Settings and state of one Redis. */
struct redis_facts {
        bool has_info;        /* the members down to info_error are from INFO; false: INFO was refused, see
                                 info_error */
        bool has_limit;       /* maxmemory is set */
        bool snapshot_failed; /* the last snapshot failed */
        bool is_appending;    /* appendonly is set */
        uint64_t evicted;     /* keys, since it started */
        char policy[64];      /* maxmemory-policy; "": not reported */
        struct quoted info_error;   /* why INFO was refused */
        bool has_save;              /* save is from CONFIG; false: CONFIG was refused, see config_error */
        char save[256];             /* when it writes snapshots; "": never */
        struct quoted config_error; /* why CONFIG was refused */
};

/* The processes and jobs of a framework in a database. */
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
