/* SPDX-License-Identifier: MIT */
/* An external value: not NUL-terminated, and may contain any byte. */
#pragma once

#include <stddef.h>

struct field {
        const char *text; /* borrowed; NULL if absent */
        size_t len;
};
