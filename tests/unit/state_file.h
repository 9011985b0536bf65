/* SPDX-License-Identifier: MIT */
/* The state files of tests/state, each by the name of its version. */
#pragma once

#include "unit.h"

#define STATE_FILE_VERSION 8 /* the one that is written */
#define STATE_FILE_MAX     (16 * 1024)

/* Returns its size. */
static inline size_t state_file_read(unsigned version, uint8_t bytes[static STATE_FILE_MAX])
{
        const char *source = getenv("srcdir");
        char path[512];

        snprintf(path, sizeof(path), "%s/tests/state/%u", source ? source : ".", version);
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "%s: %s", path, strerror(errno));
        size_t size = fread(bytes, 1, STATE_FILE_MAX, file);
        ck_assert_uint_lt(size, STATE_FILE_MAX);
        fclose(file);
        ck_assert_uint_eq(bytes[8], version);
        return size;
}
