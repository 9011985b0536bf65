/* SPDX-License-Identifier: MIT */
/* The program of sqmgr-proc-reader, and the users that it runs as. The program reads files that can make
 * their reader wait. privileged/reader_start.h starts it. */
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
        uint64_t since; /* start time of the process that the groups were read from; 0: groups not known */
};

/* Fills *ret with this user and the groups of proc. If the groups cannot be read, or proc belongs to another
 * user, the only group is nogroup. */
void proc_reader_user_of(const struct proc *proc, uid_t uid, struct proc_reader_user *ret);

/* True if both have the same groups, in the same order. */
bool proc_reader_has_groups(const struct proc_reader_user *a, const struct proc_reader_user *b);

/* Opens the program as own_program_open() does, or else sqmgr itself, which does the same and needs more
 * memory. Returns an O_PATH descriptor that the caller owns, or -errno. The program stays the same when an
 * upgrade replaces it. */
int proc_reader_open_program(void);
