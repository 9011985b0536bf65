/* SPDX-License-Identifier: MIT */
/* A list of texts, as bytes. Pure. */
#pragma once

#include "base/field.h"
#include "continuity/codec.h"

/* The texts may contain any byte. Each text that was read is followed by a NUL. */
struct texts {
        struct field *list; /* owned */
        size_t n;
        char *bytes; /* owned: of the texts; NULL: they are borrowed */
};

void texts_write(struct codec_writer *writer, const struct field list[], size_t n);
/* Sets reader->wrong if there are more than n_max texts, or if a text is longer than length_max. Returns 0 or
 * -ENOMEM. In all cases the caller frees *ret with texts_clear(). */
int texts_read(struct codec_reader *reader, size_t n_max, size_t length_max, struct texts *ret);
void texts_clear(struct texts *texts);
