/* SPDX-License-Identifier: MIT */
/* The keys of `top`: (state, key) -> (state, what is to be done). No I/O, no clock. */
#pragma once

#include "ctl/top_state.h"

/* What was pressed: a character, or one of these. */
enum top_key {
        TOP_KEY_NONE = 0,
        TOP_KEY_TAB = '\t',
        TOP_KEY_ENTER = '\n',
        TOP_KEY_ESCAPE = 27,
        TOP_KEY_ERASE = 127,
        TOP_KEY_UP = 256,
        TOP_KEY_DOWN,
        TOP_KEY_LEFT,
        TOP_KEY_RIGHT,
        TOP_KEY_PAGE_UP,
        TOP_KEY_PAGE_DOWN,
        TOP_KEY_HOME,
        TOP_KEY_END,
};

/* Takes the next key off n bytes that a terminal sent, *ret: TOP_KEY_NONE for what means nothing here.
 * Returns how many bytes it had, 0 where n is 0. */
size_t top_take_key(const char *bytes, size_t n, int *ret);

/* Makes all strings in json fit for a terminal. Returns 0, or -ENOMEM. */
int top_clean(json_t *json);

/* The key does to top what it does where those replies are shown in that view. */
enum top_do top_press(struct top *top, int key, const struct top_replies *replies, const struct view *view);
