/* SPDX-License-Identifier: MIT */
/* The memory of all connections to Redis together. */
#include "redis/memory_share.h"

static size_t total;

static size_t counted(size_t bytes)
{
        return bytes > MEMORY_SHARE_FREE_BYTES ? bytes - MEMORY_SHARE_FREE_BYTES : 0;
}

bool memory_share_set(struct memory_share *share, size_t bytes)
{
        size_t others = total - counted(share->bytes);

        if (bytes > share->bytes && counted(bytes) > MEMORY_SHARES_BYTES_MAX - others)
                return false;
        total = others + counted(bytes);
        share->bytes = bytes;
        return true;
}

size_t memory_shares_counted(void)
{
        return total;
}
