/* SPDX-License-Identifier: MIT */
/* Solid Queue 1: how sqmgr names its workers. A unit is `bin/jobs --mode async`: one process, whose
 * supervisor and workers are rows of solid_queue_processes. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

extern const struct traits solid_queue_traits;
extern const struct framework solid_queue_framework;

/* Splits an identity, `HOST:PID:ID`, of which ID is the row of the supervisor: the length of the host at the
 * start of text, and the pid. Returns false if text is not an identity. */
bool solid_queue_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
