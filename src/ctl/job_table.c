/* SPDX-License-Identifier: MIT */
/* The table of running jobs. No I/O. */
#include "base/text.h"
#include "ctl/render.h"
#include "wire/reply.h"
#include <string.h>

static const struct {
        const char *key, *header;
        bool below; /* if the table is too wide, printed below on a separate line */
} columns[] = {
        {"class", "CLASS", false},
        {"jid", "JID", true},
        {"queue", "QUEUE", true},
        {"worker", "WORKER", false},
};

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

static const char *running_for(json_t *job, time_t now, char text[FORMAT_MAX])
{
        json_t *started = json_object_get(job, "started_at");
        time_t at = (time_t)MAX(json_integer_value(started), 0);

        if (!json_is_integer(started))
                return "-";
        return format_duration(now > at ? (usec_t)(now - at) * USEC_PER_SEC : 0, text, FORMAT_MAX);
}

/* job: NULL for the headers. */
static void print_row(FILE *out, json_t *job, time_t now, const struct layout *layout)
{
        char span[FORMAT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                if (layout->below && columns[i].below)
                        continue;
                text_print_cell(out, job ? reply_string(job, columns[i].key) : columns[i].header,
                                layout->widths[i] + GAP);
        }
        fprintf(out, "%s\n", job ? running_for(job, now, span) : "FOR");
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
        int last = (int)strlen("FOR"), all = 0;

        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                ret->widths[i] = (int)strlen(columns[i].header);
                for (size_t k = 0; k < n; k++)
                        ret->widths[i] =
                                MAX(ret->widths[i], text_width(reply_string(jobs[k], columns[i].key)));
                all += ret->widths[i] + GAP;
        }
        for (size_t k = 0; k < n; k++)
                last = MAX(last, text_width(running_for(jobs[k], now, span)));
        ret->below = view->columns > 0 && all + last > view->columns;
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
