/* SPDX-License-Identifier: MIT */
/* Model of `top`: its state, rows and lines, and what each key does. No I/O, no clock. */
#pragma once

#include "ctl/render.h"

#define TOP_ID_MAX       64
#define TOP_FILTER_MAX   48
#define TOP_REPORTED_MAX 512
#define TOP_SCROLL_END   SIZE_MAX

/* A smaller terminal shows only that it is too small. */
#define TOP_COLUMNS_MIN 40
#define TOP_ROWS_MIN    8

enum top_sort { TOP_SORT_NAME, TOP_SORT_MEMORY, TOP_SORT_BUSY, TOP_SORT_AGE, TOP_SORT_STATE, _TOP_SORT_MAX };

/* The parts of an opened worker. */
enum top_tab { TOP_JOBS, TOP_WORKER_REPORT, TOP_LINES, _TOP_TAB_MAX };

enum top_do {
        TOP_NOTHING,
        TOP_POLL,    /* the view has changed: query its data now */
        TOP_QUIET,   /* quiet the worker `target`; confirmed */
        TOP_RESTART, /* restart the fleet `target`; confirmed */
        TOP_QUIT,
};

struct top {
        enum top_sort sort;
        enum top_tab tab;
        enum top_do asked; /* subject of the open question; TOP_NOTHING: no question */
        bool opened;       /* the chosen worker is opened */
        bool typing, help; /* the filter is being edited; the help is shown */
        char filter[TOP_FILTER_MAX];
        char chosen[TOP_ID_MAX]; /* a worker's id; "": none yet */
        size_t at;               /* last row of the chosen worker */
        size_t scroll;           /* first line shown of an opened worker; TOP_SCROLL_END: the end */
        size_t last;             /* maximum of scroll, as drawn last */
        char target[TOP_ID_MAX];
        char reported[TOP_REPORTED_MAX]; /* outcome of the last action, until the next key */
};

/* The replies of sqmgr. All strings are printable. */
struct top_replies {
        json_t *status;    /* from GetStatus; NULL: none yet */
        json_t *jobs;      /* from GetJobs for the fleet of the opened worker; NULL: not queried */
        json_t *events;    /* from GetEvents; NULL: not queried */
        const char *lines; /* log tail of the opened worker; NULL: not read */
        const char *error; /* why status is out of date; "": it is current */
        usec_t age;        /* age of status */
        time_t now;
};

/* Collects and sorts the workers that pass the filter. Free with top_rows_release(); the workers are borrowed
 * from status. status may be NULL. Returns 0, or -ENOMEM. */
int top_rows_collect(struct render_lines *ret, const struct top *top, json_t *status);

static inline void top_rows_release(struct render_lines *rows)
{
        free(rows->lines);
}
#define _cleanup_top_rows_ _cleanup_(top_rows_release)

/* Prints at most view->rows - 1 lines, each at most view->columns wide. */
void top_draw(FILE *out, struct top *top, const struct top_replies *replies, const struct view *view);

/* A key: a character, or one of these values. */
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

/* Decodes the next key from n bytes of terminal input. *ret is TOP_KEY_NONE for unknown input. Returns the
 * number of bytes used; 0 if n is 0. */
size_t top_take_key(const char *bytes, size_t n, int *ret);

/* Applies a key to top. replies and view are those on screen. Returns what the caller must do. */
enum top_do top_press(struct top *top, int key, const struct top_replies *replies, const struct view *view);
