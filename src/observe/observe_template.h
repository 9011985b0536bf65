/* SPDX-License-Identifier: MIT */
/* Records observations of templates, as observe/observe.h does for workers. All times are monotonic
 * microseconds. */
#pragma once

#include "model/fleet.h"

struct exit_status;

/* A process was started as a template of the current generation. Returns the new template. A slot must be
 * free (fleet_template_place()). */
struct template *template_observe_started(struct fleet *fleet, pid_t pid, uint64_t pid_start, usec_t now);
/* sqmgr itself could not start the process. error: the errno. */
void template_observe_start_failed(struct fleet *fleet, int error, usec_t now);
/* Adds a template that a previous sqmgr started. connected: its socket is still open. pid_start,
 * serving_start: start times of the processes that have these pids now, 0 if there is none. Returns the
 * template, or NULL if none of its processes lives or no slot is free. */
struct template *template_observe_adopted(struct fleet *fleet, const struct template *known, bool connected,
                                          uint64_t pid_start, uint64_t serving_start);
/* The template has loaded the application. serving_pid: the process that reports so and forks. unsafe: what
 * it says of why it cannot be forked; NULL: it can. */
void template_observe_ready(struct template *template, pid_t serving_pid, uint64_t serving_start,
                            const struct quoted *unsafe, usec_t now);
/* The main process has exited, and the serving process lives. The latter is the template's main process from
 * now on. */
void template_observe_promoted(struct template *template);
/* booted: titles or threads of its processes show that it works. The command then did not become a template
 * but a worker. Returns that worker, which the caller attaches to, and frees the template's slot. NULL: no
 * worker, or out of memory. */
struct worker *template_observe_booted(struct template *template, bool booted, usec_t now);
void template_observe_memory(struct template *template, uint64_t bytes);

/* A fork was requested for the worker at `index`. error: 0, or a positive errno if the request failed. */
void template_observe_fork_asked(struct template *template, unsigned index, enum reason started_for,
                                 int error, usec_t now);
/* The fork is still pending. held: the template is stopped or waits for a disk; such time counts only in
 * part. Time in which sqmgr was late does not count. */
void template_observe_fork_waits(struct template *template, bool held, usec_t now);
/* The forked process has connected; it does nothing until allowed to continue. Returns the new worker, or
 * NULL if out of memory: the caller then closes its socket, which ends the process. */
struct worker *template_observe_hello(struct template *template, pid_t pid, uint64_t pid_start, usec_t now);
/* The fork failed. error: a positive errno; 0: the forked process ended before it connected. why: the reason
 * in words. said: what the template says of it; NULL: nothing. */
void template_observe_fork_failed(struct template *template, int error, const char *why,
                                  const struct quoted *said, usec_t now);
/* A forked worker was allowed to continue; its time to boot begins. */
void template_observe_go(struct worker *worker, usec_t now);

/* The template was asked to end. A template that is not known to serve may run jobs: it gets as much time as
 * a worker. */
void template_observe_ended(struct template *template, usec_t now);
void template_observe_killed(struct template *template, usec_t now);
/* The template's processes have all ended; frees its slot. script: its Ruby file. If the log tail says that
 * this file cannot be loaded, the event reports that the command cannot see the file. */
void template_observe_exit(struct template *template, const struct exit_status *exit, const char *script,
                           usec_t now);
/* The log tail of such a template has arrived later. Call before observe_log_tail(). */
void template_observe_log_tail(struct fleet *fleet, uint64_t token, const struct quoted *lines,
                               const char *script);
/* Time has passed: workers boot separately once the state could not be written for boot_timeout. */
void template_observe_time(struct fleet *fleet, usec_t now);
