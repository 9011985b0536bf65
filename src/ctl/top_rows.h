/* SPDX-License-Identifier: MIT */
/* The workers that `top` shows, in their order. No I/O. */
#pragma once

#include "ctl/render.h"
#include "ctl/top_state.h"

struct top_rows {
        struct render_line *lines; /* the workers are borrowed */
        size_t n;
};

/* Those that pass the filter, sorted. status may be NULL. Returns 0, or -ENOMEM. */
int top_rows_collect(struct top_rows *ret, const struct top *top, json_t *status);
void top_rows_release(struct top_rows *rows);
#define _cleanup_top_rows_ _cleanup_(top_rows_release)

/* Where the chosen worker is; where it is gone, what stands in its place. */
size_t top_rows_find(const struct top_rows *rows, const struct top *top);

bool top_is_too_small(const struct view *view);
