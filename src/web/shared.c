/* SPDX-License-Identifier: MIT */
/* A text with a reference count: rendered once, sent to many clients. */
#include "web/shared.h"

struct shared *shared_take(char *data, size_t size)
{
        struct shared *text = data ? malloc(sizeof(*text)) : NULL;

        if (text)
                *text = (struct shared){.holders = 1, .size = size, .data = data};
        else
                free(data);
        return text;
}

struct shared *shared_hold(struct shared *text)
{
        text->holders++;
        return text;
}

struct shared *shared_drop(struct shared *text)
{
        if (text && --text->holders == 0) {
                free(text->data);
                free(text);
        }
        return NULL;
}
