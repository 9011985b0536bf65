/* SPDX-License-Identifier: MIT */
/* Sentences about workers, fleets and the world, and about how a process ended, for people. Every function
 * writes to text and returns it, unless noted. */
#pragma once

#include "model/fleet.h"

/* Returns a static sentence: why the worker leaves or is to leave. See reason_text(). */
const char *worker_reason_text(const struct worker *worker);

/* Since when and by whom a fleet is quieted or stopped: "3h ago by deploy (uid 1001)"; "" if neither or not
 * known. */
#define FLEET_ORDERED_MAX (ORDERER_TEXT_MAX + 48)

const char *fleet_ordered_text(const struct fleet *fleet, usec_t now, char text[static FLEET_ORDERED_MAX]);

/* The order behind the current count: "scaled 4min ago by deploy (uid 1001)"; "scaled" if nothing more is
 * known; "" for the configured count. */
#define FLEET_SCALED_MAX (sizeof("scaled ") + FLEET_ORDERED_MAX)

const char *fleet_scaled_text(const struct fleet *fleet, usec_t now, char text[static FLEET_SCALED_MAX]);

/* Why the heartbeats of a worker that has booted are not found, or what to check. */
#define WORKER_ELSEWHERE_MAX (REDIS_DIFFERENCE_MAX + WORKER_PEERS_MAX)
const char *worker_elsewhere_text(const struct worker *worker, char text[static WORKER_ELSEWHERE_MAX]);

/* Why a worker may not have loaded its shim, and how it can. For frameworks with a shim. */
#define WORKER_SHIMLESS_MAX 384
const char *worker_shimless_text(const struct worker *worker, char text[static WORKER_SHIMLESS_MAX]);

/* Why no heartbeat of a worker is found that may run jobs. */
#define WORKER_UNSEEN_MAX MAX(WORKER_ELSEWHERE_MAX, WORKER_SHIMLESS_MAX)
const char *worker_unseen_text(const struct worker *worker, char text[static WORKER_UNSEEN_MAX]);

/* Describes what the worker waits for; "" if nothing. Below, fleet_waits_for() does the same for a fleet. */
const char *worker_waits_for(const struct worker *worker, usec_t now, char *text, size_t size);

/* Why a signal was not sent, for a positive errno. Returns a static text. */
const char *worker_signal_error_text(const struct worker *worker, int error);

/* The shell command that asks the worker to exit by this signal. Without known heartbeats, the signal is for
 * the whole process group. */
#define STOP_COMMAND_MAX 48
const char *worker_stop_command(const struct worker *worker, int signo, char *text, size_t size);

const char *fleet_waits_for(const struct fleet *fleet, usec_t now, char *text, size_t size);

/* Describes the failed starts in a row; "" if there are none. */
#define CRASH_TEXT_MAX (CRASH_LAST_MAX + 256)

const char *fleet_crash_text(const struct fleet *fleet, usec_t now, char *text, size_t size);
/* Returns the text from elsewhere that fleet_crash_text() refers to, borrowed from the fleet; NULL if a
 * halted restart shows it already. */
const struct quoted *fleet_crash_quoted(const struct fleet *fleet);

/* The progress of sqmgr's shutdown: "2 workers left, 3 running jobs; all asked to exit in 25s". */
const char *world_stopping_text(const struct world *world, usec_t now, char *text, size_t size);

/* A worker and its process, as events name them: "web/3 (pid 28650)". */
#define WORKER_EVENT_NAME_MAX 300
const char *worker_event_name(const struct worker *worker, char text[static WORKER_EVENT_NAME_MAX]);

/* The function as an expression; the text is valid until the end of the enclosing block. */
#define WORKER_EVENT_NAME(worker) worker_event_name(worker, (char[WORKER_EVENT_NAME_MAX]){""})

struct quoted; /* wire/quoted.h */

/* How a process ended. */
struct exit_status {
        bool known; /* false: not our child, or lost */
        int status; /* exit status, or signal number */
        bool by_signal;
        const struct quoted *log_tail; /* log tail of the process; NULL: not known */
        uint64_t lines_token;          /* not 0: the log tail is still being read, see observe_log_tail() */
        const struct quoted *launch_error; /* why the command was never executed; NULL: it was executed */
};

/* Returns true for status 0. */
bool exit_status_is_success(const struct exit_status *exit);
/* Writes the status in words: "was killed by signal 9 (SIGKILL)". */
#define EXIT_STATUS_TEXT_MAX 64
const char *exit_status_text(const struct exit_status *exit, char text[static EXIT_STATUS_TEXT_MAX]);
/* The function as an expression; the text is valid until the end of the enclosing block. */
#define EXIT_STATUS_TEXT(exit) exit_status_text(exit, (char[EXIT_STATUS_TEXT_MAX]){""})
/* Returns constant text for the errno of a start. */
const char *start_error_text(int error);
