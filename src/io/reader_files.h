/* SPDX-License-Identifier: MIT */
/* The user of the readers, and their files for TLS, which sqmgr reads for them. */
#pragma once

#include <sys/types.h>

struct reader_configuration;

/* Reads the files that the configuration names into it. The settings were checked when they were read, so an
 * error is a change since then. Returns 0 or -errno. */
int reader_files_read(struct reader_configuration *configuration);

/* As root: the user sqmgr-reader of /etc/passwd; or nobody (65534) if that user is missing, or has the uid or
 * gid of root. Otherwise our own effective user. */
void reader_user(uid_t *ret_uid, gid_t *ret_gid);
