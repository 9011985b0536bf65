/* SPDX-License-Identifier: MIT */
/* A text that several hold: rendered once, sent to many. */
#include "web/shared.h"
#include <string.h>

struct shared *shared_reserve(size_t size)
{
        struct shared *text = malloc(sizeof(*text) + size + 1);

        if (!text)
                return NULL;
        *text = (struct shared){.holders = 1, .size = size};
        text->data[size] = '\0';
        return text;
}

struct shared *shared_new(const void *data, size_t size)
{
        struct shared *text = shared_reserve(size);

        if (text && size > 0)
                memcpy(text->data, data, size);
        return text;
}

struct shared *shared_hold(struct shared *text)
{
        text->holders++;
        return text;
}

struct shared *shared_drop(struct shared *text)
{
        if (text && --text->holders == 0)
                free(text);
        return NULL;
}
