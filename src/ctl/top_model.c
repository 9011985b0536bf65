/* SPDX-License-Identifier: MIT */
/* The keys of `top`. No I/O, no clock. */
#include "ctl/top_model.h"
#include "base/memstream.h"
#include "base/text.h"
#include "wire/reply.h"
#include <stdarg.h>

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

/* Returns the row of the chosen worker. If the worker is gone, returns the row that replaced it. */
static size_t find_chosen(const struct render_lines *rows, const struct top *top)
{
        for (size_t i = 0; i < rows->n; i++)
                if (reply_is(rows->lines[i].worker, "id", top->chosen))
                        return i;
        return rows->n > 0 ? MIN(top->at, rows->n - 1) : 0;
}

static bool is_too_small(const struct view *view)
{
        return view->columns < TOP_COLUMNS_MIN || view->rows < TOP_ROWS_MIN;
}

static const struct {
        const char *bytes;
        int key;
} sequences[] = {
        {"\033[A", TOP_KEY_UP},         {"\033[B", TOP_KEY_DOWN}, {"\033[C", TOP_KEY_RIGHT},
        {"\033[D", TOP_KEY_LEFT},       {"\033OA", TOP_KEY_UP},   {"\033OB", TOP_KEY_DOWN},
        {"\033OC", TOP_KEY_RIGHT},      {"\033OD", TOP_KEY_LEFT}, {"\033[5~", TOP_KEY_PAGE_UP},
        {"\033[6~", TOP_KEY_PAGE_DOWN}, {"\033[H", TOP_KEY_HOME}, {"\033[F", TOP_KEY_END},
        {"\033OH", TOP_KEY_HOME},       {"\033OF", TOP_KEY_END},  {"\033[1~", TOP_KEY_HOME},
        {"\033[4~", TOP_KEY_END},
};

/* The length of a sequence that begins with ESC [ or ESC O, known or unknown. */
static size_t sequence_length(const char *bytes, size_t n)
{
        size_t length = 2;

        while (length < n && bytes[length] >= 0x20 && bytes[length] < 0x40)
                length++;
        return MIN(length + 1, n);
}

size_t top_take_key(const char *bytes, size_t n, int *ret)
{
        *ret = TOP_KEY_NONE;
        if (n == 0)
                return 0;
        if (bytes[0] == '\033' && n > 1 && (bytes[1] == '[' || bytes[1] == 'O')) {
                size_t length = sequence_length(bytes, n);

                for (size_t i = 0; i < ELEMENTSOF(sequences); i++)
                        if (strlen(sequences[i].bytes) == length &&
                            memcmp(sequences[i].bytes, bytes, length) == 0)
                                *ret = sequences[i].key;
                return length;
        }
        if (bytes[0] == '\r')
                *ret = TOP_KEY_ENTER;
        else if (bytes[0] == '\b')
                *ret = TOP_KEY_ERASE;
        else if ((unsigned char)bytes[0] < 0x80)
                *ret = (unsigned char)bytes[0];
        return 1;
}

/* The choice is a worker, not a row: it moves with the worker. */
static void choose(struct top *top, const struct render_lines *rows, size_t at)
{
        if (rows->n == 0)
                return;
        top->at = MIN(at, rows->n - 1);
        snprintf(top->chosen, sizeof(top->chosen), "%s", reply_string(rows->lines[top->at].worker, "id"));
}

static const struct move {
        int key;
        bool down;
        size_t lines; /* 0: half a screen; SIZE_MAX: to the end */
} moves[] = {
        {TOP_KEY_UP, false, 1},          {'k', false, 1},
        {TOP_KEY_DOWN, true, 1},         {'j', true, 1},
        {TOP_KEY_PAGE_UP, false, 0},     {TOP_KEY_PAGE_DOWN, true, 0},
        {TOP_KEY_HOME, false, SIZE_MAX}, {TOP_KEY_END, true, SIZE_MAX},
};

/* Returns NULL if the key does not move. */
static const struct move *find_move(int key)
{
        for (size_t i = 0; i < ELEMENTSOF(moves); i++)
                if (moves[i].key == key)
                        return &moves[i];
        return NULL;
}

/* Returns the position after the move, at least 0. */
static size_t moved(size_t at, const struct move *move, const struct view *view)
{
        size_t step = move->lines > 0 ? move->lines : (size_t)view->rows / 2;

        if (move->down)
                return at > SIZE_MAX - step ? SIZE_MAX : at + step;
        return at > step ? at - step : 0;
}

static void press_in_filter(struct top *top, int key)
{
        size_t length = strlen(top->filter);

        if (key == TOP_KEY_ESCAPE)
                top->filter[0] = '\0';
        if (key == TOP_KEY_ESCAPE || key == TOP_KEY_ENTER)
                top->typing = false;
        else if (key == TOP_KEY_ERASE && length > 0)
                top->filter[length - 1] = '\0';
        else if (key >= ' ' && key < TOP_KEY_ERASE && length + 1 < sizeof(top->filter))
                memcpy(top->filter + length, (const char[]){(char)key, '\0'}, 2);
}

/* Any key but y or Y means no. */
static enum top_do press_at_question(struct top *top, int key)
{
        enum top_do asked = top->asked;

        top->asked = TOP_NOTHING;
        if (key == 'y' || key == 'Y')
                return asked;
        snprintf(top->reported, sizeof(top->reported), "canceled");
        return TOP_NOTHING;
}

static void ask(struct top *top, enum top_do what)
{
        if (top->chosen[0] == '\0')
                return;
        snprintf(top->target, sizeof(top->target), "%s", top->chosen);
        if (what == TOP_RESTART)
                top->target[strcspn(top->target, "/")] = '\0';
        top->asked = what;
}

/* The newest events and lines are shown first. */
static void begin_tab(struct top *top)
{
        top->scroll = top->tab == TOP_JOBS ? 0 : TOP_SCROLL_END;
}

/* At the end, the view keeps showing the newest lines. */
static void scroll(struct top *top, const struct move *move, const struct view *view)
{
        size_t to = moved(MIN(top->scroll, top->last), move, view);

        top->scroll = to >= top->last && top->tab != TOP_JOBS ? TOP_SCROLL_END : MIN(to, top->last);
}

static enum top_do press_opened(struct top *top, int key)
{
        switch (key) {
        case TOP_KEY_ESCAPE:
        case TOP_KEY_ERASE:
        case TOP_KEY_ENTER:
                top->opened = false;
                return TOP_NOTHING;
        case TOP_KEY_LEFT:
                top->tab = (top->tab + _TOP_TAB_MAX - 1) % _TOP_TAB_MAX;
                break;
        case TOP_KEY_RIGHT:
        case TOP_KEY_TAB:
                top->tab = (top->tab + 1) % _TOP_TAB_MAX;
                break;
        case '1':
        case '2':
        case '3':
                top->tab = (enum top_tab)(key - '1');
                break;
        default:
                return TOP_NOTHING;
        }
        begin_tab(top);
        return TOP_POLL;
}

static enum top_do press_in_list(struct top *top, int key)
{
        static const char sorts[] = {
                [TOP_SORT_NAME] = 'n', [TOP_SORT_MEMORY] = 'm', [TOP_SORT_BUSY] = 'b',
                [TOP_SORT_AGE] = 'a',  [TOP_SORT_STATE] = 't',
        };
        static_assert(sizeof(sorts) == _TOP_SORT_MAX, "a key for each");
        const char *at = key > 0 && key < 128 ? memchr(sorts, key, sizeof(sorts)) : NULL;

        if (at)
                top->sort = (enum top_sort)(at - sorts);
        else if (key == 's')
                top->sort = (top->sort + 1) % _TOP_SORT_MAX;
        else if (key == '/')
                top->typing = true;
        else if (key == TOP_KEY_ESCAPE)
                top->filter[0] = '\0';
        else if (key == TOP_KEY_ENTER && top->chosen[0] != '\0') {
                top->opened = true;
                begin_tab(top);
                return TOP_POLL;
        }
        return TOP_NOTHING;
}

static enum top_do press_plain(struct top *top, int key)
{
        if (key == 'Q')
                ask(top, TOP_QUIET);
        else if (key == 'R')
                ask(top, TOP_RESTART);
        else if (key == '?' || key == 'h')
                top->help = true;
        else if (key == 'q')
                return TOP_QUIT;
        else
                return top->opened ? press_opened(top, key) : press_in_list(top, key);
        return TOP_NOTHING;
}

enum top_do top_press(struct top *top, int key, const struct top_replies *replies, const struct view *view)
{
        _cleanup_top_rows_ struct render_lines rows = {0};
        const struct move *move = find_move(key);
        enum top_do todo = TOP_NOTHING;

        if (key == TOP_KEY_NONE || top_rows_collect(&rows, top, replies->status) < 0)
                return TOP_NOTHING;
        top->reported[0] = '\0';
        /* A terminal that is too small accepts only q. */
        if (is_too_small(view))
                return key == 'q' ? TOP_QUIT : TOP_NOTHING;
        if (!top->opened)
                choose(top, &rows, find_chosen(&rows, top));
        if (top->help)
                top->help = false;
        else if (top->asked != TOP_NOTHING)
                todo = press_at_question(top, key);
        else if (top->typing)
                press_in_filter(top, key);
        else if (!move)
                todo = press_plain(top, key);
        else if (top->opened)
                scroll(top, move, view);
        else
                choose(top, &rows, moved(top->at, move, view));
        return todo;
}

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

/* Prints up to n lines of text, starting with line `first`. */
static void put_lines(struct top_page *page, const char *text, size_t first, size_t n)
{
        size_t number = 0;

        for (; *text != '\0'; number++) {
                size_t length = strcspn(text, "\n");

                if (number >= first && number < first + n)
                        put_bytes(page, text, length);
                text += length + (text[length] == '\n');
        }
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
        rows.marked = find_chosen(&rows, page->top);
        rows.first = rows.marked < n / 2 ? 0 : MIN(rows.marked - n / 2, rows.n - MIN(n, rows.n));
        FILE *out = open_memstream(&text, &size);
        int r = out ? render_worker_lines(out, &rows, page->view) : 0;
        if (memstream_close(out, &text) == 0 && r == 0)
                put_lines(page, text, 0, SIZE_MAX);
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

static void put_tab(struct top_page *page, struct top *top)
{
        _cleanup_free_ char *text = NULL;
        size_t size, n = page->left > 1 ? page->left - 1 : 0;
        FILE *out = open_memstream(&text, &size);

        if (out)
                print_tab(out, page);
        if (memstream_close(out, &text) < 0)
                return;
        size_t all = (size_t)screen_count_lines(text);
        top->last = all > n ? all - n : 0;
        put_lines(page, text, MIN(top->scroll, top->last), n);
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

        put_lines(page, text, 0, page->left - 1);
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

void top_draw(FILE *out, struct top *top, const struct top_replies *replies, const struct view *view)
{
        struct top_page page = {.out = out, .top = top, .replies = replies, .view = view};

        page.left = view->rows > 1 ? (size_t)view->rows - 1 : 1;
        if (is_too_small(view)) {
                put(&page, "terminal too small: at least %d columns, %d rows", TOP_COLUMNS_MIN, TOP_ROWS_MIN);
                put(&page, "q quits");
                return;
        }
        put_head(&page);
        if (top->help) {
                put_help(&page);
        } else if (top->opened) {
                put_tabs(&page);
                put_tab(&page, top);
        } else if (replies->status) {
                put_problems(&page);
                put_fleets(&page);
                put_order(&page);
                put_workers(&page);
        }
        put_foot(&page);
}
