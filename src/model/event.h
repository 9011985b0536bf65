/* SPDX-License-Identifier: MIT */
/* Events: their kinds in one list, and the events of a world that are not reported yet. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

struct fleet;
struct quoted; /* wire/quoted.h */

/* The kinds: message id, kind, name, level, and the kind that reports the end of the problem. Every table of
 * kinds is generated from this list. tests/check-docs compares it with the documents; the manual has the
 * kinds in the same order.
 *
 * Name and message id are a contract: they never change. The id is the journal's MESSAGE_ID, explained in
 * contrib/systemd/sqmgr.catalog. Get the id of a new kind from `systemd-id128 new`. */
/* clang-format off */
#define EVENT_KINDS(X) \
        X("78686634112f4ad58ae6407cc90dac35", EVENT_STARTED, "started", INFO, EVENT_NONE) \
        X("0310cd154d5b4f55ba5a35532692f7c4", EVENT_START_FAILED, "start-failed", ERR, EVENT_NONE) \
        X("7070f04480864a02886b30b796dff9cf", EVENT_ACTIVE, "active", INFO, EVENT_NONE) \
        X("e61b8260f12b4e0eb33845f866792b4e", EVENT_QUIET, "quiet", INFO, EVENT_NONE) \
        X("43333acd92834f3eac49bebef6c4a43c", EVENT_STOPPING, "stopping", INFO, EVENT_NONE) \
        /* a drain ends before its jobs: by drain_timeout, shutdown_timeout or an order */ \
        X("205dd101820449cf88fef0e2df5f3b7e", EVENT_DRAIN_CUT, "drain-cut", WARNING, EVENT_NONE) \
        X("81b583669a6e453aad79ddd9043ce3a3", EVENT_KILLED, "killed", ERR, EVENT_NONE) \
        /* exited as asked */ \
        X("7085476f35e341da9e7876748d6b9401", EVENT_GONE, "gone", INFO, EVENT_NONE) \
        /* exited unasked */ \
        X("bc8d0e71c8714b38b839514283dc4ec5", EVENT_CRASHED, "crashed", ERR, EVENT_NONE) \
        /* failed starts in a row keep the fleet below its count */ \
        X("5d477ad320074d14b700ba9ce03c0a96", EVENT_CRASH_LOOP, "crash-loop", ERR, EVENT_NONE) \
        /* the log tail of a crashed worker, read back later */ \
        X("9dea328e8e9646b492aa0a7dec099546", EVENT_LAST_LINES, "last-lines", ERR, EVENT_NONE) \
        /* templates belong to fleets with preload */ \
        X("90d0765aba4e40a4a3d69b76ef43d16a", EVENT_TEMPLATE_LOADING, "template-loading", INFO, EVENT_NONE) \
        X("10458b96f6b243c1b518a1f7c7896478", EVENT_TEMPLATE_READY, "template-ready", INFO, EVENT_NONE) \
        /* died, did not load, or did not fork */ \
        X("47b4c15e5ddb451eb28eb8be45a7732a", EVENT_TEMPLATE_FAILED, "template-failed", ERR, EVENT_TEMPLATE_READY) \
        /* workers boot separately */ \
        X("4a32b391efdc4d378275fcc5faa002db", EVENT_PRELOAD_REFUSED, "preload-refused", WARNING, EVENT_TEMPLATE_READY) \
        X("c38f400a3ed74ed1abce87602dc8379c", EVENT_BOOT_TIMEOUT, "boot-timeout", ERR, EVENT_NONE) \
        /* the worker's command, hidden by a wrapper, takes longer to exit than stop_timeout */ \
        X("0951212501544247ab4f14248bd91fba", EVENT_STOP_TIMEOUT_SHORT, "stop-timeout-short", WARNING, EVENT_NONE) \
        X("6853119b51e94a2893390835f39aaad3", EVENT_ELSEWHERE, "beats-elsewhere", WARNING, EVENT_NONE) \
        /* several processes send heartbeats under one host name and pid */ \
        X("e5094fb80ef84789a17e044e95354fce", EVENT_AMBIGUOUS, "ambiguous", WARNING, EVENT_NONE) \
        /* a process of the worker was asked to exit, and another one is active */ \
        X("3282dfcc87784d7fbd2bb20d3a4871b3", EVENT_SEVERAL, "several", WARNING, EVENT_NONE) \
        X("0e75bf363e904e1b9e47b8a90bf13ab9", EVENT_STALE, "stale", WARNING, EVENT_BEATS_AGAIN) \
        X("bf6d729e74174e7998990725e3ff9a20", EVENT_HUNG, "hung", ERR, EVENT_BEATS_AGAIN) \
        X("4b8d8ba0514d4ca39b2528edc4204e34", EVENT_BEATS_AGAIN, "beats-again", INFO, EVENT_NONE) \
        /* sends heartbeats and runs no jobs, though jobs wait and other workers run such jobs */ \
        X("2d9b55c09471411fbcefbbdd15fe70d5", EVENT_DEAF, "deaf", WARNING, EVENT_RUNS_AGAIN) \
        X("0cc422ceb107467aa676a6a3ff4213c8", EVENT_RUNS_AGAIN, "runs-again", INFO, EVENT_NONE) \
        X("74d57ea7dd82419f8338d88699287616", EVENT_MEMORY_OVER, "memory-over", INFO, EVENT_NONE) \
        X("2bfae3c2b48e4f74be20be2a41412e86", EVENT_MEMORY_CHURN, "memory-churn", WARNING, EVENT_NONE) \
        /* the workers of a generation seem to leak */ \
        X("4a62c60bab814642bc9d18ec2bfc8800", EVENT_MEMORY_GROWTH, "memory-growth", INFO, EVENT_NONE) \
        /* the jobs of a worker that exceeded a memory limit or was ended by the OOM killer. INFO like \
           memory-over: sqmgr handles the breach itself, and the death has an ERR event of its own. */ \
        X("5b832976107547ae96a8672c37102012", EVENT_CULPRITS, "culprits", INFO, EVENT_NONE) \
        X("8a1a713953244dc08df45754ac17ae36", EVENT_REMOTE, "remote", INFO, EVENT_NONE) \
        /* The process that sqmgr started has ended, and the worker that it was the client of runs on. */ \
        X("466b1cd6683544459994ecf3585939c4", EVENT_LEFTOVER, "leftover", WARNING, EVENT_NONE) \
        X("0a5782b72eaf4cb385715a9f3b5fa44d", EVENT_SIGNAL_REFUSED, "signal-refused", WARNING, EVENT_NONE) \
        /* the first worker of its fleet that does not catch the quiet signal */ \
        X("4a5bddf3da77404fbf79410226db0fbd", EVENT_QUIET_UNCAUGHT, "quiet-uncaught", WARNING, EVENT_NONE) \
        /* a worker runs, or the next one starts, without the file by which sqmgr sees its jobs */ \
        X("9ee5c01399d3410382ae30c79a54dffe", EVENT_SHIM_NOT_LOADED, "shim-not-loaded", WARNING, EVENT_NONE) \
        /* an adopted worker, whose sqmgr ended while sending the signal */ \
        X("4a7a05ed221443d88102df5bec823868", EVENT_STOP_UNCONFIRMED, "stop-unconfirmed", WARNING, EVENT_NONE) \
        X("aec76d419ab54a4ba83fe522cd7d9440", EVENT_ROLLOUT_STARTED, "rollout-started", INFO, EVENT_NONE) \
        X("55bcaa74a4114086864e4a3d802e42ac", EVENT_ROLLOUT_DONE, "rollout-done", INFO, EVENT_NONE) \
        X("b5d652ac47a9473bb6e0a86bef5799a8", EVENT_ROLLOUT_HALTED, "rollout-halted", ERR, EVENT_NONE) \
        X("40127c4a667e438a995cd2ed24a14def", EVENT_ROLLOUT_ABORTED, "rollout-aborted", WARNING, EVENT_NONE) \
        /* max_processes is reached, draining workers included */ \
        X("15e247db6883405f91740013f6ac01c5", EVENT_PLACES_HELD, "places-held", WARNING, EVENT_NONE) \
        X("12e1d2d4589c4a89bd689a8ebced7466", EVENT_REDIS_UP, "redis-up", INFO, EVENT_NONE) \
        X("769878e19f844d038a72ebe8119a4f25", EVENT_REDIS_DOWN, "redis-down", ERR, EVENT_REDIS_UP) \
        X("7a3dd5e0b1f04b5f9c0a6a4e1f6d2c58", EVENT_DATABASE_UP, "database-up", INFO, EVENT_NONE) \
        X("c1f3b2a4906d4e7e8a5d9b7703e6c9a1", EVENT_DATABASE_DOWN, "database-down", ERR, EVENT_DATABASE_UP) \
        /* queues of one Redis, over their limits */ \
        X("7656ab2a56d14ed8a76c6d7dfeb0b6ea", EVENT_QUEUE_OVER, "queue-over", WARNING, EVENT_QUEUE_BACK) \
        X("866b9870572442ffb9275979cadddfa3", EVENT_QUEUE_BACK, "queue-back", INFO, EVENT_NONE) \
        /* autoscaling has changed a count */ \
        X("6e68a3e14b0341f3a21637a38bf37141", EVENT_SCALED, "scaled", INFO, EVENT_NONE) \
        /* another server is now the master */ \
        X("ceb8796fa4e042378a6e01b56ddc0b9d", EVENT_REDIS_FAILOVER, "redis-failover", WARNING, EVENT_NONE) \
        /* the host was renamed: new workers send heartbeats under the new name */ \
        X("a0dc2f5903264a92b3d116fd2241e447", EVENT_HOST_NAME, "host-name", INFO, EVENT_NONE) \
        X("989700e4a43c41f1a4b861fec10717c8", EVENT_TIME_DOUBT, "time-doubt", WARNING, EVENT_NONE) \
        /* was running in a worker that died */ \
        X("3ae5fac177484ac6b6b7773b2c5d8d0a", EVENT_JOB_LOST, "job-lost", ERR, EVENT_NONE) \
        /* was running in a worker that died, and is in its queue again */ \
        X("1e7d8a7c0eb34437b571e2837ab711bd", EVENT_JOB_RESCUED, "job-rescued", WARNING, EVENT_NONE) \
        /* was running in dying workers too often */ \
        X("257d9caf3c964106a7981dcc7c34c620", EVENT_JOB_PARKED, "job-parked", ERR, EVENT_NONE) \
        /* private queues return the jobs of dead workers */ \
        X("ac4a08e8843c419c88d92aff41a2f845", EVENT_RESCUE_OFF, "rescue-off", WARNING, EVENT_NONE) \
        X("5e0f7c1d3ab24c6d9b1f8f0c2d7a6e43", EVENT_DRAIN_ABANDONED, "drain-abandoned", WARNING, EVENT_NONE) \
        X("2c8d5833761141ce80db08097c1f21d8", EVENT_RESCUE_FAILED, "rescue-failed", ERR, EVENT_NONE) \
        /* a job runs for longer than job_warn_after */ \
        X("25efa6719f1c48ad8d8c75d3ca347d7c", EVENT_JOB_LONG, "job-long", WARNING, EVENT_NONE) \
        /* the jobs of a new release were compared with those of the old one */ \
        X("454693c47b1b412bbb8d0492b5d719d3", EVENT_TRIAL, "trial", INFO, EVENT_NONE) \
        /* an operator's order */ \
        X("bff299560cf443aeb39df5a4da71cf1c", EVENT_ORDER, "order", INFO, EVENT_NONE)

enum event_kind {
#define EVENT_KIND(id, kind, name, level, end) kind,
        EVENT_KINDS(EVENT_KIND)
#undef EVENT_KIND
        _EVENT_MAX,
        EVENT_NONE = _EVENT_MAX,
};

/* clang-format on */

/* Why a worker is started, replaced or stopped: the name, a contract, and the phrase about the worker. A
 * worker keeps its reason from the decision on. */
#define REASONS(X)                                                                                           \
        X(REASON_NONE, "none", "")                                                                           \
        X(REASON_MEMORY, "memory", "over memory_threshold or memory_limit")                                  \
        X(REASON_RESTART, "restart", "a restart deploys new code")                                           \
        X(REASON_OPERATOR, "operator", "ordered by the operator")                                            \
        X(REASON_AGE, "age", "older than max_age")                                                           \
        X(REASON_SCALE, "scale", "the fleet has more workers than its current count")                        \
        X(REASON_EXTERNAL, "external", "quieted from outside sqmgr")                                         \
        X(REASON_SHUTDOWN, "shutdown", "sqmgr is shutting down")                                             \
        X(REASON_CRASH, "crash", "the worker crashed")                                                       \
        X(REASON_BOOT, "boot", "did not boot within boot_timeout")                                           \
        X(REASON_HUNG, "hung", "no heartbeat for longer than hang_after")                                    \
        X(REASON_DEAF, "deaf", "runs no jobs although jobs wait")                                            \
        X(REASON_ROLLBACK, "rollback", "the fleet returns to the previous release")

enum reason {
#define REASON(reason, name, text) reason,
        REASONS(REASON) _REASON_MAX,
#undef REASON
};

/* The user who gave an order, as the kernel reports the peer of the control socket. */
#define ORDERER_NAME_MAX 64
#define ORDERER_TEXT_MAX (ORDERER_NAME_MAX + 32)

struct orderer {
        bool known; /* false: no user gave the order. name then says what caused it, or is "" */
        uid_t uid;
        char name[ORDERER_NAME_MAX]; /* "": no known name on this host */
};

struct event {
        enum event_kind kind;
        const struct fleet *fleet; /* NULL: no fleet */
        unsigned index;            /* of the worker; 0: no worker */
        pid_t pid;
        enum reason reason;
        uint64_t generation;   /* the worker's, else the fleet's; 0: no fleet */
        char *text;            /* a sentence, owned by the world */
        struct quoted *quoted; /* quoted by the sentence, owned by the world; NULL: nothing */
        struct orderer by;     /* for orders and their immediate effects */
        bool excused;          /* the fleet's server was down: a warning, as that has an event of its own */
};

/* The properties of each kind, from EVENT_KINDS. */
extern const struct event_kind_facts {
        const char *message_id; /* 32 hex digits: the journal's MESSAGE_ID */
        const char *name;
        int level;           /* of syslog: LOG_ERR, LOG_WARNING or LOG_INFO */
        enum event_kind end; /* the kind that reports the end of the problem, or EVENT_NONE */
} event_kinds[_EVENT_MAX];

/* Returns the level of syslog. */
int event_level(const struct event *event);
/* Returns the level for alerting: the end of a problem has the level of the problem. */
int event_alert_level(const struct event *event);
