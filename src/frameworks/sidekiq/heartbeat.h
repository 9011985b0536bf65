/* SPDX-License-Identifier: MIT */
/* How Sidekiq's heartbeats stand in Redis, for the engine that reads them. */
#pragma once

#include "frameworks/redis_beats.h"

extern const struct beats_format sidekiq_beats;

/* sidekiq_thread_is_processor() of what the heartbeat told of the process. */
bool sidekiq_beat_thread_is_processor(const char *comm, const struct beat_info *info);
/* From which queues it takes: names, each ended by a NUL, the last by two; NULL: it did not tell. */
const char *sidekiq_beat_queue_names(const struct beat_info *info);
