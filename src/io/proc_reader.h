/* SPDX-License-Identifier: MIT */
/* sqmgr-proc-reader, which reads what can make its reader wait: its program, and the users that it runs as.
 * privileged/reader_start.h starts it. */
#pragma once

#include "base/macro.h"
#include "io/proc.h"
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define PROC_READER_GROUPS_MAX 64

/* The rights of a reader. */
struct proc_reader_user {
        uid_t uid;
        gid_t gid;
        gid_t groups[PROC_READER_GROUPS_MAX];
        size_t n_groups;
        uint64_t since; /* start time of the process that has these groups; 0: they are not known */
};

/* Fills *ret with this user, with the groups of proc; or, if they cannot be read or proc is another user's,
 * with the group nogroup alone. */
void proc_reader_user_of(const struct proc *proc, uid_t uid, struct proc_reader_user *ret);

/* True if both have the same groups, in the same order. */
bool proc_reader_has_groups(const struct proc_reader_user *a, const struct proc_reader_user *b);

/* Opens the installed program, or the one in the build folder if sqmgr is not installed; else sqmgr itself,
 * which does the same and needs more memory. Returns an O_PATH descriptor that the caller owns, or -errno.
 * The program stays the same when an upgrade replaces it. */
int proc_reader_open_program(void);
