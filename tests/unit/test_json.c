/* SPDX-License-Identifier: MIT */
/* Is foreign JSON refused by its size before it is parsed, and by nothing else? */
/* promises: P10 */
#include "unit.h"
#include "wire/json.h"

static size_t n_allocated;

static void *allocate(size_t size)
{
        n_allocated += size;
        return malloc(size);
}

/* Returns the result of json_load(). Refused text costs no memory. */
static int load(const struct json_bounds *bounds, const char *text, size_t size)
{
        json_t *json = NULL;

        n_allocated = 0;
        json_set_alloc_funcs(allocate, free);
        int r = json_load(bounds, text, size, 0, &json);
        json_set_alloc_funcs(malloc, free);
        ck_assert_int_eq(r == 0, !!json);
        if (r == -EMSGSIZE)
                ck_assert_uint_eq(n_allocated, 0);
        json_decref(json);
        return r;
}

TEST(text_is_refused_from_the_first_byte_too_many)
{
        static char text[] = "[                                ]";
        const struct json_bounds bounds = {.bytes = sizeof(text) - 1, .values = 10, .depth = 10};

        ck_assert_int_eq(load(&bounds, text, sizeof(text) - 1), 0);
        ck_assert_int_eq(load(&bounds, text, sizeof(text) - 2), -EINVAL);
        text[sizeof(text) - 1] = ' ';
        ck_assert_int_eq(load(&bounds, text, sizeof(text)), -EMSGSIZE);
}

static const struct {
        const char *text;
        size_t values, depth; /* the least that let the text pass */
        bool invalid;
} texts[] = {
        {"[]", 2, 1, false},
        {"{}", 2, 1, false},
        {"[0]", 2, 1, false},
        {"[0,0,0]", 4, 1, false},
        {"[{},[]]", 5, 2, false},
        {"{\"a\":{\"b\":[1,2]},\"c\":[[]]}", 8, 3, false},
        {"[[],[],[]]", 7, 2, false},
        /* In a string these are text. */
        {"[\"[,{,[\",\"]\"]", 3, 1, false},
        {"[\"\\\"[[[\",\"\\\\\",[]]", 5, 2, false},
        {"{\"[[,,\":\"\\u005b[\"}", 2, 1, false},
        /* No JSON: parsed, and refused by the parser. */
        {"", 1, 0, true},
        {"]]]]", 1, 0, true},
        {"]][[]]", 3, 2, true},
        {"[\"[[[[", 2, 1, true},
        {"[\"\\", 2, 1, true},
        {"[\"\\\"", 2, 1, true},
};

TEST_LOOP(values_and_depth_are_bounded, ELEMENTSOF(texts))
{
        size_t size = strlen(texts[_i].text);
        struct json_bounds bounds = {.bytes = size, .values = texts[_i].values, .depth = texts[_i].depth};

        ck_assert_int_eq(load(&bounds, texts[_i].text, size), texts[_i].invalid ? -EINVAL : 0);
        bounds.values--;
        ck_assert_int_eq(load(&bounds, texts[_i].text, size), -EMSGSIZE);
        bounds.values++;
        if (bounds.depth == 0)
                return;
        bounds.depth--;
        ck_assert_int_eq(load(&bounds, texts[_i].text, size), -EMSGSIZE);
}

TEST_MAIN("json")
