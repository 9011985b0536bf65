/* SPDX-License-Identifier: MIT */
/* The lines of `top`. No I/O, no clock. */
#pragma once

#include "ctl/top_state.h"

/* Prints one line less than view has rows, or fewer, each no wider than its columns. Returns how far what is
 * shown of an opened worker can be scrolled. */
size_t top_draw(FILE *out, const struct top *top, const struct top_replies *replies, const struct view *view);
