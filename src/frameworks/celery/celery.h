/* SPDX-License-Identifier: MIT */
/* Celery 5 over Redis: how sqmgr names its workers. message.h has what they write. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct heartbeat_info;

extern const struct traits celery_traits;
extern const struct framework celery_framework;

/* Returns the identity `HOST:PID:NAME@HOST` of a worker, which the caller frees. Returns NULL with
 * *ret_error: -EINVAL if the node name cannot be part of one, or -ENOMEM. */
char *celery_identity_make(const char *node, pid_t pid, int *ret_error);
/* Splits an identity: the length of the host at the start of text, and the pid. Returns false if text is not
 * an identity. */
bool celery_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
/* Returns the name of the node, which points into identity: an identity as celery_identity_make() makes it.
 */
const char *celery_identity_node(const char *identity);
