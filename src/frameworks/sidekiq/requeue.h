/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue, atomically by one script. */
#pragma once

#include "frameworks/framework.h"

extern const struct requeue_ops sidekiq_requeue;
