/* SPDX-License-Identifier: MIT */
/* A value as it came from outside: not ended by a NUL, and any byte may be within it. */
#pragma once

#include <stddef.h>

struct field {
        const char *text; /* borrowed; NULL: there is none */
        size_t len;
};
