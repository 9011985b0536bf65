/* SPDX-License-Identifier: MIT */
/* Deadlines of workers: when one is given up, asked to exit although jobs run, or killed. */
#pragma once

#include "model/fleet.h"

/* Returns true if the heartbeat has changed recently: within the framework's limit, after the last doubt
 * about time, with Redis up. */
bool worker_fresh(const struct worker *worker, usec_t now);

/* Returns the end of a worker's trial: ready_after from its first heartbeat. An exit before that is a failed
 * start, and counts against the release if the worker is a new one (P7). Valid only after the first
 * heartbeat. */
usec_t worker_ready_at(const struct worker *worker);

/* Returns true if the worker is fresh and active for ready_after: other workers may then be quieted. */
bool worker_ready(const struct worker *worker, usec_t now);

/* Returns true if the worker's heartbeat is elsewhere, and its title was read recently, after the last doubt
 * about time, with Redis up. */
bool worker_title_fresh(const struct worker *worker, usec_t now);

/* Returns true if the title has shown for ready_after that the worker accepts jobs, though its heartbeat is
 * elsewhere. Other workers whose heartbeat is elsewhere, too, may then be quieted. */
bool worker_title_ready(const struct worker *worker, usec_t now);

/* Returns the age in microseconds from which a heartbeat is no longer fresh. */
usec_t worker_stale_usec(const struct worker *worker);

/* Returns how long, in microseconds, one process must be silent while another one sends heartbeats, before
 * the silent one counts as ended. Longer than a pause of all local processes that raises no doubt about time.
 */
usec_t worker_outlived_usec(const struct worker *worker);

/* Returns how long, in microseconds, a worker has been silent while its heartbeats could have been received.
 */
usec_t worker_silent_usec(const struct worker *worker, usec_t now);

/* Returns true if that is longer than hang_after. */
bool worker_silent_too_long(const struct worker *worker, usec_t now);

/* Returns true if everything since `at` can be evidence: neither a doubt about time nor an outage of Redis
 * has come since. False for 0. */
bool worker_trusted_since(const struct worker *worker, usec_t at);

/* Returns true if the worker is active and was found deaf (observe/observe_deaf.h), and nothing
 * has raised a doubt about that since. */
bool worker_is_deaf(const struct worker *worker);

/* Returns when every worker must be stopped by the operator's order: `stop --force`, or the end of a
 * shutdown. 0: at once. USEC_INFINITY: no such order. */
usec_t fleet_forced_at(const struct fleet *fleet);

/* Returns the same for one worker, which an order may force alone. */
usec_t worker_forced_at(const struct worker *worker);

/* The time at which a draining worker is asked to exit although its jobs still run. */
struct cut_off {
        usec_t at;          /* USEC_INFINITY: no limit; 0: at once */
        usec_t allowed;     /* the time that the worker gets to drain */
        enum cut_word word; /* the setting that limits it; CUT_ORDER: by order, at once, or no limit */
};

struct cut_off worker_cut_off(const struct worker *worker);

/* Returns when the worker was sent its stop signal. If stop_timeout counts from quieting, that is the time of
 * quieting. */
usec_t worker_stop_sent_at(const struct worker *worker);

/* Returns when a process of the fleet that has not booted is given up. Only time with Redis up and without
 * doubt about time counts. */
usec_t boot_deadline(const struct fleet *fleet, usec_t begun_at);
usec_t worker_boot_deadline(const struct worker *worker);
/* Returns true if a worker that has shown no boot by then has failed to boot: workers of its command show
 * their boot, or it does nothing at all. */
bool worker_boot_has_failed(const struct worker *worker);

/* Call if no process of the worker has a status file, not even one that its shim has begun. Returns true if
 * the worker runs without the shim: see worker_process.shimless. While a record is expected, as others of the
 * fleet write some, the worker is kept unseen instead. */
bool worker_lacks_shim(const struct worker *worker, usec_t now);

/* Returns when the stop signal of a remote worker is sent again, if it has not exited by then; USEC_INFINITY:
 * not at all. The signal may be lost on its way through the server, and a second one ends no jobs. */
usec_t worker_repeat_stop_at(const struct worker *worker);

/* Returns when a worker that was asked to exit is killed: after stop_timeout; a remote one gets the signal
 * with a heartbeat, which is as much later as two of them take. Only time without doubt and
 * with Redis up counts, when the worker could have put its jobs back. During a shutdown or forced stop, the
 * time without Redis counts too. */
usec_t worker_kill_at(const struct worker *worker);

/* The items to read of a worker; see worker_poll_items(). */
enum poll_item {
        POLL_HEARTBEAT = 1 << 0, /* the heartbeat, or its identity while unknown */
        POLL_WORK_LIST = 1 << 1, /* whether the work list is empty */
        POLL_MEMORY = 1 << 2,
        POLL_THREADS = 1 << 3,    /* the number of job threads */
        POLL_TITLE = 1 << 4,      /* the process title */
        POLL_BOOT = 1 << 5,       /* whether titles or threads of its processes show that it has booted */
        POLL_ARGUMENTS = 1 << 6,  /* whether their arguments show how long it may take to exit */
        POLL_SIBLINGS = 1 << 7,   /* whether another process of it sends heartbeats too */
        POLL_OWN_MEMORY = 1 << 8, /* the memory that it shares with no other process */
        POLL_PEERS = 1 << 10,     /* the servers that it is connected to */
        POLL_ELSEWHERE =
                1 << 9, /* whether its title shows that it has booted, before boot_timeout has passed */
};

/* Returns the items (enum poll_item) to read of this worker now. fast: at a fast poll, else at a regular one.
 * 0: nothing. */
unsigned worker_poll_items(const struct worker *worker, bool fast, usec_t now);

/* Returns true while something is in transition: poll about 4 times a second. */
bool fleet_wants_fast_polls(const struct fleet *fleet, usec_t now);
