/* SPDX-License-Identifier: MIT */
/* Template processes: starts them, talks to them, attaches their forks and ends them. A template runs code of
 * the application and is not trusted. Messages count only if the kernel confirms them, and an unexpected
 * message ends a serving template. */
#pragma once

#include "daemon/runtime/runtime.h"

struct fleet;
struct state_fleet;
struct template;
struct worker;

/* Execute actions on templates; the results are observed. templates_load() loads a new template of the
 * fleet. */
void templates_load(struct runtime *runtime, struct fleet *fleet, usec_t now);
/* Asks the template of the action for a fork that becomes the worker of the action. */
void templates_fork(const struct action *action, usec_t now);
void templates_end(struct template *template, usec_t now);
/* Kills a template that did not end in time: the process group of a loading template; of a serving one only
 * the command, since others may serve its workers. */
void templates_kill(struct template *template, usec_t now);
/* Lets a forked worker continue. Returns without effect until a complete scan of identities has shown others
 * of its pid, for at most one second; a later pass tries again. */
void templates_go(struct worker *worker, usec_t now);

/* Lets the commands of started templates begin. Call when the state was written, or could not be. */
void templates_begin(const struct runtime *runtime);

/* Polls the templates of all fleets. fast: only forks in progress. */
void templates_poll(struct runtime *runtime, bool fast, usec_t now);

/* Continues with the templates that await answers of the readers (daemon/runtime/proc_facts.h). */
void templates_resume(struct runtime *runtime, usec_t now);

/* Adopts the templates in the state of an earlier sqmgr. Returns 0 or -errno. */
int templates_adopt(struct runtime *runtime, struct fleet *fleet, const struct state_fleet *saved);

/* Lists the sockets for the next image of sqmgr, at most max. Returns the number. */
size_t templates_hand(const struct runtime *runtime, struct handed *ret, size_t max);

/* Frees all template processes without killing them. Serving templates end by themselves when the socket
 * closes. */
void templates_forget(struct runtime *runtime);
