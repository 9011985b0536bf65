/* SPDX-License-Identifier: MIT */
/* Children that are no workers: who is told when they have exited. */
#pragma once

#include "base/macro.h"
#include <signal.h>
#include <sys/types.h>

/* Part of its owner, which is told once. */
struct child {
        pid_t pid;
        void (*exited)(struct child *child, const siginfo_t *info);
        struct child *next;
};

struct children {
        struct child *first;
};

void children_add(struct children *children, struct child *child);
/* One that is not, or no longer, among them may be handed in, too. */
void children_remove(struct children *children, struct child *child);

/* A child has exited: where it is one of these it is waited for, removed, and its owner told. Returns false
 * where it is none. */
bool children_reap(struct children *children, pid_t pid);
