/* SPDX-License-Identifier: MIT */
/* Problems: their codes in one table, and a list of those that are known. */
#pragma once

#include "base/macro.h"

struct fleet;
struct quoted; /* wire/quoted.h */
struct worker;

/* The codes: code, name, severity, cause, remedy, command. The name is a contract and never changes. Cause
 * and remedy are a sentence each without the full stop, the remedy an imperative; the command may be NULL. In
 * a command FLEET, WORKER, COUNT and CONFIG stand for what problem_command() knows. sqmgrctl(1)
 * lists the rows in this order; tests/check-problems compares them. */
/* clang-format off */
#define PROBLEMS(X) \
        /* of sqmgr and its machine */ \
        X(SHUTTING_DOWN, "shutting-down", WARNING, \
          "sqmgr is shutting down and drains its workers", \
          "Wait until the workers have finished their jobs", NULL) \
        X(STATE_UNWRITABLE, "state-unwritable", ERROR, \
          "sqmgr cannot write its state: after a crash or a reboot it would not know its latest orders", \
          "Make the directory writable and check whether its disk is full", NULL) \
        X(CONFIG_REFUSED, "config-refused", ERROR, \
          "the config file was edited after sqmgr read it, and the next start of sqmgr would refuse it", \
          "Fix what the check reports", "sqmgr --check-config -c CONFIG") \
        X(REDIS_DOWN, "redis-down", ERROR, \
          "sqmgr cannot reach Redis, so heartbeats are unknown and no worker is signaled", \
          "Check that Redis runs, and compare its address with [redis] and redis_url", "sqmgrctl doctor") \
        X(REDIS_CONNECTING, "redis-connecting", WARNING, \
          "sqmgr has not reached Redis yet", \
          "Check that Redis runs, and compare its address with [redis] and redis_url", "sqmgrctl doctor") \
        X(REDIS_SLOW, "redis-slow", ERROR, \
          "Redis accepts connections, but does not answer within a second, so no worker is signaled", \
          "Check the load of Redis and its slow commands (SLOWLOG)", "sqmgrctl doctor") \
        X(REDIS_REFUSES_WRITES, "redis-refuses-writes", ERROR, \
          "Redis refuses writes, so workers cannot send heartbeats, and no worker is signaled", \
          "Fix what Redis names: its memory, its disk, or its role", "sqmgrctl doctor") \
        X(TLS_UNVERIFIED, "tls-unverified", WARNING, \
          "the certificate of Redis is not checked (tls_verify = no), so another server on the network can pass for it", \
          "Set tls_ca_file to the certificate of the authority that signed it, and remove tls_verify", NULL) \
        X(BROKER_DOWN, "broker-down", WARNING, \
          "the Redis that is the broker of a fleet cannot be read: its queues are unknown, and its count is kept", \
          "Check that Redis runs, and compare its address with [redis] and redis_url", "sqmgrctl doctor") \
        X(DATABASE_DOWN, "database-down", ERROR, \
          "sqmgr cannot use the database of a fleet, so heartbeats are unknown and no worker is signaled", \
          "Fix what the error names; check that the database runs and that database_url fits it", "sqmgrctl doctor") \
        X(DATABASE_CONNECTING, "database-connecting", WARNING, \
          "sqmgr has not reached the database of a fleet yet", \
          "Check that the database runs, and its address in database_url", "sqmgrctl doctor") \
        X(SERVER_CRASHES_SQMGR, "server-crashes-sqmgr", ERROR, \
          "sqmgr ended twice within 10 minutes while it read the data of this server; it now reads the server once a minute at most, and no worker with heartbeats there is signaled", \
          "Report the crash, remove the data that causes it or install a fixed sqmgr, then reload", "sqmgrctl reload") \
        X(OPEN_FILES, "open-files", WARNING, \
          "the limit of open files is too low for max_processes of all fleets: starts of workers would fail", \
          "Raise LimitNOFILE= of the service to the number that is needed, then restart sqmgr; its workers survive", NULL) \
        X(RUNS_AS_ROOT, "runs-as-root", NOTICE, \
          "sqmgr and its workers run as root; a warning, but a notice in a container", \
          "Set User= in the unit that runs sqmgr, or USER in the Containerfile", NULL) \
        X(HOST_NAME_OVERRIDDEN, "host-name-overridden", WARNING, \
          "an environment variable gives workers another host name than sqmgr uses: heartbeats cannot be matched, or with namespaced = yes not by a unique name", \
          "Unset the variable for sqmgr and its workers, or set namespaced = yes", NULL) \
        X(UNKNOWN_PROCESS, "unknown-process", NOTICE, \
          "a process in the control group of sqmgr's service was left by an earlier sqmgr and belongs to no worker; if it is a worker, it runs jobs unseen", \
          "Check what it runs; if nothing needs it, ask it to exit (a worker: with the stop signal of its framework)", "ps -fp PID") \
        X(CLOCK_JUMP, "clock-jump", NOTICE, \
          "the clock jumped, the machine was suspended, or sqmgr stalled: heartbeats from before were not trusted", \
          "Check the load and the clock of the machine", "sqmgrctl events") \
        /* of one fleet */ \
        X(ROLLOUT_HALTED, "rollout-halted", ERROR, \
          "new workers failed, their jobs failed more often (rollout_trial), they made no progress within rollout_timeout, or a rollback ended early; old workers keep running", \
          "Fix the release or link the old one, then restart the fleet", "sqmgrctl restart FLEET") \
        X(ROLLED_BACK, "rolled-back", ERROR, \
          "the fleet has returned to the previous release; until the next restart, workers come from its template in memory, or none is started", \
          "Let the directory of the fleet point to a good release, then restart the fleet", "sqmgrctl restart FLEET") \
        X(ROLLOUT_SLOW, "rollout-slow", WARNING, \
          "a restart has made no progress for half of rollout_timeout, or waits because a new worker failed", \
          "Check the log of the new workers", "sqmgrctl logs FLEET") \
        X(CRASH_LOOP, "crash-loop", ERROR, \
          "several workers in a row failed soon after their start", \
          "Fix the release or its environment, then restart the fleet", "sqmgrctl restart FLEET") \
        X(START_FAILED, "start-failed", WARNING, \
          "a worker failed soon after its start, and the next one has not succeeded yet", \
          "Check why it failed", "sqmgrctl events FLEET") \
        X(CRASH_RECOVERING, "crash-recovering", WARNING, \
          "the workers run again after failed starts; a minute without a failure ends the recovery", \
          "Check why they failed", "sqmgrctl events FLEET") \
        X(FLEET_SHORT, "fleet-short", ERROR, \
          "fewer workers are active than the fleet should have, and not enough are starting", \
          "Check what the fleet waits for", "sqmgrctl status FLEET") \
        X(FLEET_STARTING, "fleet-starting", WARNING, \
          "fewer workers are active than the fleet should have; the missing ones are starting", \
          "Wait until they have booted", "sqmgrctl status FLEET") \
        X(PLACES_HELD, "places-held", WARNING, \
          "draining or hung workers hold all places that max_processes leaves, so no worker can start", \
          "Wait for their jobs, set drain_timeout, or raise max_processes", "sqmgrctl jobs FLEET") \
        X(MEMORY_SHORT, "memory-short", WARNING, \
          "too little memory is available to start another worker", \
          "Add memory, or run fewer workers", "sqmgrctl top") \
        X(START_IMPOSSIBLE, "start-impossible", WARNING, \
          "sqmgr itself cannot start a process: memory, processes or descriptors are short", \
          "Raise LimitNPROC=, LimitNOFILE= or TasksMax=, whichever is reached", "sqmgrctl doctor") \
        X(FLEET_SILENT, "fleet-silent", WARNING, \
          "no worker of the fleet sends heartbeats: all hang, or Redis or the database refuses writes", \
          "Check whether Redis or the database accepts writes, and the log of the workers", "sqmgrctl logs FLEET") \
        X(FLEET_STOPPED, "fleet-stopped", WARNING, \
          "an operator stopped the fleet; it stays stopped until it is started", \
          "Start the fleet when it should accept jobs again", "sqmgrctl start FLEET") \
        X(FLEET_QUIETED, "fleet-quieted", WARNING, \
          "an operator quieted the fleet; its workers accept no jobs until it is started", \
          "Start the fleet when it should accept jobs again", "sqmgrctl start FLEET") \
        X(COUNT_ORDERED, "count-ordered", NOTICE, \
          "an operator ordered another count than active_process_count", \
          "Set active_process_count to the ordered count, or order the configured one", "sqmgrctl scale FLEET COUNT") \
        X(AUTOSCALING_OVERRIDDEN, "autoscaling-overridden", NOTICE, \
          "an operator ordered a count, so the count does not follow the queues", \
          "Return to autoscaling once that count is no longer wanted", "sqmgrctl scale FLEET auto") \
        X(MEMORY_CHURN, "memory-churn", WARNING, \
          "workers exceed memory_threshold soon after their boot, so they are replaced again and again", \
          "Raise memory_threshold above what a worker holds after its boot", "sqmgrctl status FLEET") \
        X(MEMORY_OVERCOMMITTED, "memory-overcommitted", WARNING, \
          "memory_threshold times max_processes is more than the machine has", \
          "Lower memory_threshold or max_processes, or add memory", NULL) \
        X(STOP_TIMEOUT_SHORT, "stop-timeout-short", ERROR, \
          "the framework's own shutdown timeout is longer than stop_timeout allows: workers would be killed", \
          "Set stop_timeout to at least 5s more than the framework's own timeout", NULL) \
        X(PRELOAD_REFUSED, "preload-refused", WARNING, \
          "the template could not load the application, so workers boot separately", \
          "Fix what the template reports, then restart the fleet; or set preload = no", "sqmgrctl restart FLEET") \
        X(PRELOAD_SINGLE, "preload-single", NOTICE, \
          "preload is set for one worker: no memory is shared, and the template needs memory", \
          "Set preload = no, unless a quick replacement is worth the memory", NULL) \
        X(FRAMEWORK_UNTRIED, "framework-untried", NOTICE, \
          "the tests use a stand-in for the framework, which itself was run by hand only", \
          "Try a restart under load, and the death of a worker, before you rely on it", NULL) \
        X(ENVIRONMENT_HOST_NAME, "environment-host-name", WARNING, \
          "environment gives the workers another host name than sqmgr uses: heartbeats cannot be matched, or with namespaced = yes not by a unique name", \
          "Remove the variable from environment, or set namespaced = yes", NULL) \
        X(QUEUE_NAME_UNKNOWN, "queue-name-unknown", WARNING, \
          "latency_target names a queue that no worker of the fleet serves", \
          "Fix the name, or let the workers serve the queue (-q)", NULL) \
        X(QUEUES_LEFT_OUT, "queues-left-out", WARNING, \
          "the workers serve more queues than sqmgr reads, so it does not see the jobs of the others", \
          "Let the workers serve fewer queues, or give the others a fleet without active_process_max", NULL) \
        X(QUEUE_STUCK, "queue-stuck", WARNING, \
          "jobs wait although no thread that serves their queue runs a job", \
          "Check in the log of the workers why they take none, then restart the fleet", "sqmgrctl restart FLEET") \
        X(TARGET_BELOW_BOOT, "target-below-boot", NOTICE, \
          "latency_target is shorter than the time to notice a burst and to boot a worker: jobs wait for longer", \
          "Raise latency_target or active_process_count, or set preload = yes", NULL) \
        X(TARGET_BELOW_JOB, "target-below-job", NOTICE, \
          "jobs run for longer than latency_target: while all threads run such jobs, others wait", \
          "Give such jobs a queue and a fleet of their own, or raise latency_target", "sqmgrctl jobs FLEET") \
        X(AUTOSCALING_AT_MAX, "autoscaling-at-max", WARNING, \
          "the queues need more workers than active_process_max allows", \
          "Raise active_process_max, or check which jobs take so long", "sqmgrctl jobs FLEET") \
        X(AUTOSCALING_MEMORY, "autoscaling-memory", WARNING, \
          "the queues need more workers than the memory of the machine allows", \
          "Add memory, or check what the workers hold", "sqmgrctl top") \
        /* of workers; one problem for all workers of a fleet with the same code */ \
        X(WORKER_HUNG, "worker-hung", ERROR, \
          "a worker has sent no heartbeat for hang_after; it does not count as active", \
          "Check its log and what it runs; set hang_action = kill to have such workers replaced", "sqmgrctl why WORKER") \
        X(WORKER_AMBIGUOUS, "worker-ambiguous", ERROR, \
          "several processes with the host name and pid of a worker send heartbeats, and began too close together to be distinguished, so it gets no signal", \
          "Give each machine and container a host name of its own", "sqmgrctl why WORKER") \
        X(WORKER_ELSEWHERE, "worker-elsewhere", ERROR, \
          "a worker has booted, but Redis or the database has no heartbeat of it", \
          "Set redis_url or database_url, namespace and host name to what the application uses", "sqmgrctl why WORKER") \
        X(WORKER_UNSEEN, "worker-unseen", ERROR, \
          "no heartbeat of a worker was found within boot_timeout, and it may run jobs; it is kept, and does not count as active", \
          "Read its log, set redis_url or database_url to what the application uses, or stop it with --force", "sqmgrctl why WORKER") \
        X(SHIM_NOT_LOADED, "shim-not-loaded", WARNING, \
          "a worker runs without the file by which sqmgr sees its jobs; it is treated like one of framework 'plain'", \
          "Let the worker read /usr/share/sqmgr, or load the file in the application", "sqmgrctl why WORKER") \
        X(HEARTBEAT_REFUSED, "heartbeat-refused", ERROR, \
          "the status file of a worker does not count", \
          "Write it as sqmgr-heartbeat(7) describes, as the user of the worker", "sqmgrctl why WORKER") \
        X(STOP_UNCONFIRMED, "stop-unconfirmed", WARNING, \
          "an earlier sqmgr ended while it sent the stop signal; a second one would end the worker's jobs", \
          "Send the signal if the worker still accepts jobs", "sqmgrctl why WORKER") \
        X(POLL_DOES_NOT_END, "poll-does-not-end", WARNING, \
          "a quieted worker waits for the end of a request to its broker, which may still bring a job; it is kept", \
          "Check the broker: the worker connects again by itself; stop with --force gives up the job", "sqmgrctl why WORKER") \
        X(SIGNAL_REFUSED, "signal-refused", WARNING, \
          "a worker does not catch the quiet signal, or the kernel refused to send it", \
          "Check the command of the fleet, and the user that sqmgr runs as", "sqmgrctl why WORKER") \
        X(WORKER_SEVERAL, "worker-several", WARNING, \
          "the command of a worker has started another process, which accepts jobs, too", \
          "Let the command start one process in the foreground, and leave its restart to sqmgr", "sqmgrctl why WORKER") \
        X(WORKER_DEAF, "worker-deaf", WARNING, \
          "a worker sends heartbeats and runs no jobs, although jobs wait and other workers run such jobs; or its loop that fetches jobs does not turn", \
          "Check its log and its connections; set hang_action = kill to have such workers replaced", "sqmgrctl why WORKER") \
        X(WORKER_STALE, "worker-stale", WARNING, \
          "the heartbeats of a worker have stopped; it is kept, and gets no signal", \
          "Check its log: the worker may hang", "sqmgrctl why WORKER")

enum problem_code {
#define PROBLEM_CODE(code, ...) PROBLEM_##code,
        PROBLEMS(PROBLEM_CODE)
#undef PROBLEM_CODE
        _PROBLEM_MAX,
        PROBLEM_NONE = _PROBLEM_MAX,
};

/* clang-format on */

/* PROBLEM_OK: something is in order; doctor alone notes that. */
enum problem_severity { PROBLEM_OK, PROBLEM_NOTICE, PROBLEM_WARNING, PROBLEM_ERROR, _PROBLEM_SEVERITY_MAX };
const char *problem_severity_name(enum problem_severity value);

extern const struct problem_kind {
        const char *name;
        enum problem_severity severity;
        const char *cause, *remedy;
        const char *command; /* NULL: none */
} problem_kinds[_PROBLEM_MAX];

/* A problem, or what doctor has found, which has no code: PROBLEM_NONE. */
struct problem {
        enum problem_code code;
        enum problem_severity severity; /* at least that of the kind */
        bool unready;                   /* sqmgr is not ready as long as this lasts */
        const struct fleet *fleet;      /* NULL: no fleet */
        const struct worker *worker;    /* the first of count; NULL: no worker */
        unsigned count;                 /* workers with this problem; 1 without a worker */
        usec_t since;                   /* CLOCK_MONOTONIC; 0: not known */
        char *about;                    /* the subject; NULL: the worker, else the fleet */
        char *text;                     /* state and reason, without a full stop */
        const char *command;            /* instead of the kind's; NULL: the kind's */
        const char *remedy;             /* instead of the kind's; NULL: the kind's */
        const struct quoted *quoted;    /* quoted by the text, which has none of its bytes; NULL: nothing */
};

/* A list, which owns the texts of its problems. */
struct problems {
        struct problem *list;
        size_t n, allocated;
        bool lost; /* memory was short: some problems are missing */
};

/* Value of `about` for the fleet or worker of the problem itself. Typed, because cppcheck takes a bare NULL
 * for the end of the arguments. */
#define PROBLEM_ABOUT_FLEET ((const char *)NULL)
/* Adds a copy of problem, its command, remedy and quoted text, with the formatted text. about: the subject,
 * copied, or PROBLEM_ABOUT_FLEET. The severity is raised to that of the kind. If the fleet of a worker has a
 * problem of the same code already, only its count is raised. */
void problems_add(struct problems *problems, const struct problem *problem, const char *about,
                  const char *format, ...) _printf_(4, 5);
/* Adds what doctor has found; about and remedy are copied. remedy: NULL if no action is needed. */
void problems_note(struct problems *problems, enum problem_severity severity, const char *about,
                   const char *remedy, const char *format, ...) _printf_(5, 6);
/* Has the last problem quote a text. */
void problems_quote(struct problems *problems, const struct quoted *quoted);
/* Moves the problems of a fleet, or with NULL those of no fleet, to the end of another list. */
void problems_move(struct problems *from, const struct fleet *fleet, struct problems *to);
void problems_clear(struct problems *problems);

/* Returns the first problem of that code, or NULL. */
const struct problem *problems_find(const struct problems *problems, enum problem_code code);
/* Sorts the worst first. Problems of the same severity keep their order. */
void problems_sort(struct problems *problems);

/* Writes the subject: "fleet 'default'", "default/3", "default/3 and 7 more". Returns text. */
#define PROBLEM_ABOUT_MAX 300
const char *problem_about(const struct problem *problem, char text[static PROBLEM_ABOUT_MAX]);

/* Returns what to do, as a sentence without the full stop; NULL: nothing. */
const char *problem_remedy(const struct problem *problem);

/* Returns the command for a shell. "": none; NULL: memory is short. instance: what sqmgrctl needs to find
 * this sqmgr, a name for -i, or a path for -s; NULL: nothing. The caller owns the result. */
char *problem_command(const struct problem *problem, const char *instance, const char *config_path);
