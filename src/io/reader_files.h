/* SPDX-License-Identifier: MIT */
/* The files of the readers for TLS, which sqmgr reads for them. */
#pragma once

#include <sys/types.h>

struct reader_configuration;

/* Reads the files that the configuration names into it. The settings were checked when they were read, so an
 * error is a change since then. Returns 0 or -errno. */
int reader_files_read(struct reader_configuration *configuration);
