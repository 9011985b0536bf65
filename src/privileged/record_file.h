/* SPDX-License-Identifier: MIT */
/* The file of the record (record/recorder.h), beside the state file. */
#pragma once

/* Opens the file at path for reading and writing, and makes it if there is none (mode 0600). May block. Only
 * for the holder of the lock beside the state file. Returns a descriptor, -EPERM for a file that somebody
 * else can have open or have made, or -errno. */
int record_file_open(const char *path);
