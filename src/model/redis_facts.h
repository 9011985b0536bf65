/* SPDX-License-Identifier: MIT */
/* Settings and state that one Redis reported. */
#pragma once

#include "wire/quoted.h"

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
