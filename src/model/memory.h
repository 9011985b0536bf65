/* SPDX-License-Identifier: MIT */
/* Memory that is spoken for: what workers that have just been started will still grow to, whatever fleet they
 * are of. Without it, all starts of a moment would be judged by one reading, and the kernel's OOM killer
 * would make room for them among the others. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct fleet;
struct worker;
struct world;

/* What a worker of the fleet is expected to grow to: the median of those that take jobs, else the most that
 * one of it holds; 0: nothing is known. */
uint64_t memory_expected_bytes(const struct fleet *fleet);
/* What the machine has less by it: what it does not share, where that is known. */
uint64_t memory_taken_bytes(const struct worker *worker);
/* What all workers that start or are young are expected to take beyond what they held as memory was last
 * read. */
uint64_t memory_reserved_bytes(const struct world *world, usec_t now);
/* Is available memory, less what is reserved, below 1.25 x what a worker of the fleet is expected to grow to?
 */
bool memory_is_short(const struct world *world, uint64_t reserved, uint64_t expected);
/* The same of the fleet as things stand. */
bool memory_lacks(const struct fleet *fleet, usec_t now);
