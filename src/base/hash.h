/* SPDX-License-Identifier: MIT */
/* FNV-1a (Fowler, Noll, Vo), 64 bits. Not collision-resistant: only for data that no attacker chooses. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HASH_INIT UINT64_C(0xcbf29ce484222325)

/* Continues hash with these bytes and returns the new hash. Start with HASH_INIT. */
static inline uint64_t hash_bytes(uint64_t hash, const void *bytes, size_t size)
{
        for (const uint8_t *at = bytes; size > 0; at++, size--)
                hash = (hash ^ *at) * UINT64_C(0x100000001b3);
        return hash;
}
