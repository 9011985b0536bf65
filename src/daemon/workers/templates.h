/* SPDX-License-Identifier: MIT */
/* Templates as processes: starts them, speaks with them, takes hold of what they fork, and sees to their end.
 * Who speaks is of a fleet's user's making: what he says counts only where the kernel bears it out, and what
 * is not expected of him ends his template. */
#pragma once

#include "daemon/runtime/runtime.h"

struct fleet;
struct state_fleet;
struct template;
struct worker;

/* These carry out actions on templates; the outcome of each is observed. Loads a new template of the fleet.
 */
void templates_load(struct runtime *runtime, struct fleet *fleet, usec_t now);
/* Asks the action's template for a fork that becomes the action's worker. */
void templates_fork(const struct action *action, usec_t now);
void templates_end(struct template *template, usec_t now);
/* Kills the process group of a template that did not end in time. */
void templates_kill(struct template *template, usec_t now);
/* A worker that was forked may go on. */
void templates_go(struct worker *worker, usec_t now);

/* The state tells of those that were started, or it could not be written: their commands begin. */
void templates_begin(const struct runtime *runtime);

/* Looks at those of all fleets that something is due of. */
void templates_poll(struct runtime *runtime, bool fast, usec_t now);

/* Takes over those that an earlier sqmgr had, as the state says. Returns 0 or -errno. */
int templates_adopt(struct runtime *runtime, struct fleet *fleet, const struct state_fleet *saved);

/* The sockets that can be left to the next image of sqmgr. Returns how many, at most max. */
size_t templates_hand(const struct runtime *runtime, struct handed *ret, size_t max);

/* Lets go of all: those that serve end by themselves. */
void templates_forget(struct runtime *runtime);
