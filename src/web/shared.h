/* SPDX-License-Identifier: MIT */
/* A text with a reference count: rendered once, sent to many clients. */
#pragma once

#include "base/macro.h"

struct shared {
        unsigned holders;
        unsigned counted; /* for http_clients.c: the last sweep that counted this text */
        size_t size;      /* size of data in bytes */
        char *data;
};

/* Takes over data, which was allocated by malloc(), also on failure. The caller holds one reference. data may
 * be NULL. Returns NULL if data is NULL or memory is short. */
struct shared *shared_take(char *data, size_t size);
/* Takes a further reference. Returns text. */
struct shared *shared_hold(struct shared *text);
/* Drops a reference and frees the text after the last one; text may be NULL. Returns NULL. */
struct shared *shared_drop(struct shared *text);

DEFINE_CLEANUP(struct shared *, shared_drop)
#define _cleanup_shared_ _cleanup_(shared_drop_pointer)
