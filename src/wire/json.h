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

DEFINE_CLEANUP(json_t *, json_decref)
#define _cleanup_json_ _cleanup_(json_decref_pointer)

/* For each entry of the array: entry is a pointer that the caller has declared, borrowed from the array, and
 * NULL after the last one. The body does not run where array is NULL or no array. It must not add or remove
 * entries. */
#define json_foreach(entry, array) _json_foreach(entry, array, __COUNTER__)
/* The same for the member of that name of an object. */
#define json_foreach_in(entry, object, name) json_foreach(entry, json_object_get(object, name))

/* Each loop has an index of its own name: loops within loops do not shadow. */
#define _json_foreach(entry, array, number) _json_foreach_index(entry, array, number)
#define _json_foreach_index(entry, array, number)                                                            \
        for (size_t json_index_##number = 0; ((entry) = json_array_get(array, json_index_##number));         \
             json_index_##number++)

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
