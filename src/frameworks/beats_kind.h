/* SPDX-License-Identifier: MIT */
/* What a way to learn of heartbeats must be able to do: one over Redis (redis_beats.c), one over what this
 * machine shows of its processes (local_beats.c). The functions are those of beats.h. */
#pragma once

#include "frameworks/beats.h"

struct beats_kind {
        void (*free)(struct beats *beats);
        int (*add)(struct beats *beats, struct worker *worker, struct beats_slot **ret);
        void (*drop)(struct beats_slot *slot);
        void (*want)(struct beats_slot *slot, unsigned looks);
        int (*look)(struct beats *beats);
        /* NULL where there are no identities: */
        struct match *(*match)(struct beats *beats); /* which of them is whose */
        bool (*crowded)(const struct beats *beats);  /* this host waits for its turn to walk */
        int (*know)(struct beats_slot *slot, const char *identity);
        void (*forget)(struct beats_slot *slot);
        const struct beat_info *(*info)(const struct beats_slot *slot);
        const char *(*identity)(const struct beats_slot *slot);
        char *(*take_another)(struct beats_slot *slot, pid_t *ret_pid);
};

/* The first member of each kind's own. */
struct beats {
        const struct beats_kind *kind;
        const struct beats_ops *ops;
        void *userdata;
};

struct beats_slot {
        struct beats *beats;
        struct worker *worker; /* NULL: removed */
};
