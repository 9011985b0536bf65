/* SPDX-License-Identifier: MIT */
/* Common parts of the targets: each target gets bytes and takes what it needs. */
#pragma once

#include "base/macro.h"
#include <stdio.h>
#include <string.h>

/* The target, under the name that libFuzzer calls. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Aborts unless the condition holds, which must be true whatever the bytes are. */
#define fuzz_check(what)                                                                                     \
        do {                                                                                                 \
                if (!(what)) {                                                                               \
                        fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #what);                   \
                        abort();                                                                             \
                }                                                                                            \
        } while (0)

/* The bytes that were not taken yet. */
struct input {
        const uint8_t *at;
        size_t left;
};

/* Takes a byte; 0 if none is left. */
static inline uint8_t input_byte(struct input *input)
{
        if (input->left == 0)
                return 0;
        input->left--;
        return *input->at++;
}

/* Takes size bytes, or all that are left. Returns a copy followed by a NUL, so that sanitizers detect reads
 * beyond it. */
static inline struct field input_field(struct input *input, size_t size)
{
        size_t len = MIN(size, input->left);
        char *text = malloc(len + 1);

        fuzz_check(text);
        text[len] = '\0';
        if (len > 0) {
                memcpy(text, input->at, len);
                input->at += len;
                input->left -= len;
        }
        return (struct field){.text = text, .len = len};
}

/* Takes the text up to the next newline, and the newline. */
static inline struct field input_line(struct input *input)
{
        const uint8_t *newline = input->left > 0 ? memchr(input->at, '\n', input->left) : NULL;
        struct field line = input_field(input, newline ? (size_t)(newline - input->at) : input->left);

        if (newline)
                (void)input_byte(input);
        return line;
}

static inline void field_free(struct field *field)
{
        free((char *)field->text);
}
