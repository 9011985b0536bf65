/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue, atomically by one script. */
#pragma once

#include "frameworks/requeue.h"

extern const struct requeue_format sidekiq_requeue;
