/* SPDX-License-Identifier: MIT */
/* Loads JSON, and takes texts out of it. */
#pragma once

#include "base/macro.h"
#include <jansson.h>
#include <string.h>

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

/* The member of that name, as a text of its own, to be freed. Returns 0; -EINVAL where it is no string, or
 * holds a NUL; or -ENOMEM. */
static inline int json_take_text(const json_t *object, const char *name, char **ret)
{
        const json_t *text = json_object_get(object, name);

        if (!json_is_string(text) || strlen(json_string_value(text)) != json_string_length(text))
                return -EINVAL;
        *ret = strdup(json_string_value(text));
        return *ret ? 0 : -ENOMEM;
}
