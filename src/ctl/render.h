/* SPDX-License-Identifier: MIT */
/* Shows replies and events as sentences and tables. Functions that return an int return CTL_DONE or an exit
 * code, unless their comment says otherwise. */
#pragma once

#include "ctl/screen.h"
#include "wire/json.h"
#include <time.h>

/* Shows a reply of GetStatus. */
int render_status(FILE *out, json_t *status, const struct view *view);
/* Shows a table of workers. threshold: memory_threshold of their fleet in bytes; 0: none. */
int render_workers(FILE *out, json_t *workers, long long threshold, const struct view *view);
/* Shows one event with its time. What the event quotes follows on lines of its own. */
void render_event(FILE *out, json_t *event, const struct view *view);

/* The colour of a problem's severity: an escape sequence, or "". */
const char *render_problem_colour(json_t *problem);
/* A problem in one line; with its remedy, what it quotes follows on lines of its own. The caller frees the
 * text. Returns NULL if memory is short. */
char *render_problem_text(json_t *problem, bool with_remedy);

/* The summary of a fleet. The caller frees the text. Returns NULL if memory is short. */
char *render_fleet_summary(json_t *fleet);

/* An indented paragraph below a heading. Prints nothing if text is "". colour: an escape sequence, or "". */
#define RENDER_INDENT 2
void render_text(FILE *out, const char *text, const char *colour, const struct view *view);
#define RENDER_RED    "\033[31m"
#define RENDER_GREEN  "\033[32m"
#define RENDER_YELLOW "\033[33m"
#define RENDER_CYAN   "\033[36m"
#define RENDER_PLAIN  "\033[0m"

/* The table of workers with one line per worker, which may be wider than the terminal. */
struct render_line {
        json_t *worker;
        long long threshold; /* memory_threshold of the worker's fleet */
        /* For sorting: the lowest key comes first, then the lowest number. */
        double key;
        size_t number;
};
struct render_lines {
        struct render_line *lines;
        size_t n, first, n_shown; /* column widths fit all n lines */
        size_t marked;
};
/* Returns 0, or -ENOMEM. */
int render_worker_lines(FILE *out, const struct render_lines *lines, const struct view *view);

/* Shows jobs, from a reply of GetJobs, the longest-running first. Returns 0, or -ENOMEM. */
int job_table_print(FILE *out, json_t *jobs, time_t now, const struct view *view);

/* The story of one worker: its events and its current state. */
struct worker_report {
        const char *id;         /* borrowed */
        json_t *status;         /* borrowed; so are fleet and worker */
        json_t *fleet, *worker; /* from status; NULL: not found */
        json_t *events;         /* owned: events of the worker, of its fleet and of sqmgr, oldest first */
        bool from_start;        /* events begin with the worker's start */
        bool earlier_workers;   /* an earlier worker had the same id */
};

/* Collects the worker's events and state from the replies of GetEvents and GetStatus. After a failure *ret
 * owns at most events. Returns 0, or -ENOMEM. */
int worker_report_find(struct worker_report *ret, const char *id, json_t *status, json_t *events);

/* Prints the report. */
void worker_report_print(FILE *out, const struct worker_report *worker_report, const struct view *view);
