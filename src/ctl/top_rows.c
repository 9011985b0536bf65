/* SPDX-License-Identifier: MIT */
/* The workers that `top` shows, sorted. No I/O. */
#include "ctl/top_model.h"
#include "wire/reply.h"
#include <string.h>

/* Workers that need attention come first. */
static double state_rank(json_t *worker)
{
        static const char *const states[] = {"hung", "starting", "stopping", "quiet"};
        const char *state = reply_worker_state(worker);

        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (strcmp(state, states[i]) == 0)
                        return (double)i;
        return reply_is_true(worker, "ready") ? ELEMENTSOF(states) + 1 : ELEMENTSOF(states);
}

static double sort_key(json_t *worker, enum top_sort sort)
{
        switch (sort) {
        case TOP_SORT_MEMORY:
                return -(double)reply_integer(worker, "memory_bytes");
        case TOP_SORT_BUSY:
                return -(double)reply_integer(worker, "busy");
        case TOP_SORT_AGE:
                return -json_number_value(json_object_get(worker, "uptime_seconds"));
        case TOP_SORT_STATE:
                return state_rank(worker);
        default:
                return 0;
        }
}

static int compare_lines(const void *left, const void *right)
{
        const struct render_line *a = left, *b = right;

        if (a->key < b->key || a->key > b->key)
                return a->key < b->key ? -1 : 1;
        return a->number < b->number ? -1 : 1;
}

static bool passes(json_t *worker, const char *filter)
{
        static const char *const shown[] = {"id", "reason", "waits_for"};

        if (filter[0] == '\0' || strcasestr(reply_worker_state(worker), filter))
                return true;
        for (size_t i = 0; i < ELEMENTSOF(shown); i++)
                if (strcasestr(reply_string(worker, shown[i]), filter))
                        return true;
        return false;
}

static size_t count_workers(json_t *status)
{
        json_t *fleet;
        size_t n = 0;

        json_foreach_in(fleet, status, "fleets")
                n += json_array_size(json_object_get(fleet, "workers"));
        return n;
}

static size_t fill(struct render_line *lines, const struct top *top, json_t *status)
{
        json_t *fleet, *worker;
        size_t n = 0;

        json_foreach_in(fleet, status, "fleets") {
                json_foreach_in(worker, fleet, "workers") {
                        if (!passes(worker, top->filter))
                                continue;
                        lines[n] = (struct render_line){
                                .worker = worker,
                                .threshold = reply_integer(fleet, "memory_threshold_bytes"),
                                .number = n,
                                .key = sort_key(worker, top->sort)};
                        n++;
                }
        }
        return n;
}

int top_rows_collect(struct render_lines *ret, const struct top *top, json_t *status)
{
        *ret = (struct render_lines){.lines = calloc(count_workers(status) + 1, sizeof(*ret->lines))};
        if (!ret->lines)
                return -ENOMEM;
        ret->n = fill(ret->lines, top, status);
        qsort(ret->lines, ret->n, sizeof(*ret->lines), compare_lines);
        return 0;
}

size_t top_rows_find(const struct render_lines *rows, const struct top *top)
{
        for (size_t i = 0; i < rows->n; i++)
                if (reply_is(rows->lines[i].worker, "id", top->chosen))
                        return i;
        return rows->n > 0 ? MIN(top->at, rows->n - 1) : 0;
}

bool top_is_too_small(const struct view *view)
{
        return view->columns < TOP_COLUMNS_MIN || view->rows < TOP_ROWS_MIN;
}
