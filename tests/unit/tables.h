/* SPDX-License-Identifier: MIT */
/* The tables of a framework, from tests/frameworks. */
#pragma once

#include "unit.h"

/* Returns the statements of a file, which the caller frees. */
static inline char *tables_read(const char *file)
{
        const char *source = getenv("srcdir");
        char path[512], *text = NULL;
        size_t allocated = 0;

        snprintf(path, sizeof(path), "%s/tests/frameworks/%s", source ? source : ".", file);
        FILE *stream = fopen(path, "re");
        ck_assert_msg(stream, "%s: %s", path, strerror(errno));
        ck_assert_int_gt(getdelim(&text, &allocated, '\0', stream), 0);
        (void)fclose(stream);
        return text;
}
