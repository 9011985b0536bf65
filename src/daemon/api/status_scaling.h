/* SPDX-License-Identifier: MIT */
/* Renders how the count of a fleet follows its queues. */
#pragma once

#include "wire/json.h"

struct fleet;

/* Null where it does not; NULL where memory is short. */
json_t *status_scaling(const struct fleet *fleet);
