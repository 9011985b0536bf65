/* SPDX-License-Identifier: MIT */
/* Shows rollouts over many hosts: the progress of each, and a line for each host. No I/O, no clock. */
#include "base/argv.h"
#include "base/memstream.h"
#include "base/text.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include "wire/reply_hosts.h"
#include <string.h>

/* With fewer columns left, the last column moves to lines of its own. */
#define WHY_COLUMNS_MIN 24
#define WHY_INDENT      6
/* Bars are shorter on a narrow terminal. */
#define BAR_COLUMNS       30
#define BAR_COLUMNS_SMALL 10
#define BAR_WIDE          72
/* On a terminal longer names are cut off. */
#define NAME_COLUMNS_MAX 40
/* On a narrower terminal the count of omitted hosts may need two lines. */
#define FOOT_COLUMNS 64

#define STATE_MAX  64
#define NAME_BYTES 640

static const char *const colours[] = {
        [REPLY_HOST_FAILED] = RENDER_RED,   [REPLY_HOST_LOST] = RENDER_RED,
        [REPLY_HOST_ROLLING] = RENDER_CYAN, [REPLY_HOST_WAITING] = "",
        [REPLY_HOST_DONE] = RENDER_GREEN,
};
static_assert(ELEMENTSOF(colours) == _REPLY_HOST_MAX, "a colour for each state");

struct host_row {
        enum reply_host_state state;
        char name[NAME_BYTES];
        char reported[STATE_MAX];
        char why[REPLY_HOST_WHY_MAX + 16];
        size_t lines; /* lines of output; SIZE_MAX if memory was short */
};

struct table {
        struct host_row *rows;
        size_t n;
        int name_columns, reported_columns;
        bool brief; /* prints one line per host; longer text is cut off */
};

static void fill_reported(struct host_row *row, const json_t *rollout, const json_t *host)
{
        const char *name = reply_host_state_name(row->state);
        char span[FORMAT_MAX];

        if (!reply_hosts_is_begun(rollout)) {
                snprintf(row->reported, sizeof(row->reported), "seen %s ago",
                         reply_seconds(host, "seen_seconds", span));
                return;
        }
        reply_seconds(host, "seconds", span);
        switch (row->state) {
        case REPLY_HOST_WAITING:
                snprintf(row->reported, sizeof(row->reported), "%s", name);
                return;
        case REPLY_HOST_DONE:
        case REPLY_HOST_FAILED:
                snprintf(row->reported, sizeof(row->reported), "%s %s ago", name, span);
                return;
        default:
                snprintf(row->reported, sizeof(row->reported), "%s %s", name, span);
        }
}

/* The bar contains no blank, so text wrapping does not break it. */
static const char *share_bar(char text[static RENDER_BAR_MAX], double share, int columns)
{
        return render_bar(text, MIN((int)(share * columns), columns), columns);
}

/* The host's name without the common domain, cut off to fit. */
static void fill_name(struct host_row *row, const char *domain, const json_t *host, const struct view *view)
{
        const char *name = reply_string(host, "host"), *here = reply_is_true(host, "here") ? " (here)" : "";
        size_t length = strnlen(name, NAME_BYTES / 2) - strlen(domain), fitting = length;

        if (view->columns > 0)
                fitting = text_fitting(name, length, NAME_COLUMNS_MAX);
        snprintf(row->name, sizeof(row->name), "%.*s%s%s", (int)fitting, name, fitting < length ? "..." : "",
                 here);
}

static void fill_row(struct host_row *row, const json_t *rollout, const json_t *host, const struct view *view)
{
        char why[REPLY_HOST_WHY_MAX], bar[RENDER_BAR_MAX];
        unsigned n, of;

        row->state = reply_host_state(host);
        fill_reported(row, rollout, host);
        reply_host_why(rollout, host, why);
        if (row->state == REPLY_HOST_ROLLING && view->columns >= BAR_WIDE &&
            reply_host_progress(host, &n, &of)) {
                snprintf(row->why, sizeof(row->why), "%s %s",
                         share_bar(bar, (double)n / of, BAR_COLUMNS_SMALL), why);
        } else {
                snprintf(row->why, sizeof(row->why), "%s", why);
        }
}

/* The domain shared by all hosts, with its leading dot. Returns "" for a single host or if the domains
 * differ. */
static const char *common_domain(const json_t *const *hosts, size_t n)
{
        const char *domain = n > 1 ? strchr(reply_string(hosts[0], "host"), '.') : NULL;

        for (size_t i = 0; domain && i < n; i++) {
                const char *other = reply_string(hosts[i], "host");

                other += strcspn(other, ".");
                if (strlen(domain) > NAME_BYTES / 4 || strcmp(other, domain) != 0)
                        domain = NULL;
        }
        return domain ?: "";
}

static void print_why(FILE *out, const char *why, int used, bool brief, const struct view *view)
{
        if (brief)
                fprintf(out, "%.*s\n", (int)text_fitting(why, strlen(why), view->columns - used), why);
        else
                text_print_wrapped(out, why, used, used, view->columns);
}

static void print_row(FILE *out, const struct table *table, const struct host_row *row,
                      const struct view *view)
{
        int end = RENDER_INDENT + table->name_columns + 2 + table->reported_columns + 2;
        bool beside = view->columns == 0 || view->columns - end >= WHY_COLUMNS_MIN;
        const char *colour = view->colour ? colours[row->state] : "";

        fprintf(out, "%*s", RENDER_INDENT, "");
        text_print_cell(out, row->name, table->name_columns);
        fprintf(out, "  %s%s%s", colour, row->reported, colour[0] != '\0' ? RENDER_PLAIN : "");
        if (row->why[0] == '\0' || (table->brief && view->columns <= end)) {
                fputc('\n', out);
        } else if (beside || table->brief) {
                fprintf(out, "%*s", table->reported_columns - text_width(row->reported) + 2, "");
                print_why(out, row->why, end, table->brief, view);
        } else {
                fprintf(out, "\n%*s", WHY_INDENT, "");
                print_why(out, row->why, WHY_INDENT, false, view);
        }
}

static size_t count_row(const struct table *table, const struct host_row *row, const struct view *view)
{
        _cleanup_free_ char *text = NULL;
        size_t size;
        FILE *out = open_memstream(&text, &size);

        if (out)
                print_row(out, table, row, view);
        return memstream_close(out, &text) == 0 ? (size_t)screen_count_lines(text) : SIZE_MAX;
}

/* Shares the lines among host states. Failed, lost and rolling hosts get all the lines they want. Up to a
 * third of the remaining lines is reserved for hosts that are done. */
static void share_lines(const size_t *wanted, size_t lines_max, size_t *ret)
{
        for (int state = 0; state < REPLY_HOST_WAITING; state++) {
                ret[state] = MIN(wanted[state], lines_max);
                lines_max -= ret[state];
        }
        ret[REPLY_HOST_WAITING] =
                MIN(wanted[REPLY_HOST_WAITING], lines_max - MIN(wanted[REPLY_HOST_DONE], lines_max / 3));
        ret[REPLY_HOST_DONE] = MIN(wanted[REPLY_HOST_DONE], lines_max - ret[REPLY_HOST_WAITING]);
}

static void print_left_out(FILE *out, const size_t *left_out, const struct view *view)
{
        char text[128] = "... and";
        const char *between = " ";

        for (int state = 0; state < _REPLY_HOST_MAX; state++) {
                if (left_out[state] == 0)
                        continue;
                text_append(text, sizeof(text), "%s%zu more %s", between, left_out[state],
                            reply_host_state_name((enum reply_host_state)state));
                between = ", ";
        }
        render_text(out, text, "", view);
}

static void print_rows(FILE *out, const struct table *table, const size_t *shares, const struct view *view)
{
        size_t left[_REPLY_HOST_MAX], left_out[_REPLY_HOST_MAX] = {0};
        bool any = false;

        memcpy(left, shares, sizeof(left));
        for (size_t i = 0; i < table->n; i++) {
                const struct host_row *row = &table->rows[i];

                if (row->lines <= left[row->state]) {
                        left[row->state] -= row->lines;
                        print_row(out, table, row, view);
                } else {
                        left[row->state] = 0;
                        left_out[row->state]++;
                        any = true;
                }
        }
        if (any)
                print_left_out(out, left_out, view);
}

/* Measures the rows. Sets *ret_wanted to the lines of each state. Returns the sum. */
static size_t measure(const struct table *table, size_t *ret_wanted, const struct view *view)
{
        size_t all = 0;

        memset(ret_wanted, 0, _REPLY_HOST_MAX * sizeof(*ret_wanted));
        for (size_t i = 0; i < table->n; i++) {
                struct host_row *row = &table->rows[i];

                row->lines = count_row(table, row, view);
                ret_wanted[row->state] += row->lines;
                all += row->lines;
        }
        return all;
}

/* If the full rows do not fit, prints one line per host. */
static void fit(FILE *out, struct table *table, size_t lines_max, const struct view *view)
{
        size_t wanted[_REPLY_HOST_MAX], shares[_REPLY_HOST_MAX];
        size_t foot = view->columns > 0 && view->columns < FOOT_COLUMNS ? 2 : 1;
        size_t all = measure(table, wanted, view);

        if (all > lines_max) {
                table->brief = true;
                all = measure(table, wanted, view);
        }
        if (all > lines_max)
                share_lines(wanted, lines_max > foot ? lines_max - foot : 1, shares);
        else
                memcpy(shares, wanted, sizeof(shares));
        print_rows(out, table, shares, view);
}

static int print_table(FILE *out, const json_t *rollout, size_t lines_max, const struct view *view)
{
        struct table table = {.name_columns = (int)strlen("HOST"), .reported_columns = (int)strlen("STATE")};
        _cleanup_free_ const json_t **hosts = reply_hosts_sort(rollout, &table.n);
        _cleanup_free_ struct host_row *rows = hosts ? calloc(table.n + 1, sizeof(*rows)) : NULL;

        if (!rows)
                return output_error(CTL_FAILED, "not enough memory");
        if (table.n == 0)
                return CTL_DONE;
        table.rows = rows;
        const char *domain = view->columns > 0 ? common_domain(hosts, table.n) : "";
        for (size_t i = 0; i < table.n; i++) {
                fill_name(&rows[i], domain, hosts[i], view);
                fill_row(&rows[i], rollout, hosts[i], view);
                table.name_columns = MAX(table.name_columns, text_width(rows[i].name));
                table.reported_columns = MAX(table.reported_columns, text_width(rows[i].reported));
        }
        fprintf(out, "%*s", RENDER_INDENT, "");
        text_print_cell(out, "HOST", table.name_columns);
        fputs("  STATE\n", out);
        fit(out, &table, lines_max > 1 ? lines_max - 1 : 1, view);
        return CTL_DONE;
}

static void print_bar(FILE *out, const json_t *rollout, const struct view *view)
{
        struct reply_hosts count = reply_hosts_count(rollout);
        int columns = view->columns == 0 || view->columns >= BAR_WIDE ? BAR_COLUMNS : BAR_COLUMNS_SMALL;
        char bar[RENDER_BAR_MAX], text[REPLY_HOSTS_MAX], percent[16];

        if (count.all == 0)
                return;
        share_bar(bar, count.share, columns);
        snprintf(percent, sizeof(percent), " %3d%%  ", (int)(count.share * 100));
        fprintf(out, "%*s%s%s%s%s", RENDER_INDENT, "",
                !view->colour                          ? ""
                : reply_is(rollout, "state", "halted") ? RENDER_RED
                                                       : RENDER_GREEN,
                bar, view->colour ? RENDER_PLAIN : "", percent);
        text_print_wrapped(out, reply_hosts_progress(rollout, text),
                           RENDER_INDENT + text_width(bar) + text_width(percent), RENDER_INDENT,
                           view->columns);
}

/* Prints how to fix what is wrong. */
static void print_remedies(FILE *out, const json_t *rollout, const struct view *view)
{
        const char *fleet = reply_string(rollout, "fleet");
        const json_t *missing = reply_hosts_missing(rollout);
        char text[1024];

        if (missing) {
                const char *host = reply_string(missing, "host");

                snprintf(text, sizeof(text),
                         "host %.256s is missing. Start its sqmgr; if the host was removed permanently, run "
                         "'sqmgrctl rollout forget %.256s %.256s'",
                         host, fleet, argv_is_plain(host) ? host : "HOST");
                render_text(out, text, RENDER_YELLOW, view);
        }
        if (!reply_is(rollout, "state", "halted"))
                return;
        snprintf(text, sizeof(text),
                 "Fix the release, then run 'sqmgrctl restart %.256s --everywhere'; to end the rollout, run "
                 "'sqmgrctl abort %.256s --everywhere'",
                 fleet, fleet);
        render_text(out, text, "", view);
}

static void print_head(FILE *out, const json_t *rollout, const struct view *view)
{
        const char *error = reply_string(rollout, "error"), *trouble = reply_string(rollout, "trouble"),
                   *waits_for = reply_string(rollout, "waits_for");
        char title[REPLY_HOSTS_MAX], more[REPLY_HOSTS_MAX], text[2 * REPLY_HOSTS_MAX + 320],
                quoting[REPLY_QUOTING_MAX];

        reply_hosts_details(rollout, more);
        snprintf(text, sizeof(text), "%.256s: %s%s%s", reply_string(rollout, "fleet"),
                 reply_hosts_title(rollout, title), more[0] != '\0' ? ", " : "", more);
        text_print_wrapped(out, text, 0, RENDER_INDENT, view->columns);
        if (reply_hosts_is_begun(rollout))
                print_bar(out, rollout, view);
        render_text(out, error, RENDER_RED, view);
        if (trouble[0] != '\0') {
                snprintf(text, sizeof(text), "this host: %.1200s", trouble);
                render_text(out, reply_quoting(rollout, text, quoting), RENDER_YELLOW, view);
        }
        render_text(out, waits_for, "", view);
        render_text(out, reply_hosts_left(rollout, more), RENDER_YELLOW, view);
        print_remedies(out, rollout, view);
}

static int render_one(FILE *out, const json_t *rollout, int rows, const struct view *view)
{
        _cleanup_free_ char *head = NULL;
        size_t size;
        FILE *memory = open_memstream(&head, &size);

        if (memory)
                print_head(memory, rollout, view);
        if (memstream_close(memory, &head) < 0)
                return output_error(CTL_FAILED, "not enough memory");
        fputs(head, out);
        return print_table(out, rollout,
                           view->rows > 0 ? (size_t)MAX(rows - screen_count_lines(head), 1) : SIZE_MAX, view);
}

int hosts_render(FILE *out, json_t *reply, const struct view *view)
{
        json_t *list = json_object_get(reply, "rollouts"), *rollout;
        size_t i;
        int n = (int)json_array_size(list), code = CTL_DONE;
        /* The cursor needs a line of its own, and so does the separator between two groups. */
        int rows = n > 0 ? (view->rows - n) / n : 0;

        json_array_foreach(list, i, rollout)
        {
                if (i > 0)
                        fputc('\n', out);
                int r = render_one(out, rollout, rows, view);
                code = MAX(code, r);
        }
        return code;
}
