/* SPDX-License-Identifier: MIT */
/* Reads the heartbeats of our own workers from any source, and matches heartbeats to workers. Objects are
 * created by server_heartbeats_new() or local_heartbeats_new(). */
#pragma once

#include "frameworks/inside.h"

struct heartbeats;

/* A worker registered with struct heartbeats. */
struct heartbeat_slot {
        struct heartbeats *heartbeats;
        struct worker *worker;       /* NULL: removed */
        char *identity;              /* owned: the identity of the worker's heartbeat; NULL: unknown */
        struct heartbeat_info *info; /* owned: what the worker reported about itself; NULL: unknown */
};

/* The callbacks, with the userdata given at creation. The on_*() run from the event loop or from within
 * heartbeats_resume(); the others also from within heartbeats_add() and heartbeats_poll(). Within all of them
 * except host_name(), every call is allowed, including removing slots and freeing the object. */
struct heartbeats_ops {
        /* Returns the current host name as workers see it; NULL: unavailable, the previous name stays.
         * Called when a worker is added and at each scan of the set of identities. */
        const char *(*host_name)(void *userdata);
        /* Is pid the worker's main process or a descendant of it? Returns 1, 0 or -errno. The number of
         * calls per poll is bounded. */
        int (*is_descendant)(pid_t pid, const struct worker *worker, void *userdata);
        /* Reads the processes and host names of a worker of a fleet with `namespaced`. Returns 0;
         * -EINPROGRESS: known once heartbeats_resume() is called; or -errno. The number of calls per poll is
         * bounded. NULL: there are no such fleets. */
        int (*read_inside)(const struct worker *worker, struct inside *ret, void *userdata);
        /* Has this process booted far enough to have sent a heartbeat, as read after heartbeats->decides_at?
         * Returns 1, 0 or -errno; returns 1 if the framework gives no evidence. -ENODATA: it shows no boot,
         * and may have booted. -EINPROGRESS: known once
         * heartbeats_resume() is called; -ETIMEDOUT: it cannot be read. Not called for processes known to
         * send heartbeats. The number of calls per poll is bounded. */
        int (*has_booted)(pid_t pid, const struct worker *worker, void *userdata);
        /* Was this process started at that time, as in field 22 of /proc/PID/stat? Returns 1, 0 or -errno.
         * Called if a heartbeat contains a start time and its process is not yet known to send heartbeats. */
        int (*has_start)(pid_t pid, uint64_t start, void *userdata);
        /* Does the record of this heartbeat belong to this process of the worker? Returns 1 if
         * birth_is_own(); -EREMOTE if birth_is_foreign(); 0 if neither; or -errno as has_booted(). Called if
         * a heartbeat contains the time of registration and its process is not yet known to send heartbeats.
         */
        int (*is_born)(pid_t pid, const struct heartbeat *heartbeat, const struct worker *worker,
                       void *userdata);
        /* The worker's heartbeats come from process heartbeat_pid; remote: from a process that is not
         * visible, and heartbeat_pid is the worker's own process. The first heartbeat is reported next. */
        void (*on_identity)(struct worker *worker, pid_t heartbeat_pid, bool remote, void *userdata);
        /* The heartbeat as read now, even if it has not changed. The callback may set heartbeats->deferred:
         * heartbeats_resume() then reports the same heartbeat again. */
        void (*on_heartbeat)(struct worker *worker, const struct heartbeat *heartbeat, void *userdata);
        /* The requested search for another process of the worker that sends heartbeats has finished. pid:
         * the process found; 0: none. */
        void (*on_sibling)(struct worker *worker, pid_t pid, void *userdata);
        /* A poll has ended, successfully or not, so that the next one may begin; or heartbeats_resume() has
         * reported what it could, possibly during a poll. May be called without anything new. */
        void (*on_done)(struct heartbeats *heartbeats, void *userdata);
};

enum heartbeats_outcome {
        HEARTBEATS_POLLING = 0,
        HEARTBEATS_BUSY,    /* the previous poll is still running: this one follows it */
        HEARTBEATS_NOTHING, /* no answer is awaited: on_done() is not called */
};

/* Accepts NULL; returns NULL. With a server as the source, frees the slots too, and may be called within
 * callbacks. With the local source, all slots must have been removed. */
struct heartbeats *heartbeats_free(struct heartbeats *heartbeats);

/* worker must outlive the slot; heartbeats_remove() ends all reports about the worker. Each poll reads the
 * worker's pid and spawned_at again. Returns 0 or -ENOMEM. */
int heartbeats_add(struct heartbeats *heartbeats, struct worker *worker, struct heartbeat_slot **ret);
void heartbeats_remove(struct heartbeat_slot *slot);
/* The worker is now a different process, which may have been sending heartbeats before. The owners of
 * unclaimed identities are determined again. */
void heartbeats_moved(struct heartbeat_slot *slot);

/* Sets the identity that the worker used before sqmgr started: the heartbeat is read from there at once.
 * The caller must check whether the heartbeat still changes. Returns 0 or -ENOMEM. */
int heartbeats_know(struct heartbeat_slot *slot, const char *identity);

/* heartbeats_hosts() writes the names of this host under which a worker without a known identity may send
 * heartbeats. Returns text, or NULL: there are none. The next sqmgr passes the names to
 * heartbeats_know_hosts(), which returns 0 or -ENOMEM. */
const char *heartbeats_hosts(const struct heartbeat_slot *slot, char text[static MATCH_HOSTS_TEXT_MAX]);
int heartbeats_know_hosts(struct heartbeat_slot *slot, const char *names);

/* When the last complete scan of the worker's possible identities began; 0: none since the last connect;
 * USEC_INFINITY: there is nothing to scan. */
usec_t heartbeats_scanned_at(const struct heartbeat_slot *slot);

/* Returns true if many hosts scan, and no complete scan by this host that could find the worker began at or
 * after `since`. */
bool heartbeats_wait_for_scan(const struct heartbeat_slot *slot, usec_t since);

/* The process that sent the heartbeats is gone but the worker lives: search for its successor. */
void heartbeats_forget(struct heartbeat_slot *slot);

/* Returns an identity under which another process of the worker sends heartbeats, and its pid; the caller
 * frees the identity. An identity is returned again only if its heartbeats continue. NULL: none, or out of
 * memory. */
char *heartbeats_take_another(struct heartbeat_slot *slot, pid_t *ret_pid);

/* Requests these items of the worker for the next poll: POLL_HEARTBEAT, POLL_WORK_LIST, POLL_SIBLINGS.
 * Other bits are ignored. */
void heartbeats_want(struct heartbeat_slot *slot, unsigned poll_items);

/* Starts a poll of all requested items and clears the requests. While a poll is running, keeps them and
 * starts the next one when it is done. Returns enum heartbeats_outcome, or -ENOTCONN or -ENOMEM; on_done is
 * not called after an error. */
int heartbeats_poll(struct heartbeats *heartbeats);

/* Call when has_booted() or is_born() can answer after -EINPROGRESS, and to have deferred heartbeats
 * reported. Runs callbacks from within, on_done() last. Does nothing if nothing is awaited. */
void heartbeats_resume(struct heartbeats *heartbeats);

/* Has the server hand a signal to the worker, see traits.signals_by_server. Heartbeats show what came of it.
 * Returns 0; -EACCES: the server refused the last signal, and the next call tries again; -ESRCH: the worker's
 * identity is unknown; -ENOTCONN; or -ENOMEM. */
int heartbeats_signal(struct heartbeat_slot *slot, int signo);

/* For implementations of a heartbeat source: a server (server_heartbeats.c) or the processes of this machine
 * (local_heartbeats.c). Each function implements the function of the same purpose above. */
struct heartbeat_source {
        void (*free)(struct heartbeats *heartbeats);
        int (*add)(struct heartbeats *heartbeats, struct worker *worker, struct heartbeat_slot **ret);
        void (*drop)(struct heartbeat_slot *slot);
        void (*want)(struct heartbeat_slot *slot, unsigned poll_items);
        int (*poll)(struct heartbeats *heartbeats);
        void (*resume)(struct heartbeats *heartbeats); /* NULL: nothing is awaited */
        void (*forget)(struct heartbeat_slot *slot);   /* NULL: there is nothing to forget */
        /* NULL if the source has no identities: */
        bool (*contended)(const struct heartbeats *heartbeats); /* many hosts want to scan */
        int (*know)(struct heartbeat_slot *slot, const char *identity);
        char *(*take_another)(struct heartbeat_slot *slot, pid_t *ret_pid);
        int (*signal)(struct heartbeat_slot *slot, int signo);
};

/* The first member of each source's own struct. */
struct heartbeats {
        const struct heartbeat_source *kind;
        const struct heartbeats_ops *ops;
        void *userdata;
        struct match *match; /* maps identities to workers, not owned; NULL: the source has no identities */
        usec_t decides_at;   /* when the last poll had read all heartbeats; 0: never */
        bool deferred;       /* set by on_heartbeat() */
};
