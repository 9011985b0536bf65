/* SPDX-License-Identifier: MIT */
/* Reads the heartbeats of our own workers, wherever these stand, and finds out which heartbeat belongs to
 * which worker. Made by redis_heartbeats_new() or local_heartbeats_new(). */
#pragma once

#include "observe/match.h"

struct heartbeats;

/* A worker's place in it. */
struct heartbeat_slot {
        struct heartbeats *heartbeats;
        struct worker *worker;       /* NULL: removed */
        char *identity;              /* owned: that it beats under; NULL: not known */
        struct heartbeat_info *info; /* owned: what it told of itself; NULL: not known */
};

/* All are called from the loop, with the userdata that the beats were made with; in each of them everything
 * is allowed, freeing and removing too. */
struct heartbeats_ops {
        /* What this host is called now, as its workers see it; NULL: that is not to be had, and as before.
         * Asked when a worker is added, and at each walk through the set of identities. */
        const char *(*host_name)(void *userdata);
        /* Is pid the worker's main process or a descendant of it? Returns 1, 0 or -errno. Asked a limited
         * number of times a look. */
        int (*is_descendant)(pid_t pid, const struct worker *worker, void *userdata);
        /* Has the process of this pid come so far that it can have beaten? Returns 1, 0 or -errno; what
         * cannot be told of its framework is 1. Not asked of those that are known to beat, and a limited
         * number of times a look. */
        int (*has_booted)(pid_t pid, const struct worker *worker, void *userdata);
        /* Was the process of this pid started at that time, as field 22 of /proc/PID/stat has it? Returns 1,
         * 0 or -errno. Asked where a heartbeat says so of its process, of those that are not known to beat.
         */
        int (*has_start)(pid_t pid, uint64_t start, void *userdata);
        /* Several identities of one pid beat that may be the worker's, or this is over. */
        void (*on_ambiguous)(struct worker *worker, bool ambiguous, void *userdata);
        /* The worker was found to beat as process heartbeat_pid; its first heartbeat follows. */
        void (*on_identity)(struct worker *worker, pid_t heartbeat_pid, void *userdata);
        /* What Redis holds of it now, be it the same beat as before. */
        void (*on_heartbeat)(struct worker *worker, const struct heartbeat *heartbeat, void *userdata);
        /* What else of the worker beats was looked for, as was wanted: another process, of this pid, was seen
         * to, or none; 0. */
        void (*on_sibling)(struct worker *worker, pid_t pid, void *userdata);
        /* The last reply to a look is in, or the look failed; the next may begin. */
        void (*on_done)(struct heartbeats *heartbeats, void *userdata);
};

enum heartbeats_outcome {
        HEARTBEATS_POLLING = 0,
        HEARTBEATS_BUSY,    /* the look before is still under way: this one is left out */
        HEARTBEATS_NOTHING, /* there is nothing to ask: on_done will not be called */
};

/* Frees all slots too. Returns NULL. */
struct heartbeats *heartbeats_free(struct heartbeats *heartbeats);

/* The worker must stay until heartbeats_remove(), which says no more of it. Its pid and spawned_at are read
 * anew at each look. Returns 0 or -ENOMEM. */
int heartbeats_add(struct heartbeats *heartbeats, struct worker *worker, struct heartbeat_slot **ret);
void heartbeats_remove(struct heartbeat_slot *slot);
/* The worker is another process now, which may have beaten all the while: whose the identities are that
 * nobody has is found out anew. */
void heartbeats_moved(struct heartbeat_slot *slot);

/* The worker beat under this identity before sqmgr began: its heartbeat is read from
 * there at once. Whether it still changes is for the caller to see. Returns 0 or -ENOMEM. */
int heartbeats_know(struct heartbeat_slot *slot, const char *identity);

/* Under which names of this host a worker may beat that is not found, for heartbeats_know_hosts() of the next
 * sqmgr, which returns 0 or -ENOMEM. Returns text, or NULL: it beats under none. */
const char *heartbeats_hosts(const struct heartbeat_slot *slot, char text[static MATCH_HOSTS_TEXT_MAX]);
int heartbeats_know_hosts(struct heartbeat_slot *slot, const char *names);

/* When the last walk began that went through all identities under which it could beat; 0: there was none
 * since the last connect, USEC_INFINITY: there is nothing to walk. */
usec_t heartbeats_scanned_at(const struct heartbeat_slot *slot);

/* Many hosts walk, and a walk of this one that could find it is still to begin, after that time. */
bool heartbeats_wait_for_scan(const struct heartbeat_slot *slot, usec_t since);

/* The process that beat is gone while the worker lives: look for its successor. */
void heartbeats_forget(struct heartbeat_slot *slot);

/* An identity under which another process of the worker's was seen to beat, to be freed, and its pid. It is
 * not told again unless it beats on. NULL: there is none, or memory is short. */
char *heartbeats_take_another(struct heartbeat_slot *slot, pid_t *ret_pid);

/* The next look shall read these of this worker: POLL_HEARTBEAT, POLL_WORK_LIST, POLL_SIBLINGS (what else
 * there is, is ignored). */
void heartbeats_want(struct heartbeat_slot *slot, unsigned poll_items);

/* Begins a look at all that is wanted, and forgets the wishes, also where it is busy. Returns enum
 * heartbeats_outcome, or -ENOTCONN or -ENOMEM, with on_done not called. */
int heartbeats_poll(struct heartbeats *heartbeats);

/* What follows is for those that implement a way to learn of heartbeats: over Redis (redis_heartbeats.c), or
 * over what this machine shows of its processes (local_heartbeats.c). The functions are those above. */
struct heartbeat_source {
        void (*free)(struct heartbeats *heartbeats);
        int (*add)(struct heartbeats *heartbeats, struct worker *worker, struct heartbeat_slot **ret);
        void (*drop)(struct heartbeat_slot *slot);
        void (*want)(struct heartbeat_slot *slot, unsigned poll_items);
        int (*look)(struct heartbeats *heartbeats);
        void (*forget)(struct heartbeat_slot *slot); /* NULL: there is nothing to forget */
        /* NULL where there are no identities: */
        bool (*contended)(const struct heartbeats *heartbeats); /* this host waits for its turn to walk */
        int (*know)(struct heartbeat_slot *slot, const char *identity);
        char *(*take_another)(struct heartbeat_slot *slot, pid_t *ret_pid);
};

/* The first member of each kind's own. */
struct heartbeats {
        const struct heartbeat_source *kind;
        const struct heartbeats_ops *ops;
        void *userdata;
        struct match *match; /* which identity is whose, not owned; NULL: there are no identities */
};
