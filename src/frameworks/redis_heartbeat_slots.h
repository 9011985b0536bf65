/* SPDX-License-Identifier: MIT */
/* What redis_heartbeats.c remembers; for nobody else. */
#pragma once

#include "frameworks/heartbeat_format.h"
#include "frameworks/heartbeats.h"
#include "frameworks/scan_permit.h"
#include <stdlib.h>

struct redis_slot {
        struct heartbeat_slot base;
        struct redis_slot *next;
        unsigned wanted;     /* of the next look */
        unsigned poll_items; /* of this one */
        unsigned commands;   /* asked for it in this look */
        unsigned pending;    /* of them, without a reply */

        bool heartbeat_missing;     /* the last reading found no heartbeat */
        usec_t forgotten_at;        /* the process that it was of ended; 0: none has */
        usec_t changed_at;          /* its beat was last seen to change */
        struct heartbeat heartbeat; /* the last reading; sent_usec 0: none */
        bool heartbeat_waits;       /* for the reading of its work list */
        usec_t siblings_scan_at;    /* no walk before this to see what else of it beats; 0: there was none */
        usec_t seeks_at;            /* the last look at it, where that wanted a walk; 0: it did not */
};

struct redis_heartbeats {
        struct heartbeats base;
        struct redis *redis;
        const struct heartbeat_format *format;
        char *namespace;
        char *set_key;
        char *pattern; /* of the identities that the walk under way looks for; NULL: there was none */

        struct redis_slot *slots; /* removed ones too, until nothing refers to them */
        struct redis_slot **end;  /* where the next is put */
        unsigned n_slots;

        struct match match;
        struct scan_permit scan_permit;
        uint64_t connection; /* that the roster is of */

        bool looking;
        bool failed;      /* this look */
        unsigned pending; /* commands of this look without a reply */
        usec_t scan_began_at;
        size_t scan_hosts;   /* of this host's names, places that the walk is done with */
        usec_t scan_next_at; /* no walk before this */
        usec_t lost_scan_at; /* no walk for a lost heartbeat before this */

        unsigned entered; /* calls of ours on the stack, and commands that will call us */
        bool freed;
};

/* One command that is under way. */
struct ask {
        struct redis_heartbeats *heartbeats;
        struct redis_slot *slot;     /* NULL: the walk */
        struct candidate *candidate; /* NULL: the slot's own heartbeat */
};

static inline struct redis_heartbeats *own(struct heartbeats *heartbeats)
{
        return (struct redis_heartbeats *)heartbeats;
}

static inline struct redis_slot *own_slot(struct heartbeat_slot *slot)
{
        return (struct redis_slot *)slot;
}

static inline struct redis_heartbeats *heartbeats_of(const struct redis_slot *slot)
{
        return own(slot->base.heartbeats);
}

static inline void slot_lose_identity(struct redis_slot *slot)
{
        free(slot->base.identity);
        slot->base.identity = NULL;
        free(slot->base.info);
        slot->base.info = NULL;
        slot->heartbeat_missing = false;
        slot->heartbeat = (struct heartbeat){0};
        slot->heartbeat_waits = false;
}

static inline void slot_free(struct redis_slot *slot)
{
        free(slot->base.identity);
        free(slot->base.info);
        free(slot);
}
