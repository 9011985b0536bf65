/* SPDX-License-Identifier: MIT */
/* What `top` shows and what keys do: its state, the rows, the lines, (state, key) -> (state, what is to be
 * done). No I/O, no clock. */
#pragma once

#include "base/usec.h"
#include "ctl/render.h"

#define TOP_ID_MAX       64
#define TOP_FILTER_MAX   48
#define TOP_REPORTED_MAX 512
#define TOP_SCROLL_END   SIZE_MAX

/* Below it nothing of use can be shown. */
#define TOP_COLUMNS_MIN 40
#define TOP_ROWS_MIN    8

enum top_sort { TOP_SORT_NAME, TOP_SORT_MEMORY, TOP_SORT_BUSY, TOP_SORT_AGE, TOP_SORT_STATE, _TOP_SORT_MAX };

/* What is shown of a worker that was opened. */
enum top_tab { TOP_JOBS, TOP_WORKER_REPORT, TOP_LINES, _TOP_TAB_MAX };

enum top_do {
        TOP_NOTHING,
        TOP_LOOK,    /* what is shown has changed: ask for it now */
        TOP_QUIET,   /* the worker `target`, which was said yes to */
        TOP_RESTART, /* the same of the fleet `target` */
        TOP_QUIT,
};

struct top {
        enum top_sort sort;
        enum top_tab tab;
        enum top_do asked; /* what the question is about; TOP_NOTHING: none is asked */
        bool opened;       /* the chosen worker */
        bool typing, help; /* the filter is written; the keys are explained */
        char filter[TOP_FILTER_MAX];
        char chosen[TOP_ID_MAX]; /* a worker's id, "": none yet */
        size_t at;               /* where that was among the workers */
        size_t scroll; /* lines of an opened worker that are above; TOP_SCROLL_END: as many as can be */
        char target[TOP_ID_MAX];
        char reported[TOP_REPORTED_MAX]; /* what became of the last order, until the next key */
};

/* What was answered. The strings in it are printable (top_clean()). */
struct top_replies {
        json_t *status;    /* of GetStatus; NULL: none came yet */
        json_t *jobs;      /* of the opened worker's fleet, of GetJobs; NULL: not asked */
        json_t *events;    /* of GetEvents; NULL: not asked */
        const char *lines; /* what the opened worker wrote last; NULL: not asked */
        const char *error; /* why status is an old one, "": it is not */
        usec_t age;        /* of status */
        time_t now;
};

/* The workers that pass the filter, sorted: lines is to be freed, the workers are borrowed. status may be
 * NULL. Returns 0, or -ENOMEM. */
int top_rows_collect(struct render_lines *ret, const struct top *top, json_t *status);

static inline void top_rows_release(struct render_lines *rows)
{
        free(rows->lines);
}
#define _cleanup_top_rows_ _cleanup_(top_rows_release)

/* Where the chosen worker is; where it is gone, what stands in its place. */
size_t top_rows_find(const struct render_lines *rows, const struct top *top);

bool top_is_too_small(const struct view *view);

/* Prints one line less than view has rows, or fewer, each no wider than its columns. Returns how far what is
 * shown of an opened worker can be scrolled. */
size_t top_draw(FILE *out, const struct top *top, const struct top_replies *replies, const struct view *view);

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
