/* SPDX-License-Identifier: MIT */
/* The identities of this host that Redis lists, and which worker each belongs to.
 *
 * Host and pid alone prove little: a pid is used again, the identity of a dead process stays in Redis, and
 * two containers may have one host name and the same pids. So an identity counts for a worker only if a scan
 * made after the worker's spawn did not find it yet, or if its beat was seen to change after the spawn. What
 * was in Redis before the worker, or before its process had come so far that it can have beaten, is never its
 * own. Of several of one pid that beat, none is taken. No wall clock has a say in that.
 *
 * A worker keeps the name that its host had as it booted, whatever the host is called since: so this host has
 * several names, and one that it has no more counts for the workers that were spawned before it ended. */
#pragma once

#include "model/worker.h"

struct heartbeat_info; /* what a framework notes of a process that beats, and no one else reads */

/* Names of this host that are known at a time: beyond them, the one that ended first is forgotten. */
#define MATCH_HOSTS_MAX 4
/* What match_hosts_since() makes of them. */
#define MATCH_HOSTS_TEXT_MAX 1024

struct match_host {
        char *name;          /* owned; NULL: this place is free */
        usec_t ended_at;     /* since when the host was seen to be called otherwise; 0: it has this name */
        usec_t scan_done_at; /* begin of the last complete scan for it since the last connect; 0: none */
        uint64_t scan;       /* the last one that looks for it */
};

struct candidate {
        char *identity;
        size_t host_len; /* of it, at its start */
        pid_t pid;

        const void *owner; /* the worker whose process or descendant has this pid; NULL: none */
        bool resolved;     /* owner was looked for */

        bool foreign; /* it was there before that process can have beaten: it is another's */

        usec_t seen_at;   /* when a scan found it first */
        usec_t absent_at; /* begin of the last complete scan that did not find it; 0: there was none */
        usec_t asked_at;  /* set by the caller: when its heartbeat was last asked for; 0: never */

        bool has_heartbeat; /* the last reading told a beat */
        struct heartbeat heartbeat;
        usec_t read_at;      /* when that was asked for */
        usec_t changed_from; /* when the beat before the last change was asked for; 0: no change seen */
        usec_t changed_at;   /* when the last change was seen; 0: never */
        usec_t differed_at;  /* when the last reading told another beat than the one before, be it an older
                              * one; the first reading does; 0: never */
        struct heartbeat_info *info; /* the caller's note, owned, in one piece of memory; NULL: none */

        uint64_t scan; /* the last one that found it */
};

struct match {
        struct candidate **candidates; /* owned, sorted by identity */
        size_t n_candidates;
        size_t allocated;

        struct match_host hosts[MATCH_HOSTS_MAX];

        usec_t connected_at;

        uint64_t scan;  /* counts them */
        usec_t scan_at; /* begin of the one under way */
};

void match_clear(struct match *match);

/* A connection came up: what earlier scans did not find proves nothing any more. */
void match_connected(struct match *match, usec_t now);

/* The host has this name now: what it was called before has ended. Returns 0 or -ENOMEM. */
int match_host_is(struct match *match, const char *name, usec_t now);
/* A worker of an earlier sqmgr beats under a name of this length: unless the host has it still, it had it
 * until now at most. Returns 0 or -ENOMEM. */
int match_host_was(struct match *match, const char *name, size_t len, usec_t now);
/* The names under which a worker may beat that was spawned at that time, a blank behind each: what is to be
 * handed on to the next sqmgr of one that was not found, and told there by match_hosts_were(), which returns
 * 0 or -ENOMEM. One that does not fit is left out. */
const char *match_hosts_since(const struct match *match, usec_t spawned_at,
                              char text[static MATCH_HOSTS_TEXT_MAX]); /* returns text */
int match_hosts_were(struct match *match, const char *names, usec_t now);
/* How many names are known: so many times a scan goes through the set. */
unsigned match_n_hosts(const struct match *match);
/* Forgets the names that ended before the oldest worker was spawned at that time. */
void match_hosts_forget(struct match *match, usec_t oldest);

/* An identity as it stands in the set. */
struct match_found {
        const char *identity; /* need not end with a NUL */
        size_t len, host_len;
        pid_t pid;
};

/* A scan: begin, go through the set for each host that match_scan_host() names, add each identity, end. One
 * that breaks off is not ended. Adding the same identity twice does no harm, and one of another host is left
 * out. match_scan_add() returns 0 or -ENOMEM. match_scan_end() forgets what the scan did not find. */
void match_scan_begin(struct match *match, usec_t now);
/* The first host from place *at on that this scan is to look for; *at is set behind it. NULL: no more. */
const char *match_scan_host(const struct match *match, size_t *at);
int match_scan_add(struct match *match, const struct match_found *found, usec_t now);
void match_scan_end(struct match *match);
/* When the last whole scan for the name that this host has now began, since the last connect; 0: none did. */
usec_t match_scanned_at(const struct match *match);

/* A worker was added: whose process a candidate is must be looked for again where it was nobody's. */
void match_owner_added(struct match *match);
/* A worker is gone. */
void match_owner_removed(struct match *match, const void *owner);

/* The reading of a candidate's heartbeat, asked for at its asked_at; beat NULL: there was none, or it was
 * malformed. */
void match_read(struct candidate *candidate, const struct heartbeat *heartbeat, usec_t now);

/* The process of this identity was seen to end: it counts only once its beat changes again. */
void match_distrust(struct match *match, const char *identity);

/* The owner's process of this pid has not come so far that it can have beaten: what of that pid has been
 * found until now is another's. */
void match_unbooted(struct match *match, const void *owner, pid_t pid);
/* The next pid among the candidates that may be this owner's, from place *at on; *at is set behind it. 0: no
 * more. One pid may come several times, yet never twice in a row. */
pid_t match_pid(const struct match *match, const void *owner, size_t *at);

/* From place *at on, the next candidate of another process of this owner's than the one that beats under the
 * identity own: one that was seen to beat since then. NULL: no more. */
struct candidate *match_other(const struct match *match, const void *owner, const char *own, usec_t since,
                              size_t *at);

struct match_claim {
        const void *owner;
        usec_t spawned_at; /* what was found before is another's */
        usec_t since; /* what is older is no evidence: when it was spawned, or the process that it beat as
                       * before ended */
        pid_t except; /* nor what is of this pid: the process that its known identity is of; 0: none is known
                       */
        usec_t stale_usec; /* one that stands still for longer while another beats has ended:
                            * worker_outlived_usec() */
        usec_t doubt_at;   /* time was doubtful until then: what stood still by that time may have slept */
};

/* Which candidate is the worker's, of those whose owner it is? NULL: none yet. The one whose beat changed
 * last wins; of several that were not seen to change, the one that came last, and none if that is not clear.
 * Several of one pid that beat, or may: none, and *ret_ambiguous is set where they do. */
struct candidate *match_decide(const struct match *match, const struct match_claim *claim,
                               bool *ret_ambiguous);

/* The next candidate to ask for its heartbeat: one that may be this owner's, asked before `before` or never,
 * the longest unasked first; skip, which may be NULL, is an identity to leave out. NULL: none. */
struct candidate *match_next_unasked(const struct match *match, const void *owner, usec_t before,
                                     const char *skip);
