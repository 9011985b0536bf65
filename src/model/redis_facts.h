/* SPDX-License-Identifier: MIT */
/* Settings and state that one Redis reported. */
#pragma once

#include "base/macro.h"

struct redis_facts {
        bool has_info;        /* by INFO; false: refused, see info_error */
        bool has_limit;       /* maxmemory is set */
        bool snapshot_failed; /* the last one */
        bool is_appending;    /* appendonly is set */
        bool is_cluster;
        uint64_t evicted;       /* keys, since it started */
        uint64_t replicas;      /* connected */
        char policy[64];        /* maxmemory-policy; "": not reported */
        char info_error[256];   /* why INFO was refused */
        bool has_save;          /* by CONFIG; false: refused, see config_error */
        char save[256];         /* when it writes snapshots; "": never */
        char config_error[256]; /* why CONFIG was refused */
        char min_replicas[32];  /* min-replicas-to-write; "": not known */
};
