/* SPDX-License-Identifier: MIT */
/* Loads JSON. */
#pragma once

#include "base/macro.h"
#include <jansson.h>

/* Returns 0, -EINVAL where it is no JSON, or -ENOMEM. *ret is to be released by json_decref().
 *
 * Where memory is short jansson may call the text wrong, and may go on without a part of a string: only errno
 * tells. */
static inline int json_load(const char *text, size_t size, size_t flags, json_t **ret)
{
        errno = 0;
        json_t *json = json_loadb(text, size, flags, NULL);

        if (errno == ENOMEM) {
                json_decref(json);
                return -ENOMEM;
        }
        *ret = json;
        return json ? 0 : -EINVAL;
}

static inline void json_decref_pointer(json_t **json)
{
        json_decref(*json);
}
#define _cleanup_json_ _cleanup_(json_decref_pointer)
