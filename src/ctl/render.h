/* SPDX-License-Identifier: MIT */
/* Shows what sqmgr tells of its fleets and of events: sentences and tables for people. What returns an int
 * returns CTL_DONE or an exit code. */
#pragma once

#include "ctl/screen.h"
#include "wire/json.h"
#include <time.h>

/* What GetStatus tells. */
int render_status(FILE *out, json_t *status, const struct view *view);
/* A table of workers; threshold: the memory_threshold of their fleet, 0 where there is none. */
int render_workers(FILE *out, json_t *workers, long long threshold, const struct view *view);
/* One event with its time: a line, where nothing limits its length. */
void render_event(FILE *out, json_t *event, const struct view *view);

/* The summary of a fleet: to be freed; NULL where memory is short. */
char *render_fleet_summary(json_t *fleet);

/* A paragraph below a heading, indented; nothing where text is "". colour: an escape sequence, or "". */
#define RENDER_INDENT 2
void render_text(FILE *out, const char *text, const char *colour, const struct view *view);
#define RENDER_RED    "\033[31m"
#define RENDER_GREEN  "\033[32m"
#define RENDER_YELLOW "\033[33m"
#define RENDER_CYAN   "\033[36m"
#define RENDER_PLAIN  "\033[0m"

/* A bar in brackets, with so many columns within them, 30 at most, `full` of them filled. Returns text. */
#define RENDER_BAR_MAX 34
const char *render_bar(char text[static RENDER_BAR_MAX], int full, int columns);

/* The same table with one line for each worker, which may be wider than the terminal. */
struct render_line {
        json_t *worker;
        long long threshold; /* of its fleet */
        /* For who sorts them: the least key comes first, among equals the least number. */
        double key;
        size_t number;
};
struct render_lines {
        struct render_line *lines;
        size_t n, first, n_shown; /* the columns are as wide as all n need */
        size_t marked;
};
/* Returns 0, or -ENOMEM. */
int render_worker_lines(FILE *out, const struct render_lines *lines, const struct view *view);

/* What GetRollouts tells. Where view->rows says how much room there is, hosts for which there is none are
 * counted, those first that wait or are done. Returns CTL_DONE or an exit code. */
int hosts_render(FILE *out, json_t *reply, const struct view *view);

/* jobs: as GetJobs tells them. Those that have run for longest come first. Returns 0, or -ENOMEM. */
int job_table_print(FILE *out, json_t *jobs, time_t now, const struct view *view);
