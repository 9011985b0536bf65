/* SPDX-License-Identifier: MIT */
/* A framework for tests alone, unlike Sidekiq wherever a framework may be: its heartbeat is one text, to
 * quiet one of its workers is to stop it, it has no work list, and it works in children. */
#pragma once

#include "frameworks/framework.h"
#include "frameworks/heartbeat_format.h"

extern const struct traits probe_traits;
extern const struct heartbeat_format probe_heartbeats;
