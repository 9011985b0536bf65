/* SPDX-License-Identifier: MIT */
/* Reads Resque's queues. */
#pragma once

#include "frameworks/framework.h"

extern const struct queues_ops resque_queues;
