/* SPDX-License-Identifier: MIT */
/* The status directories, where workers write their heartbeats: one for each fleet, in a parent of our own.
 * Workers may put anything there. Access therefore goes through descriptors only, follows no links, crosses
 * no mounts, and never blocks. */
#pragma once

#include "settings/settings.h"

/* A larger file is not a valid heartbeat. */
#define STATUS_FILE_MAX_BYTES ((size_t)20 * 1024)

/* Opens the status directory of a fleet. Returns a descriptor that the caller closes, or -errno: -ENOENT if
 * there is none, -EPERM if another user owns it. */
int status_dir_open(const char *parent, const char *fleet);

/* Opens the directory as status_dir_open(), and creates it and the parent if missing. */
int status_dir_make(const char *parent, const char *fleet);

/* Removes the files of processes that are gone, and temporary files older than an hour; a limited number per
 * call. */
void status_dir_sweep(int dir_fd);

/* Reads the file of a process. Returns an enum heartbeat_fault: HEARTBEAT_FAULT_NONE with the content in
 * text, or the reason why the file is not valid. */
int status_file_read(int dir_fd, pid_t pid, char text[static STATUS_FILE_MAX_BYTES + 1], size_t *ret_length);
/* Returns true if a process has begun to write its file: `.PID` exists, or cannot be examined. A shim makes
 * it as it is loaded. */
bool status_file_is_begun(int dir_fd, pid_t pid);
/* Removes the file of a process, if any. */
void status_file_remove(int dir_fd, pid_t pid);
