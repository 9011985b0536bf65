/* SPDX-License-Identifier: MIT */
/* The lines of `top`. No I/O, no clock. */
#include "base/memstream.h"
#include "base/text.h"
#include "ctl/top_model.h"
#include "ctl/worker_report.h"
#include "wire/reply.h"
#include <stdarg.h>
#include <string.h>

static const char *const sort_names[] = {
        [TOP_SORT_NAME] = "name", [TOP_SORT_MEMORY] = "memory", [TOP_SORT_BUSY] = "busy",
        [TOP_SORT_AGE] = "age",   [TOP_SORT_STATE] = "state",
};
static_assert(ELEMENTSOF(sort_names) == _TOP_SORT_MAX, "sort_names");

static const char *const tab_names[] = {
        [TOP_JOBS] = "jobs", [TOP_WORKER_REPORT] = "history", [TOP_LINES] = "log"};
static_assert(ELEMENTSOF(tab_names) == _TOP_TAB_MAX, "tab_names");

#define PROBLEMS_SHOWN 3

struct top_page {
        FILE *out;
        const struct top *top;
        const struct top_replies *replies;
        const struct view *view;
        size_t left; /* lines left on the screen */
};

/* Prints one line of `length` bytes, cut off at the terminal's width. */
static void put_bytes(struct top_page *page, const char *line, size_t length)
{
        size_t fitting = text_fitting(line, length, page->view->columns);

        if (page->left == 0)
                return;
        page->left--;
        fwrite(line, 1, fitting, page->out);
        fprintf(page->out, "%s\n", memchr(line, '\033', fitting) ? "\033[0m" : "");
}

static void put(struct top_page *page, const char *format, ...) _printf_(2, 3);
static void put(struct top_page *page, const char *format, ...)
{
        va_list arguments;
        char *line;

        va_start(arguments, format);
        int length = vasprintf(&line, format, arguments);
        va_end(arguments);
        if (length < 0)
                return;
        put_bytes(page, line, (size_t)length);
        free(line);
}

static const char *colour(const struct top_page *page, const char *sequence)
{
        return page->view->colour ? sequence : "";
}

/* Prints up to n lines of text, starting with line `first`. Returns the total number of lines. */
static size_t put_lines(struct top_page *page, const char *text, size_t first, size_t n)
{
        size_t number = 0;

        for (; *text != '\0'; number++) {
                size_t length = strcspn(text, "\n");

                if (number >= first && number < first + n)
                        put_bytes(page, text, length);
                text += length + (text[length] == '\n');
        }
        return number;
}

static void put_head(struct top_page *page)
{
        const struct top_replies *replies = page->replies;
        char clock[16] = "", span[FORMAT_MAX];
        struct tm local;

        if (localtime_r(&replies->now, &local))
                (void)strftime(clock, sizeof(clock), "%H:%M:%S", &local);
        if (!replies->status)
                put(page, "%s", clock);
        else
                put(page, "%s  sqmgr %s%s%s, up %s", clock, reply_string(replies->status, "version"),
                    reply_is(replies->status, "instance", "") ? "" : ", instance ",
                    reply_string(replies->status, "instance"),
                    reply_seconds(replies->status, "uptime_seconds", span));
        if (replies->error[0] == '\0')
                return;
        put(page, "%s%s", colour(page, "\033[31m"), replies->error);
        if (replies->status)
                put(page, "%sState of %s ago; reconnecting", colour(page, "\033[31m"),
                    format_duration(replies->age - replies->age % USEC_PER_SEC, span, sizeof(span)));
}

/* The worst problems come first. */
static const char *fleet_colour(const struct top_page *page, json_t *fleet)
{
        json_t *problem;

        json_foreach_in(problem, page->replies->status, "problems")
                if (reply_is(problem, "fleet", reply_string(fleet, "name")))
                        return render_problem_colour(problem);
        return "";
}

static void put_problems(struct top_page *page)
{
        json_t *problems = json_object_get(page->replies->status, "problems");
        size_t n = json_array_size(problems), shown = MIN(n, (size_t)PROBLEMS_SHOWN);

        for (size_t i = 0; i < shown; i++) {
                json_t *problem = json_array_get(problems, i);
                _cleanup_free_ char *text = render_problem_text(problem, false);

                if (text)
                        put(page, "%s%s", colour(page, render_problem_colour(problem)), text);
        }
        if (shown < n)
                put(page, "... %zu more problems: run 'sqmgrctl status'", n - shown);
}

static void put_fleet(struct top_page *page, json_t *fleet)
{
        _cleanup_free_ char *summary = render_fleet_summary(fleet);
        const char *waits_for = reply_string(fleet, "waits_for");

        if (summary)
                put(page, "%s%s%s%s", colour(page, fleet_colour(page, fleet)), summary,
                    waits_for[0] != '\0' ? "; " : "", waits_for);
}

/* Fleets use at most a third of the terminal. */
static void put_fleets(struct top_page *page)
{
        json_t *fleets = json_object_get(page->replies->status, "fleets");
        size_t n = json_array_size(fleets), rows_max = MAX((size_t)page->view->rows / 3, (size_t)1);
        size_t shown = n <= rows_max ? n : rows_max - 1;

        for (size_t i = 0; i < shown; i++)
                put_fleet(page, json_array_get(fleets, i));
        if (shown < n)
                put(page, "... %zu more fleets", n - shown);
}

/* The part of the table around the chosen worker. */
static void put_workers(struct top_page *page)
{
        _cleanup_top_rows_ struct render_lines rows = {0};
        _cleanup_free_ char *text = NULL;
        size_t size, n = page->left > 2 ? page->left - 2 : 0;

        if (top_rows_collect(&rows, page->top, page->replies->status) < 0)
                return;
        if (rows.n == 0) {
                put(page, "%s", page->top->filter[0] != '\0' ? "no worker matches the filter" : "no workers");
                return;
        }
        rows.n_shown = n;
        rows.marked = top_rows_find(&rows, page->top);
        rows.first = rows.marked < n / 2 ? 0 : MIN(rows.marked - n / 2, rows.n - MIN(n, rows.n));
        FILE *out = open_memstream(&text, &size);
        int r = out ? render_worker_lines(out, &rows, page->view) : 0;
        if (memstream_close(out, &text) == 0 && r == 0)
                (void)put_lines(page, text, 0, SIZE_MAX);
}

static json_t *jobs_of(const struct top_page *page)
{
        json_t *mine = json_array(), *job;

        json_foreach_in(job, page->replies->jobs, "jobs")
                if (reply_is(job, "worker", page->top->chosen))
                        (void)json_array_append(mine, job);
        return mine;
}

static void print_jobs(FILE *out, const struct top_page *page)
{
        _cleanup_json_ json_t *jobs = jobs_of(page);
        json_t *error;

        if (!page->replies->jobs)
                return;
        if (json_array_size(jobs) > 0)
                (void)job_table_print(out, jobs, page->replies->now, page->view);
        else
                fputs("no running jobs known\n", out);
        json_foreach_in(error, page->replies->jobs, "errors")
                text_print_wrapped(out, json_string_value(error), 0, 2, page->view->columns);
}

static void print_worker_report(FILE *out, const struct top_page *page)
{
        struct worker_report worker_report;

        if (!page->replies->events)
                return;
        if (worker_report_find(&worker_report, page->top->chosen, page->replies->status,
                               json_object_get(page->replies->events, "events")) == 0)
                worker_report_print(out, &worker_report, page->view);
        json_decref(worker_report.events);
}

static void print_tab(FILE *out, const struct top_page *page)
{
        switch (page->top->tab) {
        case TOP_JOBS:
                print_jobs(out, page);
                return;
        case TOP_WORKER_REPORT:
                print_worker_report(out, page);
                return;
        default:
                fputs(page->replies->lines ? page->replies->lines : "", out);
        }
}

/* Returns the maximum scroll position. */
static size_t put_tab(struct top_page *page)
{
        _cleanup_free_ char *text = NULL;
        size_t size, n = page->left > 1 ? page->left - 1 : 0;
        FILE *out = open_memstream(&text, &size);

        if (out)
                print_tab(out, page);
        if (memstream_close(out, &text) < 0)
                return 0;
        size_t all = (size_t)screen_count_lines(text), last = all > n ? all - n : 0;
        (void)put_lines(page, text, MIN(page->top->scroll, last), n);
        return last;
}

static void put_tabs(struct top_page *page)
{
        char text[256] = "";

        for (size_t i = 0; i < _TOP_TAB_MAX; i++) {
                bool open = i == page->top->tab;

                text_append(text, sizeof(text), "%s%s%zu %s%s%s", open ? colour(page, "\033[7m") : "",
                            open ? "[" : " ", i + 1, tab_names[i], open ? "]" : " ",
                            open ? colour(page, "\033[0m") : "");
        }
        put(page, "%s: %s", page->top->chosen, text);
}

static void put_help(struct top_page *page)
{
        static const char text[] =
                "Up Down j k   choose a worker, or scroll; also Page Up, Page Down, Home, End\n"
                "Enter         opens the worker: jobs, history, log\n"
                "Tab 1 2 3     switches between these\n"
                "Esc           goes back, or drops the filter\n"
                "s             sorts by the next column; n m b a t sort by name, memory,\n"
                "              busy, age, state\n"
                "/             filters by id, state and what a worker waits for\n"
                "Q             quiets the worker: its jobs finish, a new worker replaces it\n"
                "R             restarts the worker's fleet without interrupting jobs\n"
                "q             quits\n"
                "Q and R ask first: y means yes, any other key no.\n";

        (void)put_lines(page, text, 0, page->left - 1);
}

static const char *keys_of(const struct top_page *page)
{
        if (page->top->help)
                return "any key goes back";
        if (page->top->opened)
                return "Esc back  Tab next  Up Down scroll  Q quiet  R restart  ? keys  q quit";
        return "Enter opens  s sort  / filter  Q quiet  R restart  ? keys  q quit";
}

static void put_foot(struct top_page *page)
{
        const struct top *top = page->top;
        const char *bold = colour(page, "\033[1m");

        while (page->left > 1)
                put(page, "%s", "");
        if (top->asked == TOP_QUIET)
                put(page, "%sQuiet %s? A new worker replaces it. y: yes, any other key: no", bold,
                    top->target);
        else if (top->asked == TOP_RESTART)
                put(page,
                    "%sRestart %s? All workers are replaced; no job is interrupted. y: yes, any other key: "
                    "no",
                    bold, top->target);
        else if (top->typing)
                put(page, "%sFilter: %s_", bold, top->filter);
        else if (top->reported[0] != '\0')
                put(page, "%s%s", bold, top->reported);
        else
                put(page, "%s", keys_of(page));
}

static void put_order(struct top_page *page)
{
        const struct top *top = page->top;

        put(page, "by %s%s%s%s", sort_names[top->sort], top->filter[0] != '\0' ? ", only '" : "", top->filter,
            top->filter[0] != '\0' ? "'" : "");
}

size_t top_draw(FILE *out, const struct top *top, const struct top_replies *replies, const struct view *view)
{
        struct top_page page = {.out = out, .top = top, .replies = replies, .view = view};
        size_t last = 0;

        page.left = view->rows > 1 ? (size_t)view->rows - 1 : 1;
        if (top_is_too_small(view)) {
                put(&page, "terminal too small: at least %d columns, %d rows", TOP_COLUMNS_MIN, TOP_ROWS_MIN);
                put(&page, "q quits");
                return 0;
        }
        put_head(&page);
        if (top->help) {
                put_help(&page);
        } else if (top->opened) {
                put_tabs(&page);
                last = put_tab(&page);
        } else if (replies->status) {
                put_problems(&page);
                put_fleets(&page);
                put_order(&page);
                put_workers(&page);
        }
        put_foot(&page);
        return last;
}
