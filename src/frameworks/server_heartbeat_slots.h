/* SPDX-License-Identifier: MIT */
/* The private state of server_heartbeats.c. */
#pragma once

#include "frameworks/framework.h"
#include "frameworks/heartbeats.h"
#include "frameworks/scan_permit.h"
#include "model/fleet.h"
#include <stdlib.h>

struct server_slot {
        struct heartbeat_slot base;
        struct server_slot *next;
        unsigned wanted;     /* poll items requested for the next poll */
        unsigned poll_items; /* poll items of the current poll */
        unsigned queries;    /* sent for this slot in the current poll */
        unsigned pending;    /* queries of the slot without an answer */
        unsigned n_others;   /* candidates of the slot beside its own identity */

        bool heartbeat_missing;     /* the last poll found no heartbeat */
        usec_t forgotten_at;        /* when heartbeats_forget() was called for the slot; 0: never */
        usec_t changed_at;          /* when the heartbeat was last seen to change */
        struct heartbeat heartbeat; /* the last heartbeat read; sent_usec 0: none */
        bool signal_refused;        /* the last signal through the server was refused */
        bool heartbeat_waits;       /* for the answer about its work list */
        usec_t siblings_scan_at;    /* no scan for siblings before this; 0: none was made yet */
        bool deferred;              /* the caller wants `again` at heartbeats_resume() */
        struct heartbeat again;
        struct inside *inside; /* owned; NULL: the worker has no namespaces, or never sought its identity */
        usec_t inside_read_at; /* 0: never */
        usec_t seeks_at;       /* the last poll of the slot, if that wanted a scan; else 0 */
};

struct server_heartbeats {
        struct heartbeats base;
        struct reader *reader;
        const struct framework *framework;
        char *scan_host; /* host of the scanned identities; NULL: no scan was made */

        struct server_slot *slots; /* including removed slots while anything refers to them */
        struct server_slot **end;  /* the next slot is linked here */
        unsigned n_slots;

        struct match match;
        struct inside_names names; /* of the workers in namespaces of their own; refers to the slots */
        struct scan_permit scan_permit;
        uint64_t connection; /* the connection that match belongs to */

        bool looking;
        bool again;       /* a poll was requested during the current one: starts when that is done */
        bool undecided;   /* the current or last poll awaits heartbeats_resume() */
        bool failed;      /* the current poll has failed */
        unsigned pending; /* queries of the current poll without an answer */
        usec_t polled_at; /* when the current or last poll began */
        usec_t scan_began_at;
        bool scan_all; /* a single scan reads all hosts: workers in namespaces of their own may have any name
                        */
        size_t scan_hosts;   /* index into this host's names: those before it are scanned */
        usec_t scan_next_at; /* no scan before this */
        usec_t lost_scan_at; /* no scan for a lost heartbeat before this */

        unsigned entered; /* functions of this object on the stack, plus pending queries; the object is freed
                             at 0 */
        bool freed;
};

/* A pending query. */
struct poll_query {
        struct server_heartbeats *heartbeats;
        struct server_slot *slot;    /* NULL: a scan step */
        struct candidate *candidate; /* NULL: the slot's own heartbeat */
};

static inline struct server_heartbeats *own(struct heartbeats *heartbeats)
{
        return (struct server_heartbeats *)heartbeats;
}

static inline struct server_slot *own_slot(struct heartbeat_slot *slot)
{
        return (struct server_slot *)slot;
}

static inline struct server_heartbeats *heartbeats_of(const struct server_slot *slot)
{
        return own(slot->base.heartbeats);
}

static inline void slot_lose_identity(struct server_slot *slot)
{
        free(slot->base.identity);
        slot->base.identity = NULL;
        free(slot->base.info);
        slot->base.info = NULL;
        slot->heartbeat_missing = slot->signal_refused = false;
        slot->heartbeat = (struct heartbeat){0};
        slot->heartbeat_waits = false;
        slot->deferred = false;
}

static inline bool slot_is_namespaced(const struct server_slot *slot)
{
        return slot->base.worker->fleet->settings->namespaced;
}

static inline void slot_free(struct server_slot *slot)
{
        free(slot->inside);
        free(slot->base.identity);
        free(slot->base.info);
        free(slot);
}

/* Enclose what must not free the object or its slots: a function on the stack, or a pending query. */
void server_heartbeats_enter(struct server_heartbeats *heartbeats);
void server_heartbeats_leave(struct server_heartbeats *heartbeats);

/* For the heartbeat source; see the functions of the same purpose in heartbeats.h. */
int server_heartbeats_know(struct heartbeat_slot *base, const char *identity);
void server_heartbeats_forget(struct heartbeat_slot *base);
/* Adds to a heartbeat what its framework leaves to sqmgr: see process_is_heartbeat in struct traits. */
void server_heartbeats_amend(struct server_slot *slot, struct heartbeat *heartbeat);
/* Reads the processes of the workers in namespaces of their own for which seeks() is true, as far as one poll
 * may, and makes their names known to the match. Returns 0 or -ENOMEM. */
int server_heartbeats_read_inside(struct server_heartbeats *heartbeats,
                                  bool (*seeks)(const struct server_slot *slot, usec_t now), usec_t now);
/* A process that was not visible may have become a descendant of its worker: looks for that of one worker
 * whose processes were not read since `before`. */
void server_heartbeats_reread_remote(struct server_heartbeats *heartbeats, usec_t before, usec_t now);
/* Finds the owner of a candidate among the workers in namespaces of their own. */
void server_heartbeats_find_inside(const struct server_heartbeats *heartbeats, struct candidate *candidate);
/* Counts the other candidates of each slot. A slot without others needs no search through all candidates. */
void server_heartbeats_count_others(struct server_heartbeats *heartbeats);
/* Drops host names under which no live worker can have started. */
void server_heartbeats_forget_hosts(struct server_heartbeats *heartbeats);
void server_heartbeats_want(struct heartbeat_slot *slot, unsigned poll_items);
bool server_heartbeats_contended(const struct heartbeats *heartbeats);
char *server_heartbeats_take_another(struct heartbeat_slot *base, pid_t *ret_pid);
int server_heartbeats_signal(struct heartbeat_slot *base, int signo);
