/* SPDX-License-Identifier: MIT */
/* The state of `top`, and the replies that it shows. */
#pragma once

#include "base/usec.h"
#include "ctl/screen.h"
#include "wire/json.h"
#include <time.h>

#define TOP_ID_MAX     64
#define TOP_FILTER_MAX 48
#define TOP_TOLD_MAX   512
#define TOP_SCROLL_END SIZE_MAX

/* Below it nothing of use can be shown. */
#define TOP_COLUMNS_MIN 40
#define TOP_ROWS_MIN    8

enum top_sort { TOP_SORT_NAME, TOP_SORT_MEMORY, TOP_SORT_BUSY, TOP_SORT_AGE, TOP_SORT_STATE, _TOP_SORT_MAX };

/* What is shown of a worker that was opened. */
enum top_tab { TOP_JOBS, TOP_STORY, TOP_LINES, _TOP_TAB_MAX };

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
        char told[TOP_TOLD_MAX]; /* what became of the last order, until the next key */
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
