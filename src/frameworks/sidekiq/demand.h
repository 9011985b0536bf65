/* SPDX-License-Identifier: MIT */
/* Reads what waits in some of Sidekiq's queues, and what its jobs take. */
#pragma once

#include "frameworks/framework.h"

extern const struct demand_ops sidekiq_demand;
