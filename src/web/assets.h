/* SPDX-License-Identifier: MIT */
/* The files that the page refers to, in the program itself. */
#pragma once

#include "base/macro.h"

struct asset {
        const char *path; /* has the hash of the data in it */
        const char *type; /* its media type */
        const void *data;
        size_t size;
};

/* NULL: there is none of that path. */
const struct asset *assets_find(const char *path);
