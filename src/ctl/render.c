/* SPDX-License-Identifier: MIT */
/* Shows status, workers and events as sentences and tables. */
#include "ctl/render.h"
#include "base/memstream.h"
#include "base/text.h"
#include "ctl/output.h"
#include "wire/reply.h"

enum column {
        COLUMN_WORKER,
        COLUMN_PID,
        COLUMN_STATE,
        COLUMN_GENERATION,
        COLUMN_BUSY,
        COLUMN_MEMORY,
        COLUMN_UPTIME,
        COLUMN_WHY,
        _COLUMN_MAX,
};

struct worker_row {
        char cells[_COLUMN_MAX][320];
        const char *colours[_COLUMN_MAX]; /* NULL: none */
};

#define MAGENTA "\033[35m"

/* With fewer columns left, the last column moves to lines of its own. */
#define WHY_COLUMNS_MIN 40
#define WHY_INDENT      6
/* With fewer columns left after the time of an event, continuation lines start at RENDER_INDENT. */
#define EVENT_COLUMNS_MIN 40

static const struct worker_row header = {{"WORKER", "PID", "STATE", "GEN", "BUSY", "MEMORY", "UPTIME", "WHY"},
                                         {NULL}};

static const char *state_colour(const char *state)
{
        static const char *const colours[][2] = {
                {"active", RENDER_GREEN}, {"starting", RENDER_YELLOW}, {"quiet", RENDER_CYAN},
                {"stopping", MAGENTA},    {"hung", RENDER_RED},
        };

        for (size_t i = 0; i < ELEMENTSOF(colours); i++)
                if (strcmp(state, colours[i][0]) == 0)
                        return colours[i][1];
        return NULL;
}

static void fill_memory(struct worker_row *row, json_t *worker, long long threshold)
{
        long long bytes = reply_integer(worker, "memory_bytes");
        char *cell = row->cells[COLUMN_MEMORY], size[FORMAT_MAX];

        reply_memory(worker, size);
        if (threshold <= 0 || bytes <= 0) {
                snprintf(cell, sizeof(row->cells[0]), "%s", size);
                return;
        }
        long long share = reply_percent(bytes, threshold);
        snprintf(cell, sizeof(row->cells[0]), "%s %3lld%%", size, share);
        row->colours[COLUMN_MEMORY] = share >= 100 ? RENDER_RED : share >= 90 ? RENDER_YELLOW : NULL;
}

static void fill_row(struct worker_row *row, json_t *worker, long long threshold)
{
        const char *state = reply_worker_state(worker);
        char span[FORMAT_MAX];
        size_t size = sizeof(row->cells[0]);

        snprintf(row->cells[COLUMN_WORKER], size, "%s", reply_string(worker, "id"));
        snprintf(row->cells[COLUMN_PID], size, "%lld", reply_integer(worker, "pid"));
        snprintf(row->cells[COLUMN_STATE], size, "%s %s", state, reply_worker_since(worker, span));
        row->colours[COLUMN_STATE] = state_colour(state);
        snprintf(row->cells[COLUMN_GENERATION], size, "%lld", reply_integer(worker, "generation"));
        if (reply_integer(worker, "concurrency") > 0)
                snprintf(row->cells[COLUMN_BUSY], size, "%lld/%lld", reply_integer(worker, "busy"),
                         reply_integer(worker, "concurrency"));
        else if (!reply_has_heartbeat(worker))
                snprintf(row->cells[COLUMN_BUSY], size, "-");
        else
                snprintf(row->cells[COLUMN_BUSY], size, "%lld", reply_integer(worker, "busy"));
        fill_memory(row, worker, threshold);
        snprintf(row->cells[COLUMN_UPTIME], size, "%s", reply_seconds(worker, "uptime_seconds", span));
        reply_worker_why(worker, row->cells[COLUMN_WHY], size);
}

static int table_width(const int *widths)
{
        int all = 0;

        for (int i = 0; i < COLUMN_WHY; i++)
                all += widths[i] > 0 ? 2 + widths[i] : 0;
        return all;
}

/* All columns but the last. beside: the last column follows on the same line. */
static void render_cells(FILE *out, const struct worker_row *row, const int *widths, bool beside,
                         const struct view *view)
{
        for (int i = 0; i < COLUMN_WHY; i++) {
                bool right = i == COLUMN_PID || i == COLUMN_GENERATION || i == COLUMN_MEMORY;
                const char *cell = row->cells[i], *colour = view->colour ? row->colours[i] : NULL;
                int pad = widths[i] - text_width(cell);

                if (widths[i] == 0)
                        continue;
                fprintf(out, "  %*s%s%s%s", right ? pad : 0, "", colour ? colour : "", cell,
                        colour ? RENDER_PLAIN : "");
                /* No padding at the end of a line. */
                if (!right && (i < COLUMN_UPTIME || beside))
                        fprintf(out, "%*s", pad, "");
        }
        if (beside)
                fputs("  ", out);
}

static void render_row(FILE *out, const struct worker_row *row, const int *widths, bool is_header,
                       const struct view *view)
{
        const char *why = row->cells[COLUMN_WHY];
        int end = table_width(widths);
        bool beside = why[0] != '\0' && (view->columns == 0 || view->columns - end - 2 >= WHY_COLUMNS_MIN);

        render_cells(out, row, widths, beside, view);
        if (beside) {
                text_print_wrapped(out, why, end + 2, end + 2, view->columns);
                return;
        }
        fputc('\n', out);
        if (why[0] != '\0' && !is_header) {
                fprintf(out, "%*s", WHY_INDENT, "");
                text_print_wrapped(out, why, WHY_INDENT, WHY_INDENT, view->columns);
        }
}

/* rows: the header and n workers. */
static void measure(const struct worker_row *rows, size_t n, int *widths)
{
        for (size_t i = 0; i <= n; i++)
                for (int k = 0; k < _COLUMN_MAX; k++)
                        widths[k] = MAX(widths[k], text_width(rows[i].cells[k]));
}

/* Drops the least important columns first: their width becomes 0. */
static void drop_columns(int *widths, const struct view *view)
{
        static const enum column order[] = {COLUMN_GENERATION, COLUMN_UPTIME, COLUMN_MEMORY, COLUMN_PID};

        for (size_t i = 0; i < ELEMENTSOF(order) && view->columns > 0; i++)
                if (table_width(widths) > view->columns)
                        widths[order[i]] = 0;
}

/* On a narrow terminal, ids lose the fleet's name, which is in the line above. */
static void shorten_ids(struct worker_row *rows, size_t n, int *widths, const struct view *view)
{
        int width = text_width(rows[0].cells[COLUMN_WORKER]);

        if (view->columns == 0 || table_width(widths) <= view->columns)
                return;
        for (size_t i = 1; i <= n; i++) {
                char *id = rows[i].cells[COLUMN_WORKER], *index = strchr(id, '/');

                if (index)
                        memmove(id, index, strlen(index) + 1);
                width = MAX(width, text_width(id));
        }
        widths[COLUMN_WORKER] = width;
}

static bool is_settled(json_t *worker)
{
        return strcmp(reply_worker_state(worker), "active") == 0 && reply_is_true(worker, "ready");
}

void render_text(FILE *out, const char *text, const char *colour, const struct view *view)
{
        if (text[0] == '\0')
                return;
        colour = view->colour ? colour : "";
        fprintf(out, "%*s%s", RENDER_INDENT, "", colour);
        text_print_wrapped(out, text, RENDER_INDENT, RENDER_INDENT, view->columns);
        fputs(colour[0] != '\0' ? RENDER_PLAIN : "", out);
}

/* Counts the workers that are active and ready, and how many of them are outdated. */
static void render_settled(FILE *out, size_t n, size_t n_outdated, const struct view *view)
{
        char text[128], outdated[64] = "";

        if (n_outdated > 0)
                snprintf(outdated, sizeof(outdated), ", %zu of them outdated", n_outdated);
        snprintf(text, sizeof(text), "%zu active and ready (not shown)%s", n, outdated);
        render_text(out, text, "", view);
}

int render_workers(FILE *out, json_t *workers, long long threshold, const struct view *view)
{
        size_t n = 0, n_settled = 0, n_outdated = 0;
        int widths[_COLUMN_MAX] = {0};
        json_t *worker;

        if (json_array_size(workers) == 0)
                return CTL_DONE;
        _cleanup_free_ struct worker_row *rows = calloc(json_array_size(workers) + 1, sizeof(*rows));
        if (!rows)
                return output_error(CTL_FAILED, "not enough memory");
        rows[0] = header;
        json_foreach(worker, workers) {
                if (view->brief && is_settled(worker)) {
                        n_settled++;
                        n_outdated += reply_is_true(worker, "outdated");
                } else {
                        fill_row(&rows[++n], worker, threshold);
                }
        }
        if (n_settled > 0)
                render_settled(out, n_settled, n_outdated, view);
        if (n == 0)
                return CTL_DONE;
        measure(rows, n, widths);
        shorten_ids(rows, n, widths, view);
        drop_columns(widths, view);
        for (size_t i = 0; i <= n; i++)
                render_row(out, &rows[i], widths, i == 0, view);
        return CTL_DONE;
}

int render_worker_lines(FILE *out, const struct render_lines *lines, const struct view *view)
{
        int widths[_COLUMN_MAX] = {0};

        _cleanup_free_ struct worker_row *rows = calloc(lines->n + 1, sizeof(*rows));
        if (!rows)
                return -ENOMEM;
        rows[0] = header;
        for (size_t i = 0; i < lines->n; i++)
                fill_row(&rows[i + 1], lines->lines[i].worker, lines->lines[i].threshold);
        measure(rows, lines->n, widths);
        drop_columns(widths, view);
        for (size_t i = 0; i <= lines->n; i++) {
                if (i > 0 && (i - 1 < lines->first || i - 1 >= lines->first + lines->n_shown))
                        continue;
                /* The mark replaces the first of the two blanks at the beginning of the line. */
                bool marked = i > 0 && i - 1 == lines->marked;
                fprintf(out, "%s%s", marked ? ">" : " ", marked && view->colour ? "\033[7m" : "");
                struct view plain = {.columns = view->columns, .colour = view->colour && !marked};
                render_cells(out, &rows[i], widths, true, &plain);
                fprintf(out, "%s%s\n", rows[i].cells[COLUMN_WHY], marked && view->colour ? RENDER_PLAIN : "");
        }
        return 0;
}

char *render_fleet_summary(json_t *fleet)
{
        static const char *const states[] = {"starting", "hung", "quiet", "stopping"};
        const char *state = reply_string(fleet, "state"), *ordered = reply_string(fleet, "state_text");
        const char *scaled = reply_string(fleet, "scaled_text");
        json_t *scaling = json_object_get(fleet, "scaling");
        long long outdated = reply_integer(fleet, "reload_outdated");
        char memory[FORMAT_MAX], restart[REPLY_ROLLOUT_MAX], *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        fprintf(out, "%s (%s): ", reply_string(fleet, "name"), reply_string(fleet, "framework"));
        if (strcmp(state, "running") != 0)
                fprintf(out, "%s%s%s, ", state, ordered[0] != '\0' ? " " : "", ordered);
        else
                fputs(reply_at_zero(fleet), out);
        fprintf(out, "%lld of %lld active", reply_integer(fleet, "active"), reply_integer(fleet, "target"));
        if (json_is_object(scaling))
                fprintf(out, " (scaled from %lld to %lld%s%s)", reply_integer(scaling, "min"),
                        reply_integer(scaling, "max"), scaled[0] != '\0' ? "; now " : "", scaled);
        else if (scaled[0] != '\0')
                fprintf(out, " (file: %lld; %s)", reply_integer(fleet, "configured"), scaled);
        for (size_t i = 0; i < ELEMENTSOF(states); i++)
                if (reply_integer(fleet, states[i]) > 0)
                        fprintf(out, ", %lld %s", reply_integer(fleet, states[i]), states[i]);
        if (reply_integer(fleet, "memory_bytes") > 0)
                fprintf(out, ", %s", reply_memory(fleet, memory));
        fprintf(out, ", generation %lld", reply_integer(fleet, "generation"));
        reply_rollout(json_object_get(fleet, "rollout"), restart);
        if (restart[0] != '\0')
                fprintf(out, ", %s", restart);
        if (outdated > 0 && !reply_is(json_object_get(fleet, "rollout"), "state", "running"))
                fprintf(out,
                        ", %lld with settings from before a reload. To apply the new ones, run 'sqmgrctl "
                        "restart %s'",
                        outdated, reply_string(fleet, "name"));
        (void)memstream_close(out, &text);
        return text;
}

/* The wait of the fleet starts a new line, because the text may be long. */
static void render_wait(FILE *out, json_t *fleet, const struct view *view)
{
        json_t *crash = json_object_get(fleet, "crash");

        /* While the next start is delayed, a problem has reported that already. */
        if (json_number_value(json_object_get(crash, "next_start_seconds")) <= 0)
                render_text(out, reply_string(fleet, "waits_for"), "", view);
}

/* The template that workers are forked from, or why there is none. */
static void render_template(FILE *out, json_t *template, const struct view *view)
{
        char text[REPLY_TEMPLATE_MAX];
        bool refused = reply_string(template, "refused")[0] != '\0';

        render_text(out, reply_template(template, text), refused ? RENDER_YELLOW : "", view);
}

/* The jobs that ran in workers whose memory exceeded its limit. */
static void render_culprits(FILE *out, json_t *list, const struct view *view)
{
        json_t *culprits;
        char span[FORMAT_MAX], text[1280];

        json_foreach(culprits, list) {
                snprintf(text, sizeof(text), "%s ago: %s", reply_seconds(culprits, "age_seconds", span),
                         reply_string(culprits, "text"));
                fprintf(out, "%*s", RENDER_INDENT, "");
                text_print_wrapped(out, text, RENDER_INDENT, WHY_INDENT, view->columns);
        }
}

static int render_fleet(FILE *out, json_t *fleet, const struct view *view)
{
        _cleanup_free_ char *summary = render_fleet_summary(fleet);
        char scaling[REPLY_SCALING_MAX], trial[REPLY_TRIAL_MAX];

        if (!summary)
                return output_error(CTL_FAILED, "not enough memory");
        text_print_wrapped(out, summary, 0, RENDER_INDENT, view->columns);
        render_wait(out, fleet, view);
        render_text(out, reply_trial(fleet, trial), "", view);
        render_text(out, reply_string(json_object_get(fleet, "growth"), "text"), "", view);
        render_template(out, json_object_get(fleet, "template"), view);
        render_text(out, reply_scaling(json_object_get(fleet, "scaling"), scaling), "", view);
        int r = render_workers(out, json_object_get(fleet, "workers"),
                               reply_integer(fleet, "memory_threshold_bytes"), view);
        if (!view->brief)
                render_culprits(out, json_object_get(fleet, "culprits"), view);
        return r;
}

static void render_sqmgr(FILE *out, json_t *status, const struct view *view)
{
        json_t *redis;
        char span[FORMAT_MAX], text[1024];

        const char *instance = reply_string(status, "instance");

        snprintf(text, sizeof(text), "sqmgr %.64s%s%.256s, pid %lld, up %s", reply_string(status, "version"),
                 instance[0] != '\0' ? ", instance " : "", instance, reply_integer(status, "pid"),
                 reply_seconds(status, "uptime_seconds", span));
        json_foreach_in(redis, status, "redis") {
                json_t *rtt = json_object_get(redis, "rtt_ms");
                const char *server = reply_string(redis, "server");

                if (strlen(text) >= sizeof(text) / 2)
                        break;
                if (!reply_is(redis, "state", "connected"))
                        continue;
                text_append(text, sizeof(text), "; %s %s connected%s%s", reply_server_kind(redis),
                            reply_string(redis, "url"), server[0] != '\0' ? " to " : "", server);
                if (json_is_number(rtt))
                        text_append(text, sizeof(text), " (%.1fms)", json_number_value(rtt));
        }
        text_print_wrapped(out, text, 0, RENDER_INDENT, view->columns);
}

const char *render_problem_colour(json_t *problem)
{
        return reply_is(problem, "severity", "error")     ? RENDER_RED
               : reply_is(problem, "severity", "warning") ? RENDER_YELLOW
                                                          : "";
}

char *render_problem_text(json_t *problem, bool with_remedy)
{
        const char *command = reply_string(problem, "command"), *quoted = reply_string(problem, "quoted");
        time_t since = (time_t)(reply_usec(problem, "since") / USEC_PER_SEC);
        char stamp[48] = "", *text = NULL;
        struct tm local;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (!out)
                return NULL;
        if (since > 0 && localtime_r(&since, &local))
                strftime(stamp, sizeof(stamp), " (since %Y-%m-%d %H:%M:%S)", &local);
        fprintf(out, "%s: %s%s", reply_string(problem, "severity"), reply_string(problem, "summary"), stamp);
        if (with_remedy)
                fprintf(out, ". %s%s%s%s%s", reply_string(problem, "remedy"), command[0] != '\0' ? ": " : "",
                        command, quoted[0] != '\0' ? "\n" : "", quoted);
        (void)memstream_close(out, &text);
        return text;
}

static void render_problems(FILE *out, json_t *list, const struct view *view)
{
        json_t *problem;

        json_foreach(problem, list) {
                _cleanup_free_ char *text = render_problem_text(problem, true);

                render_text(out, text ?: reply_string(problem, "summary"), render_problem_colour(problem),
                            view);
        }
}

int render_status(FILE *out, json_t *status, const struct view *view)
{
        json_t *fleet;

        render_sqmgr(out, status, view);
        render_problems(out, json_object_get(status, "problems"), view);
        json_foreach_in(fleet, status, "fleets") {
                fputc('\n', out);
                int r = render_fleet(out, fleet, view);
                if (r != CTL_DONE)
                        return r;
        }
        return CTL_DONE;
}

void render_event(FILE *out, json_t *event, const struct view *view)
{
        const char *level = reply_string(event, "level"), *colour = "";
        time_t at = (time_t)(reply_usec(event, "at") / USEC_PER_SEC);
        bool matters = strcmp(level, "info") != 0;
        char text[REPLY_QUOTING_MAX + 16], quoting[REPLY_QUOTING_MAX], stamp[32] = "";
        struct tm local;

        if (localtime_r(&at, &local))
                strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S ", &local);
        if (view->colour && matters)
                colour = strcmp(level, "error") == 0 ? RENDER_RED : RENDER_YELLOW;
        snprintf(text, sizeof(text), "%.8s%s%s", matters ? level : "", matters ? ": " : "",
                 reply_quoting(event, reply_string(event, "text"), quoting));
        int begin = (int)strlen(stamp),
            indent = view->columns - begin < EVENT_COLUMNS_MIN ? RENDER_INDENT : begin;
        fprintf(out, "%s%s", stamp, colour);
        text_print_wrapped(out, text, begin, indent, view->columns);
        fputs(colour[0] != '\0' ? RENDER_PLAIN : "", out);
}

static const struct {
        const char *key, *header; /* the last column is the time since the start */
        bool below;               /* if the table is too wide, printed below on a separate line */
} columns[] = {
        {"class", "CLASS", false},   {"jid", "JID", true},         {"queue", "QUEUE", true},
        {"worker", "WORKER", false}, {"started_at", "FOR", false},
};

#define LAST         (ELEMENTSOF(columns) - 1)
#define GAP          2
#define BELOW_INDENT 6

struct layout {
        int widths[ELEMENTSOF(columns)];
        bool below;
};

/* Jobs without a start time come last. */
static int compare_started(const void *left, const void *right)
{
        json_t *a = json_object_get(*(json_t *const *)left, "started_at");
        json_t *b = json_object_get(*(json_t *const *)right, "started_at");

        if (json_is_null(a) || json_is_null(b))
                return json_is_null(a) - json_is_null(b);
        return (json_integer_value(a) > json_integer_value(b)) -
               (json_integer_value(a) < json_integer_value(b));
}

/* job: NULL for the headers. text: for the time. */
static const char *job_cell(json_t *job, size_t column, time_t now, char text[FORMAT_MAX])
{
        json_t *started = json_object_get(job, "started_at");
        time_t at = (time_t)MAX(json_integer_value(started), 0);

        if (!job)
                return columns[column].header;
        if (column < LAST)
                return reply_string(job, columns[column].key);
        if (!json_is_integer(started))
                return "-";
        return format_duration(now > at ? (usec_t)(now - at) * USEC_PER_SEC : 0, text, FORMAT_MAX);
}

/* job: NULL for the headers. */
static void print_row(FILE *out, json_t *job, time_t now, const struct layout *layout)
{
        char span[FORMAT_MAX];

        for (size_t i = 0; i < LAST; i++)
                if (!layout->below || !columns[i].below)
                        text_print_cell(out, job_cell(job, i, now, span), layout->widths[i] + GAP);
        fprintf(out, "%s\n", job_cell(job, LAST, now, span));
        if (!job || !layout->below)
                return;
        fprintf(out, "%*s%s", BELOW_INDENT, "", reply_string(job, "jid"));
        if (reply_string(job, "queue")[0] != '\0')
                fprintf(out, ", queue %s", reply_string(job, "queue"));
        fputc('\n', out);
}

static void lay_out(json_t *const *jobs, size_t n, time_t now, const struct view *view, struct layout *ret)
{
        char span[FORMAT_MAX];
        int all = -GAP;

        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                ret->widths[i] = (int)strlen(columns[i].header);
                for (size_t k = 0; k < n; k++)
                        ret->widths[i] = MAX(ret->widths[i], text_width(job_cell(jobs[k], i, now, span)));
                all += ret->widths[i] + GAP;
        }
        ret->below = view->columns > 0 && all > view->columns;
}

int job_table_print(FILE *out, json_t *jobs, time_t now, const struct view *view)
{
        size_t n = json_array_size(jobs);
        struct layout layout;

        _cleanup_free_ json_t **sorted = calloc(n + 1, sizeof(*sorted));
        if (!sorted)
                return -ENOMEM;
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(jobs, i);
        qsort(sorted, n, sizeof(json_t *), compare_started);
        lay_out(sorted, n, now, view, &layout);
        print_row(out, NULL, now, &layout);
        for (size_t i = 0; i < n; i++)
                print_row(out, sorted[i], now, &layout);
        return 0;
}

/* Returns true if the event concerns the worker's whole fleet, or all of sqmgr. */
static bool is_context(const struct worker_report *worker_report, json_t *event)
{
        const char *fleet = reply_string(event, "fleet");
        size_t length = strlen(fleet);

        if (reply_string(event, "worker")[0] != '\0')
                return false;
        return length == 0 ||
               (strncmp(fleet, worker_report->id, length) == 0 && worker_report->id[length] == '/' &&
                !strchr(worker_report->id + length + 1, '/'));
}

/* Finds the events of the last worker with this id: ids are reused after a worker is gone. */
static void find_worker_events(struct worker_report *worker_report, json_t *events, size_t *ret_first,
                               size_t *ret_last)
{
        size_t i, beginning = SIZE_MAX, last = 0;
        bool ended = false;
        json_t *event;

        json_array_foreach(events, i, event)
        {
                const char *kind = reply_string(event, "event");

                if (!reply_is(event, "worker", worker_report->id))
                        continue;
                if (beginning == SIZE_MAX || (ended && strcmp(kind, "started") == 0)) {
                        worker_report->earlier_workers = beginning != SIZE_MAX;
                        worker_report->from_start = strcmp(kind, "started") == 0;
                        beginning = i;
                        ended = false;
                }
                ended = ended || strcmp(kind, "gone") == 0 || strcmp(kind, "crashed") == 0;
                last = i;
        }
        /* For a living worker without events of its own, report everything that is kept. */
        *ret_first = worker_report->worker && beginning == SIZE_MAX ? 0 : beginning;
        *ret_last = worker_report->worker ? SIZE_MAX : last;
}

static int collect_events(struct worker_report *worker_report, json_t *events)
{
        size_t i, first, last;
        json_t *event;

        find_worker_events(worker_report, events, &first, &last);
        worker_report->events = json_array();
        if (!worker_report->events)
                return -ENOMEM;
        json_array_foreach(events, i, event)
        {
                bool own = reply_is(event, "worker", worker_report->id);

                if (i < first || i > last || (!own && !is_context(worker_report, event)))
                        continue;
                if (json_array_append(worker_report->events, event) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static void find_worker(struct worker_report *worker_report)
{
        json_t *fleet, *worker;

        json_foreach_in(fleet, worker_report->status, "fleets") {
                json_foreach_in(worker, fleet, "workers") {
                        if (!reply_is(worker, "id", worker_report->id))
                                continue;
                        worker_report->fleet = fleet;
                        worker_report->worker = worker;
                }
        }
}

int worker_report_find(struct worker_report *ret, const char *id, json_t *status, json_t *events)
{
        *ret = (struct worker_report){.id = id, .status = status};
        find_worker(ret);
        return collect_events(ret, events);
}

static void print_state(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        json_t *worker = worker_report->worker;
        const char *reason = reply_string(worker, "reason_text"),
                   *waits_for = reply_string(worker, "waits_for");
        const char *state = reply_string(worker, "state");
        bool leaves = strcmp(state, "quiet") == 0 || strcmp(state, "stopping") == 0;
        char span[FORMAT_MAX], left[FORMAT_MAX], ready[FORMAT_MAX + 16] = "", text[1024];

        if (json_is_number(json_object_get(worker, "ready_seconds")))
                snprintf(ready, sizeof(ready), ", ready in %s",
                         reply_seconds_left(worker, "ready_seconds", left));
        snprintf(text, sizeof(text), "Now: %s for %s%s%s%s%s%s", state,
                 reply_seconds(worker, "state_seconds", span),
                 reason[0] == '\0' ? ""
                 : leaves          ? ": "
                                   : ", to be replaced: ",
                 reason, waits_for[0] != '\0' ? "; " : "", waits_for,
                 reason[0] != '\0' || waits_for[0] != '\0' ? ""
                 : reply_is_true(worker, "ready")          ? ", healthy"
                                                           : ready);
        text_print_wrapped(out, text, 0, 2, view->columns);
}

/* Prints what is known of the worker, and the source. */
static void print_evidence(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        const json_t *worker = worker_report->worker;
        long long busy = reply_integer(worker, "busy"), memory = reply_integer(worker, "memory_bytes");
        long long threshold = reply_integer(worker_report->fleet, "memory_threshold_bytes");
        const char *evidence = reply_string(worker, "evidence"),
                   *reaches = reply_string(worker, "memory_text");
        char span[FORMAT_MAX], size[FORMAT_MAX], text[256];

        snprintf(text, sizeof(text), "  process %lld, generation %lld%s, %s %s ago",
                 reply_integer(worker, "pid"), reply_integer(worker, "generation"),
                 reply_is_true(worker, "outdated") ? " (outdated)" : "",
                 reply_is_true(worker, "forked") ? "forked" : "started",
                 reply_seconds(worker, "uptime_seconds", span));
        text_print_wrapped(out, text, 0, 4, view->columns);
        if (json_is_null(json_object_get(worker, "busy")))
                snprintf(text, sizeof(text), "  running jobs: not reported by the framework");
        else if (!reply_has_heartbeat(worker))
                snprintf(text, sizeof(text), "  no heartbeat yet");
        else
                snprintf(text, sizeof(text), "  %lld job%s running%s heartbeat %s ago%s", busy, plural(busy),
                         /* A database shows jobs that began after the heartbeat, too. */
                         strcmp(evidence, "database") == 0 ? ", last" : " at the last",
                         reply_heartbeat_age(worker, span),
                         strcmp(evidence, "title") == 0  ? "; the server with the heartbeats is unreachable, "
                                                           "jobs as in the process title"
                         : strcmp(evidence, "none") == 0 ? "; no longer fresh"
                                                         : "");
        text_print_wrapped(out, text, 0, 4, view->columns);
        if (reply_is_true(worker, "remote"))
                text_print_wrapped(out, "  out of reach: signals go through Redis", 0, 4, view->columns);
        if (memory <= 0)
                return;
        snprintf(text, sizeof(text), "  memory %s", format_size((uint64_t)memory, size, FORMAT_MAX));
        if (threshold > 0)
                text_append(text, sizeof(text), ", %lld%% of memory_threshold %s",
                            reply_percent(memory, threshold),
                            format_size((uint64_t)threshold, size, FORMAT_MAX));
        if (reaches[0] != '\0')
                text_append(text, sizeof(text), "; growing, %s", reaches);
        text_print_wrapped(out, text, 0, 4, view->columns);
}

static void print_beginning(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        char text[512] = "";

        if (!worker_report->from_start)
                snprintf(text, sizeof(text),
                         "Older events are not kept. To look for them in the journal, run 'journalctl "
                         "SQMGR_WORKER=%s'",
                         worker_report->id);
        else if (worker_report->earlier_workers)
                snprintf(text, sizeof(text), "Earlier workers had the same id: run 'sqmgrctl events %s'",
                         worker_report->id);
        if (text[0] != '\0')
                text_print_wrapped(out, text, 0, 0, view->columns);
}

void worker_report_print(FILE *out, const struct worker_report *worker_report, const struct view *view)
{
        json_t *event;

        print_beginning(out, worker_report, view);
        json_foreach(event, worker_report->events)
                render_event(out, event, view);
        if (worker_report->worker) {
                print_state(out, worker_report, view);
                print_evidence(out, worker_report, view);
        } else {
                fputs("Now: gone\n", out);
        }
}
