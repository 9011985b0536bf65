/* SPDX-License-Identifier: MIT */
/* Finds the processes that other running sqmgrs watch. A sqmgr has a pidfd of each of its workers, its
 * children and the adopted ones, and the kernel shows whose pidfds a process has. A pidfd that proc_watch()
 * did not get does not count: a sqmgr opens each process that it reads. */
#pragma once

#include "base/macro.h"
#include <sys/types.h>

/* The name (comm) of each sqmgr, which main() sets: its program file may have any name. */
#define WATCHERS_COMM "sqmgr"

/* A process, and a sqmgr that watches it. */
struct watched {
        pid_t pid;
        pid_t sqmgr;
        bool elsewhere; /* the sqmgr is in another pid namespace, as in a container */
};

struct watchers {
        struct watched *list; /* owned; sorted by pid */
        size_t n;
        size_t allocated;
};

/* Replaces the list by what /proc shows now. Only processes named WATCHERS_COMM of our own user count, so no
 * other user can make a process look watched. Returns 0, or -errno if memory or descriptors are short; the
 * list is incomplete and unsorted then: do not call watchers_find(). */
int watchers_read(struct watchers *watchers);
/* Returns the entry of a process that another sqmgr watches; NULL: none does. */
const struct watched *watchers_find(const struct watchers *watchers, pid_t pid);
/* Frees the list and leaves it empty. */
void watchers_clear(struct watchers *watchers);
