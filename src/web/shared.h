/* SPDX-License-Identifier: MIT */
/* A text that several hold: rendered once, sent to many. */
#pragma once

#include "base/macro.h"

struct shared {
        unsigned holders;
        size_t size; /* of data, without the NUL behind it */
        char data[];
};

/* A copy of size bytes, held once; or NULL where memory is short. */
struct shared *shared_new(const void *data, size_t size);
/* Room for size bytes, to be filled before others hold it. */
struct shared *shared_reserve(size_t size);
/* Returns text. */
struct shared *shared_hold(struct shared *text);
/* Returns NULL, as text may be. */
struct shared *shared_drop(struct shared *text);

static inline void shared_drop_pointer(struct shared **text)
{
        *text = shared_drop(*text);
}
#define _cleanup_shared_ _cleanup_(shared_drop_pointer)
