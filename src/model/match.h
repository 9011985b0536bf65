/* SPDX-License-Identifier: MIT */
/* The identities of this host that Redis lists, and which worker each belongs to.
 *
 * Host and pid alone prove little: a pid is used again, and the identity of a dead process stays in Redis. So
 * an identity counts for a worker only if a scan made after the worker's spawn did not find it yet, or if its
 * beat was seen to change after the spawn. */
#pragma once

#include "model/fleet.h"

struct beat_info; /* what a framework notes of a process that beats, and no one else reads */

struct candidate {
        char *identity;
        pid_t pid;

        const void *owner; /* the worker whose process or descendant has this pid; NULL: none */
        bool resolved;     /* owner was looked for */

        usec_t absent_at; /* begin of the last complete scan that did not find it; 0: there was none */
        usec_t asked_at;  /* set by the caller: when its heartbeat was last asked for; 0: never */

        bool has_beat; /* the last reading told a beat */
        struct heartbeat beat;
        usec_t read_at;         /* when that was asked for */
        usec_t changed_from;    /* when the beat before the last change was asked for; 0: no change seen */
        usec_t changed_at;      /* when the last change was seen; 0: never */
        struct beat_info *info; /* the caller's note, owned, in one piece of memory; NULL: none */

        uint64_t scan; /* the last one that found it */
};

struct match {
        struct candidate **candidates; /* owned, sorted by identity */
        size_t n_candidates;
        size_t allocated;

        uint64_t scan;       /* counts them */
        usec_t scan_at;      /* begin of the one under way */
        usec_t scan_done_at; /* begin of the last complete one since the last connect; 0: none */
};

void match_clear(struct match *match);

/* A connection came up: what earlier scans did not find proves nothing any more. */
void match_connected(struct match *match);

/* A scan: begin, add for each identity, end. One that breaks off is not ended. Adding the same identity twice
 * does no harm. match_scan_add() returns 0 or -ENOMEM; identity need not end with a NUL. match_scan_end()
 * forgets what the scan did not find. */
void match_scan_begin(struct match *match, usec_t now);
int match_scan_add(struct match *match, const char *identity, size_t len, pid_t pid);
void match_scan_end(struct match *match);

/* A worker was added: whose process a candidate is must be looked for again where it was nobody's. */
void match_owner_added(struct match *match);
/* A worker is gone. */
void match_owner_removed(struct match *match, const void *owner);

/* The reading of a candidate's heartbeat, asked for at its asked_at; beat NULL: there was none, or it was
 * malformed. */
void match_read(struct candidate *candidate, const struct heartbeat *beat, usec_t now);

/* The process of this identity was seen to end: it counts only once its beat changes again. */
void match_distrust(struct match *match, const char *identity);

/* Which candidate is the worker's, of those whose owner it is? NULL: none yet. The one whose beat changed
 * last wins; of several that were not seen to change, the one that came last, and none if that is not clear.
 */
struct candidate *match_decide(const struct match *match, const void *owner, usec_t spawned_at);

/* The next candidate to ask for its heartbeat: one of this owner, asked before `before` or never, the longest
 * unasked first; skip, which may be NULL, is an identity to leave out. NULL: none. */
struct candidate *match_next_unasked(const struct match *match, const void *owner, usec_t before,
                                     const char *skip);
