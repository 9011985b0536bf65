/* SPDX-License-Identifier: MIT */
/* Reserved memory: the growth still expected of workers that have just been started, in all fleets. Without
 * it, one reading would justify all starts of a moment, and the kernel's OOM killer would then end other
 * workers. */
#pragma once

#include "base/macro.h"

struct fleet;
struct world;

/* Returns the expected size of a grown worker of the fleet: the median of the active workers, else the size
 * of the largest. 0: not known. */
uint64_t memory_expected_bytes(const struct fleet *fleet);
/* Returns how much all starting and young workers are expected to grow beyond their last memory reading. */
uint64_t memory_reserved_bytes(const struct world *world, usec_t now);
/* Returns true if available memory, less reserved, is below 1.25 x expected, the expected size of a worker.
 * False while available memory is not known. */
bool memory_is_short(const struct world *world, uint64_t reserved, uint64_t expected);
/* Returns memory_is_short() for one more worker of the fleet, with the current reservations. */
bool memory_lacks(const struct fleet *fleet, usec_t now);
