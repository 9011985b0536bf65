/* SPDX-License-Identifier: MIT */
/* Ends what open_memstream() began. */
#pragma once

#include "base/macro.h"
#include <stdio.h>

/* Closes out, which open_memstream() returned, NULL too, and which wrote into *text. Returns 0 with *text to
 * be freed; or -ENOMEM with *text NULL, where the stream could not be opened or not all of it be written. */
static inline int memstream_close(FILE *out, char **text)
{
        bool failed = !out || ferror(out) != 0;

        if (!out)
                *text = NULL;
        else if (fclose(out) != 0)
                failed = true;
        if (failed) {
                free(*text);
                *text = NULL;
        }
        return failed ? -ENOMEM : 0;
}
