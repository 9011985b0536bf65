/* SPDX-License-Identifier: MIT */
/* Reads Sidekiq's queues. */
#pragma once

#include "frameworks/framework.h"

extern const struct queues_ops sidekiq_queues;
