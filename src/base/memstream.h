/* SPDX-License-Identifier: MIT */
/* Finishes a stream of open_memstream(). */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* Closes out, the stream that open_memstream() returned for *text; out may be NULL. Returns 0 with *text
 * owned by the caller. Returns -ENOMEM with *text NULL if opening the stream or any write failed. */
static inline int memstream_close(FILE *out, char **text)
{
        bool failed = !out || ferror(out) != 0;

        if (!out)
                *text = NULL;
        else if (fclose(out) != 0 || !*text)
                failed = true; /* glibc's fclose() succeeds with *text NULL if its last realloc() fails */
        if (failed) {
                free(*text);
                *text = NULL;
        }
        return failed ? -ENOMEM : 0;
}
