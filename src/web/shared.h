/* SPDX-License-Identifier: MIT */
/* A text that several hold: rendered once, sent to many. */
#pragma once

#include "base/macro.h"

struct shared {
        unsigned holders;
        size_t size; /* of data, in bytes */
        char *data;
};

/* Takes over data, which malloc() made, also where it fails; held once. Returns NULL where memory is short,
 * as data may be. */
struct shared *shared_take(char *data, size_t size);
/* Returns text. */
struct shared *shared_hold(struct shared *text);
/* Returns NULL, as text may be. */
struct shared *shared_drop(struct shared *text);

DEFINE_CLEANUP(struct shared *, shared_drop)
#define _cleanup_shared_ _cleanup_(shared_drop_pointer)
