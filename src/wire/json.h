/* SPDX-License-Identifier: MIT */
/* Loads JSON within bounds, loops over arrays, and copies strings out of objects. */
#pragma once

#include "base/macro.h"
#include <jansson.h>
#include <string.h>

/* Limits for foreign JSON. jansson holds a whole tree: `{},` takes 79 times its size in memory. Text that
 * exceeds a limit is refused before it is parsed. */
struct json_bounds {
        size_t bytes;
        size_t values; /* with depth: see struct json_counts */
        size_t depth;
};

/* An upper limit for each number that a parser would find in a text. */
struct json_counts {
        size_t values;       /* 1, plus 1 for each comma and each '[' or '{' */
        size_t containers;   /* arrays and objects among the values */
        size_t depth;        /* of nested arrays and objects */
        size_t string_bytes; /* of the longest string, as written */
        size_t escaped;      /* characters of strings that take several in HTML */
};

/* Counts without parsing. */
void json_count(const char *text, size_t size, struct json_counts *ret);

/* Loads text. Returns 0; -EMSGSIZE if text exceeds bounds; -EINVAL if text is not JSON; or -ENOMEM. The
 * caller owns *ret and releases it by json_decref(). The only caller of jansson's loaders, as
 * tests/check-layers proves.
 *
 * When memory is short, jansson may report a syntax error or drop a part of a string; only errno shows
 * this. */
int json_load(const struct json_bounds *bounds, const char *text, size_t size, size_t flags, json_t **ret);

/* Encodes value. Returns the text, which the caller frees; NULL: value is NULL, or out of memory. jansson
 * drops what it has no memory for, and only errno shows this. */
char *json_text(const json_t *value, size_t flags);

struct json_member {
        const char *name;
        json_t *value; /* NULL: memory was short */
};

/* Returns an object of these members in this order, a new reference; NULL when memory is short. Takes the
 * values, also then. */
json_t *json_object_of(const struct json_member *members, size_t n);

DEFINE_CLEANUP(json_t *, json_decref)
#define _cleanup_json_ _cleanup_(json_decref_pointer)

/* Loops over the entries of array. The caller declares entry, which is borrowed from array and NULL after the
 * last entry. The body does not run if array is NULL or not an array, and must not add or remove entries. */
#define json_foreach(entry, array) _json_foreach(entry, array, __COUNTER__)
/* Loops over the array that is the object's member of that name. */
#define json_foreach_in(entry, object, name) json_foreach(entry, json_object_get(object, name))

/* Each loop gets an index with a unique name, so nested loops do not shadow. */
#define _json_foreach(entry, array, number) _json_foreach_index(entry, array, number)
#define _json_foreach_index(entry, array, number)                                                            \
        for (size_t json_index_##number = 0; ((entry) = json_array_get(array, json_index_##number));         \
             json_index_##number++)

/* Copies the string member of that name into *ret, which the caller owns. Returns 0; -EINVAL if the member is
 * missing, not a string, or contains a NUL; or -ENOMEM. */
static inline int json_take_text(const json_t *object, const char *name, char **ret)
{
        const json_t *text = json_object_get(object, name);

        if (!json_is_string(text) || strlen(json_string_value(text)) != json_string_length(text))
                return -EINVAL;
        *ret = strdup(json_string_value(text));
        return *ret ? 0 : -ENOMEM;
}
