/* SPDX-License-Identifier: MIT */
/* The status directories, where workers write their heartbeats: one for each fleet, in a parent that only
 * root and ourselves may write to. The content of a directory is under the control of its user. Access
 * therefore goes through descriptors only, follows no links, crosses no mounts, and never blocks. */
#pragma once

#include "settings/settings.h"
#include <sys/types.h>

/* A larger file is not a valid heartbeat. */
#define STATUS_FILE_MAX_BYTES ((size_t)20 * 1024)

/* Size of a directory's name: that of the fleet, or FLEET@UID if the plain name belongs to the fleet's former
 * user. */
#define STATUS_NAME_MAX (FLEET_NAME_MAX + sizeof("@4294967295"))

struct status_dir {
        int fd; /* owned; -1: none */
        uid_t owner;
};

#define STATUS_DIR_NONE ((struct status_dir){.fd = -1})

/* Opens the status directory of a fleet's worker that runs as uid. Returns 0 with *ret to be closed by
 * status_dir_close(), or -errno: -ENOENT if there is none, -EPERM if others may have modified it. */
int status_dir_open(const char *parent, const char *fleet, uid_t uid, struct status_dir *ret);
/* Closes the descriptor, if any, and sets it to -1. */
void status_dir_close(struct status_dir *dir);

/* Opens the directory as status_dir_open(), and creates it if missing. Creates the parent too, in a directory
 * that must exist. Writes the name of the directory to name. Requires the privilege to change its owner to
 * uid. Creation is atomic, even with concurrent callers. */
int status_dir_make(const char *parent, const char *fleet, uid_t uid, gid_t gid, struct status_dir *ret,
                    char name[static STATUS_NAME_MAX]);

/* Removes the files of processes that are gone, and temporary files older than an hour; a limited number per
 * call. Call with the privileges of the directory's user only. */
void status_dir_sweep(const struct status_dir *dir);

/* Removes the directories of fleets that keep() rejects, with their files; a limited number per call. A
 * directory with other content stays. A directory whose mode was changed is skipped, since it may belong to
 * somebody else. Returns 0, or -errno if the parent could not be read. */
int status_dirs_tidy(const char *parent, bool (*keep)(const char *fleet, void *userdata), void *userdata);

/* Reads the file of a process. Returns an enum heartbeat_fault: HEARTBEAT_FAULT_NONE with the content in
 * text, or the reason why the file is not valid. */
int status_file_read(const struct status_dir *dir, pid_t pid, char text[static STATUS_FILE_MAX_BYTES + 1],
                     size_t *ret_length);
/* Returns true if a process has begun to write its file: `.PID` exists, or cannot be examined. A shim makes
 * it as it is loaded. */
bool status_file_is_begun(const struct status_dir *dir, pid_t pid);
/* Removes the file of a process, if any. */
void status_file_remove(const struct status_dir *dir, pid_t pid);
