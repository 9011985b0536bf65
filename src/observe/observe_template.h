/* SPDX-License-Identifier: MIT */
/* Folds what was observed of templates into the model, as observe/observe.h does of workers. All times are
 * monotonic microseconds. */
#pragma once

#include "model/fleet.h"

struct exit_status;

/* A process was started as a template of the present generation. Returns the new one; there is a place for
 * it. */
struct template *template_observe_started(struct fleet *fleet, pid_t pid, uint64_t pid_start, usec_t now);
/* It could not be: why, in words. */
void template_observe_start_failed(struct fleet *fleet, const char *why, usec_t now);
/* One that an earlier sqmgr had. connected: we speak with it still. pid_start, serving_start: of the
 * processes that have these pids now, 0 where there is none. Returns it, or NULL where none of it lives. */
struct template *template_observe_adopted(struct fleet *fleet, const struct template *known, bool connected,
                                          uint64_t pid_start, uint64_t serving_start);
/* It has loaded its application; the process that says so serves. unsafe: why it cannot be forked, one
 * sentence; NULL: it can. */
void template_observe_ready(struct template *template, pid_t serving_pid, uint64_t serving_start,
                            const char *unsafe, usec_t now);
/* The main process has exited, the one that serves lives: that is the template from now on. */
void template_observe_promoted(struct template *template);
/* Titles or threads of its processes show that it works, or do not. Where they do, the command has not let
 * itself be made a template: it is a worker. Returns that, to be held by the shell from now on, and the
 * template is no more; NULL: it is none, or memory was short. */
struct worker *template_observe_booted(struct template *template, bool booted, usec_t now);
void template_observe_memory(struct template *template, uint64_t bytes);

/* A fork was asked for: its worker is to take place `index`. error: 0, or a positive errno where it could
 * not be. */
void template_observe_fork_asked(struct template *template, unsigned index, enum reason started_for,
                                 int error, usec_t now);
/* Still not there. held: the template is stopped, or waits for a disk. Time in which sqmgr was late does not
 * count, and such time but little. */
void template_observe_fork_waits(struct template *template, bool held, usec_t now);
/* It is there, and does nothing before it is told to go on. Returns the new worker, or NULL where memory is
 * short: then its socket is to be closed, by which it ends. */
struct worker *template_observe_hello(struct template *template, pid_t pid, uint64_t pid_start, usec_t now);
/* It could not be made: error as a positive errno; 0: it ended before it came forward. */
void template_observe_fork_failed(struct template *template, int error, const char *why, usec_t now);
/* A worker that waits for that was told to go on. */
void template_observe_go(struct worker *worker, usec_t now);

/* It was told to end. It may run jobs while nothing has shown that it serves: then it has the time that a
 * worker has. */
void template_observe_ended(struct template *template, usec_t now);
void template_observe_killed(struct template *template, usec_t now);
/* None of its processes lives: it is no more. script: its Ruby file, by whose name among the last lines it is
 * told that the command cannot see that. */
void template_observe_exit(struct template *template, const struct exit_status *exit, const char *script,
                           usec_t now);
/* The same, where its last lines have come later; before observe_log_tail(). */
void template_observe_log_tail(struct fleet *fleet, uint64_t token, const char *lines, const char *script);
