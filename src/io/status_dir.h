/* SPDX-License-Identifier: MIT */
/* The directories that workers write their heartbeats to: one for each fleet, in a parent that nobody but
 * root and ourselves may write to. What stands in one is whatever its user likes to put there: it is reached
 * by descriptors alone, no link is followed, no other file system entered, and nothing there can hold us. */
#pragma once

#include "settings/settings.h"
#include <sys/types.h>

/* A file with more is no record. */
#define STATUS_FILE_MAX_BYTES ((size_t)4096)

/* Room for the name of one: the fleet's or, where that one belongs to the user that the fleet had before,
 * FLEET@UID. */
#define STATUS_NAME_MAX (FLEET_NAME_MAX + sizeof("@4294967295"))

struct status_dir {
        int fd; /* owned; -1: none */
        uid_t owner;
};

#define STATUS_DIR_NONE ((struct status_dir){.fd = -1})

/* Finds that of a worker of this fleet that runs as uid. Returns 0, with *ret to be closed by
 * status_dir_close(), or -errno: -ENOENT where there is none, -EPERM where others may have had a hand in it.
 */
int status_dir_open(const char *parent, const char *fleet, uid_t uid, struct status_dir *ret);
void status_dir_close(struct status_dir *dir);

/* The same, and makes it where there is none, the parent too, below a directory that must be there. Its name
 * is left in name. With the rights to give it to that user; it is there whole or not at all, however many
 * make it at once. */
int status_dir_make(const char *parent, const char *fleet, uid_t uid, gid_t gid, struct status_dir *ret,
                    char name[static STATUS_NAME_MAX]);

/* Removes the files of processes that are gone, and what was not renamed within an hour; some at most. For
 * who has the rights of its user and no more. */
void status_dir_sweep(const struct status_dir *dir);

/* Removes the directories of fleets that keep does not want, with the files in them: some at most, and what
 * else stands there keeps its directory from being removed. One that is not as it was made is left alone: it
 * may be another's. Returns 0, or -errno where it could not look. */
int status_dirs_tidy(const char *parent, bool (*keep)(const char *fleet, void *userdata), void *userdata);

/* Reads the file of this process. Returns an enum heartbeat_fault: HEARTBEAT_FAULT_NONE with what it holds in
 * text, or why it does not count. */
int status_file_read(const struct status_dir *dir, pid_t pid, char text[static STATUS_FILE_MAX_BYTES + 1],
                     size_t *ret_length);
/* It need not be there. */
void status_file_remove(const struct status_dir *dir, pid_t pid);
