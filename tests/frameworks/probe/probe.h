/* SPDX-License-Identifier: MIT */
/* A framework for tests alone, unlike Sidekiq wherever a framework may be: its heartbeat is one text, to
 * quiet one of its workers is to stop it, it has no work list, and it works in children. */
#pragma once

#include "frameworks/framework.h"

extern const struct traits probe_traits;

bool probe_identity_parse(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
