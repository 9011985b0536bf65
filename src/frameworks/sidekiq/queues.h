/* SPDX-License-Identifier: MIT */
/* Reads Sidekiq's queues. */
#pragma once

#include "frameworks/framework.h"

/* Beyond so many queues the others are left out, and counted. */
#define QUEUES_READ_MAX 1000

extern const struct queues_ops sidekiq_queues;
