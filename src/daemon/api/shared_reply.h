/* SPDX-License-Identifier: MIT */
/* A reply that several calls share, encoded once: for viewers, without text from elsewhere, or for others. */
#pragma once

#include "wire/varlink.h"

struct shared_reply {
        char *text; /* NULL: none */
        size_t size;
        bool is_view; /* for viewers */
};

/* Encodes a reply, or an error unless error is NULL. Consumes parameters. *ret has no text when memory is
 * short. The caller clears *ret by shared_reply_clear(). */
void shared_reply_make(struct shared_reply *ret, bool is_view, const char *error, json_t *parameters);
void shared_reply_clear(struct shared_reply *reply);
