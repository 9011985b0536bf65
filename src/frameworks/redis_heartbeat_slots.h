/* SPDX-License-Identifier: MIT */
/* The private state of redis_heartbeats.c. */
#pragma once

#include "frameworks/heartbeat_format.h"
#include "frameworks/heartbeats.h"
#include "frameworks/scan_permit.h"
#include <stdlib.h>

struct redis_slot {
        struct heartbeat_slot base;
        struct redis_slot *next;
        unsigned wanted;     /* poll items requested for the next poll */
        unsigned poll_items; /* poll items of the current poll */
        unsigned commands;   /* sent for this slot in the current poll */
        unsigned pending;    /* commands of the slot without a reply */

        bool heartbeat_missing;     /* the last poll found no heartbeat */
        usec_t forgotten_at;        /* when the process that sent the heartbeats ended; 0: none has */
        usec_t changed_at;          /* when the heartbeat was last seen to change */
        struct heartbeat heartbeat; /* the last heartbeat read; sent_usec 0: none */
        bool heartbeat_waits;       /* for the reply about its work list */
        usec_t siblings_scan_at;    /* no scan for siblings before this; 0: none was made yet */
        bool deferred;              /* the caller wants `again` at heartbeats_resume() */
        struct heartbeat again;
        usec_t seeks_at; /* the last poll of the slot, if that wanted a scan; else 0 */
};

struct redis_heartbeats {
        struct heartbeats base;
        struct redis *redis;
        const struct heartbeat_format *format;
        char *namespace;
        char *set_key;
        char *pattern; /* of the identities that the current scan matches; NULL: no scan was made */

        struct redis_slot *slots; /* including removed slots while anything refers to them */
        struct redis_slot **end;  /* where the next slot is linked */
        unsigned n_slots;

        struct match match;
        struct scan_permit scan_permit;
        uint64_t connection; /* the connection that match belongs to */

        bool looking;
        bool again;       /* another poll was requested during this one */
        bool undecided;   /* the current or last poll awaits heartbeats_resume() */
        bool failed;      /* the current poll has failed */
        unsigned pending; /* commands of the current poll without a reply */
        usec_t scan_began_at;
        size_t scan_hosts;   /* index into this host's names: those before it are scanned */
        usec_t scan_next_at; /* no scan before this */
        usec_t lost_scan_at; /* no scan for a lost heartbeat before this */

        unsigned entered; /* our functions on the stack, plus pending commands that will call us */
        bool freed;
};

/* A pending command. */
struct ask {
        struct redis_heartbeats *heartbeats;
        struct redis_slot *slot;     /* NULL: a scan step */
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
        slot->deferred = false;
}

static inline void slot_free(struct redis_slot *slot)
{
        free(slot->base.identity);
        free(slot->base.info);
        free(slot);
}

/* For the heartbeat source; see the functions of the same purpose in heartbeats.h. */
int redis_heartbeats_know(struct heartbeat_slot *base, const char *identity);
void redis_heartbeats_forget(struct heartbeat_slot *base);
void redis_heartbeats_want(struct heartbeat_slot *slot, unsigned poll_items);
bool redis_heartbeats_contended(const struct heartbeats *heartbeats);
char *redis_heartbeats_take_another(struct heartbeat_slot *base, pid_t *ret_pid);
