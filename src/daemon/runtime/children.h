/* SPDX-License-Identifier: MIT */
/* Child processes other than workers, and the callbacks for their exits. */
#pragma once

#include "model/describe.h"
#include <signal.h>
#include <systemd/sd-event.h>

/* Embedded in its owner as `child`. exited() is called once, by children_reap(), after the child was removed
 * from the list and pid was set to 0. exited() may free the owner. */
struct child {
        pid_t pid;
        void (*exited)(struct child *child, const siginfo_t *info);
        struct child *next;
        sd_event_source *deadline; /* see child_limit() */
        bool late;                 /* killed at its deadline */
};

/* Returns the struct that the child is embedded in. */
#define CHILD_OWNER(which, type) ((type *)((char *)(which)-offsetof(type, child)))

struct children {
        struct child *first;
};

/* Adds a child whose pid and exited the caller has set. child must stay valid until exited() or
 * children_remove(). */
void children_add(struct children *children, struct child *child);
/* Removes a child. A child that is not in the list is allowed. */
void children_remove(struct children *children, struct child *child);

/* Limits the time of a child that is about to be started: later, it is killed with its process group. Call
 * before the start. Returns 0 or -errno. */
int child_limit(struct child *child, sd_event *event, usec_t timeout);

/* Kills a child, waits for its end, and removes it. pid may be 0: none runs. exited() is not called. */
void children_kill(struct children *children, struct child *child);
/* Returns how a child has exited. */
struct exit_status children_status(const siginfo_t *info);

/* Reaps an exited child that is in the list: waits for the process, removes it and calls exited(). Returns
 * false if pid is not in the list. */
bool children_reap(struct children *children, pid_t pid);
