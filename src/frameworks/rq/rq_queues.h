/* SPDX-License-Identifier: MIT */
/* Reads RQ's queues. */
#pragma once

#include "frameworks/framework.h"

extern const struct queues_ops rq_queues;
