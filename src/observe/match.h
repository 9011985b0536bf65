/* SPDX-License-Identifier: MIT */
/* Matches the identities of this host in Redis to workers.
 *
 * Host and pid alone prove little. The kernel reuses pids, identities of dead processes remain in Redis, and
 * two containers can share a host name and pids. An identity therefore counts for a worker only if it was
 * absent from a scan after the worker's spawn, if its heartbeat changed since, or if it was registered since
 * its process was started and a later scan found no other of that pid. Entries from before the worker, or
 * from before its process could send heartbeats, never count. If several identities of one pid send
 * heartbeats, none is chosen. No decision depends on a wall clock that has been stepped (struct birth).
 *
 * A worker keeps the host name of its boot time, even after the host is renamed. The host can therefore have
 * several names. A former name counts only for workers that were spawned before the name ended. */
#pragma once

#include "model/worker.h"

struct heartbeat_info; /* opaque data of a framework about a process that sends heartbeats */
struct world;

/* Maximum number of known names of this host. Adding another one drops the name that ended first. */
#define MATCH_HOSTS_MAX 4
/* Size of the text of match_hosts_since(). */
#define MATCH_HOSTS_TEXT_MAX 1024

/* Identities of this host's names. Any writer to the server can add some, and each costs time at each poll.
 */
#define MATCH_CANDIDATES_MAX 16384

struct match_host {
        char *name;          /* owned; NULL: the slot is free */
        usec_t ended_at;     /* when the host was seen to have another name; 0: current name */
        usec_t scan_done_at; /* start of the last complete scan for this name since the last connect; 0: none
                              */
        uint64_t scan;       /* the last scan that includes this name */
};

struct candidate {
        char *identity;
        size_t host_len; /* length of the host name at the start of the identity */
        pid_t own_pid;   /* as in the identity */
        pid_t pid;    /* as sqmgr sees the process: differs if the owner is in a PID namespace of its own */
        bool named;   /* the host name is one of a worker's own, not of this host: see match->names_have */
        bool unique;  /* no other process ever had the host name: it was given to this start of the owner */
        bool claimed; /* the owner was found by a name of its own, and is searched again at each poll */
        bool remote;  /* the process is no descendant of the owner's process; pid is then the owner's */

        const void *owner; /* the worker whose process or descendant has this pid; NULL: none */
        bool resolved;     /* the owner was searched for */

        bool foreign; /* registered before the owner's process was started, or existed before that could send
                       * heartbeats: belongs to another process */
        bool early;   /* existed before the owner's process has shown a boot, which it may never show */

        usec_t seen_at;   /* when a scan first found it */
        usec_t absent_at; /* start of the last complete scan that did not find it; 0: none */
        usec_t asked_at;  /* set by the caller: time of the last request for its heartbeat; 0: never */

        bool has_heartbeat; /* the last reading contained a heartbeat */
        struct heartbeat heartbeat;
        usec_t read_at;      /* request time of the last heartbeat */
        usec_t changed_from; /* request time of the heartbeat before the last change; 0: no change seen */
        usec_t changed_at;   /* when the last change was seen; 0: never */
        usec_t born_at; /* when birth_is_own() was first true for it: its process has registered it and has
                           booted; 0: not known */
        bool birth_awaited; /* set by the caller: the answer is still awaited, so born_at may be missing */
        usec_t differed_at; /* when the last reading differed from the one before, even if older; the first
                               reading counts; 0: never */
        struct heartbeat_info *info; /* the caller's data, owned, freed with one free(); NULL: none */

        uint64_t scan; /* the last scan that found it */
};

struct match {
        struct candidate **candidates; /* owned, sorted by identity */
        size_t n_candidates;
        size_t allocated;

        struct match_host hosts[MATCH_HOSTS_MAX];

        /* Returns true if this host name, with this pid, may be that of a worker in namespaces of its own.
         * NULL: no such worker is sought. */
        bool (*names_have)(const void *names, const char *host, size_t len, pid_t own_pid);
        const void *names;
        usec_t all_done_at; /* start of the last complete scan of all hosts since the last connect; 0: none */

        usec_t connected_at;

        uint64_t scan;  /* number of the current or last scan */
        usec_t scan_at; /* start of the current or last scan */
};

/* Frees everything, including the info of each candidate, and leaves an empty struct. */
void match_clear(struct match *match);

/* Records a new connection: absence in earlier scans no longer proves anything. */
void match_connected(struct match *match, usec_t now);

/* Sets the current name of the host; the previous name ends now. Returns 0 or -ENOMEM. */
int match_host_is(struct match *match, const char *name, usec_t now);
/* Adds a name under which a worker of an earlier sqmgr sends heartbeats; name has len bytes. A name that is
 * not known yet counts as ended now. Returns 0 or -ENOMEM. */
int match_host_was(struct match *match, const char *name, size_t len, usec_t now);
/* match_hosts_since() lists the names under which a worker spawned at that time may send heartbeats, each
 * followed by a blank. A name that does not fit is omitted. The next sqmgr receives the list of each
 * unmatched worker and adds it with match_hosts_were(), which returns 0 or -ENOMEM. */
const char *match_hosts_since(const struct match *match, usec_t spawned_at,
                              char text[static MATCH_HOSTS_TEXT_MAX]); /* returns text */
int match_hosts_were(struct match *match, const char *names, usec_t now);
/* Returns the number of known names of this host. A scan reads the whole set once for each name. */
unsigned match_n_hosts(const struct match *match);
/* Forgets the names that ended before the oldest worker was spawned. oldest: its spawn time. */
void match_hosts_forget(struct match *match, usec_t oldest);

/* An identity as listed in the set. */
struct match_found {
        const char *identity; /* not necessarily terminated by a NUL */
        size_t len, host_len;
        pid_t pid;
};

/* A scan has these steps: begin, read the set for each host from match_scan_host(), or once for all hosts if
 * match->names_have is set, add each identity, end.
 * Do not end a scan that was interrupted. Adding an identity twice is harmless; identities of other hosts are
 * ignored. match_scan_add() returns 0, -E2BIG for too many, or -ENOMEM. match_scan_end() frees the candidates
 * that the scan did not find. */
void match_scan_begin(struct match *match, usec_t now);
/* Returns the first host name for this scan from position *at on, and advances *at. Start with *at = 0. NULL:
 * no more. */
const char *match_scan_host(const struct match *match, size_t *at);
int match_scan_add(struct match *match, const struct match_found *found, usec_t now);
void match_scan_end(struct match *match);
/* Returns the start of the last complete scan for the current host name since the last connect; 0: none. */
usec_t match_scanned_at(const struct match *match);

/* A worker was added. Candidates without an owner must be resolved again. */
void match_owner_added(struct match *match);
/* Returns true if the identity is a candidate of some worker. */
bool match_has_owner(const struct match *match, const char *identity, size_t len);
/* Takes the candidate from its owner. */
void match_disown(struct candidate *candidate);
/* A worker is gone. Its candidates lose their owner. */
void match_owner_removed(struct match *match, const void *owner);

/* Records a reading of a candidate's heartbeat, requested at its asked_at. heartbeat: NULL if there was none
 * or it was malformed. born: as birth_is_own() returns. */
void match_read(struct candidate *candidate, const struct heartbeat *heartbeat, bool born, usec_t now);

/* Adds to the last reading whether the candidate's process registered the identity. born: as birth_is_own()
 * returns. */
void match_born(struct candidate *candidate, bool born, usec_t now);

/* The process of this identity has ended. The identity counts again only after its heartbeat changes. */
void match_distrust(struct match *match, const char *identity);

/* The owner's process of this pid shows no boot. If `certain`, it has not booted: all candidates of this pid
 * found so far belong to other processes. If not, such a candidate counts once its heartbeat was registered
 * since the process was started, and has changed for a while. */
void match_unbooted(struct match *match, const void *owner, pid_t pid, bool certain);
/* The owner's process of this pid shows its boot. Candidates that existed before that belong to others. */
void match_booted(struct match *match, const void *owner, pid_t pid);
/* Returns the next pid among this owner's candidates from position *at on, and advances *at. 0: no more. A
 * pid can occur several times, but never twice in a row. */
pid_t match_pid(const struct match *match, const void *owner, size_t *at);

/* Returns, from position *at on, the owner's next candidate whose pid differs from that of identity own and
 * whose heartbeat changed since then. Advances *at. own: may be NULL. NULL: no more. */
struct candidate *match_other(const struct match *match, const void *owner, const char *own, usec_t since,
                              size_t *at);

struct match_claim {
        const void *owner;
        usec_t spawned_at; /* candidates found earlier belong to other processes */
        usec_t since;      /* older evidence does not count: the spawn time, or when the process that sent its
                              heartbeats ended */
        pid_t except; /* candidates of this pid do not count: the process of its known identity; 0: none known
                       */
        usec_t stale_usec; /* a candidate without change for longer than this, while another one changes, has
                              ended: worker_outlived_usec() */
        usec_t doubt_at;   /* end of the last doubt about time: a candidate without change until then may have
                              been asleep */
};

/* Returns the candidate that is this worker's, or NULL: none yet. The candidate with the latest change wins.
 * Among candidates without change, the latest arrival wins, unless several tie. NULL also if several
 * candidates of one pid send heartbeats, or may do so; *ret_ambiguous is true if they do. */
struct candidate *match_decide(const struct match *match, const struct match_claim *claim,
                               bool *ret_ambiguous);

/* Returns the next candidate of this owner to request a heartbeat from: never asked, or last asked before
 * `before`, the longest unasked first. skip: an identity to leave out, or NULL. NULL: none. */
struct candidate *match_next_unasked(const struct match *match, const void *owner, usec_t before,
                                     const char *skip);

/* A process of this age may have booted, even if /proc does not show a boot. */
#define BIRTH_UNSEEN_BOOT_USEC (10 * USEC_PER_SEC)

/* More than the age of any heartbeat that still counts, and less than time zones differ. */
#define BIRTH_CLOCK_USEC (10 * USEC_PER_MIN)

/* The times of a record, and of the process with its pid. All are in microseconds. */
struct birth {
        uint64_t born_usec; /* when the writer of the record registered, by the writer's wall clock; 0: not
                               recorded */
        uint64_t sent_usec; /* when the writer wrote the record last, by the same clock; for
                               birth_is_foreign() */
        usec_t started_at;  /* when the process was started, by CLOCK_BOOTTIME */
        bool booted;        /* /proc shows that the process has booted */
        usec_t monotonic, boottime, realtime; /* the clocks now */
};

/* Returns true if the process has booted, and the record was registered since the process was started: the
 * writer is then this process, or one of another host that shares the host name and the pid. The second kind
 * shows itself: a booted process has a record too, so a scan that begins from now on finds both.
 *
 * Returns false while the wall clock proves nothing. After a step back, the record of a dead process may look
 * newer than it is, until it has expired: lasts_usec is how long a record lasts without its writer. */
bool birth_is_own(const struct birth *birth, const struct world *world, usec_t lasts_usec);

/* Returns true if another process has registered the record: the record is older than the process. Processes
 * of another host that shares the host name and the pid are distinguished by that, unless they registered
 * later than the process was started, or less than CLOCK_STEP_USEC before.
 *
 * Returns false while the clocks prove nothing: the wall clock was stepped since the process was started, or
 * may have been before this sqmgr began; or the last heartbeat is further than BIRTH_CLOCK_USEC from now, as
 * if the writer's times are in another time zone. */
bool birth_is_foreign(const struct birth *birth, const struct world *world);
