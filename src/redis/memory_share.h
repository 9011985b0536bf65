/* SPDX-License-Identifier: MIT */
/* The memory of all connections to Redis together: replies that are being collected and decoded, and commands
 * that are not sent yet. A reply has a limit of its own (redis/reply_limit.h), but servers are many. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#define MEMORY_SHARES_BYTES_MAX ((size_t)128 * 1024 * 1024)
/* The part of each share that is not counted: ordinary replies arrive however much other servers send. */
#define MEMORY_SHARE_FREE_BYTES ((size_t)64 * 1024)

/* All zero: nothing is held. */
struct memory_share {
        size_t bytes;
};

/* Sets what the owner holds. Returns false, and changes nothing, if all shares together would exceed the
 * bound. Less than before always fits. */
bool memory_share_set(struct memory_share *share, size_t bytes);

/* Returns what all shares hold, without their free parts. */
size_t memory_shares_counted(void);
