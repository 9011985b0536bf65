/* SPDX-License-Identifier: MIT */
/* The command `jobs`: what runs now. */
#include "base/parse.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/screen.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static const struct {
        const char *key, *header;
        bool below; /* where all are too wide, it stands on a line of its own */
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

/* Jobs that do not tell when they began come last. */
static int compare_started(const void *left, const void *right)
{
        json_t *a = json_object_get(*(json_t *const *)left, "started_at");
        json_t *b = json_object_get(*(json_t *const *)right, "started_at");

        if (json_is_null(a) || json_is_null(b))
                return json_is_null(a) - json_is_null(b);
        return (json_integer_value(a) > json_integer_value(b)) -
               (json_integer_value(a) < json_integer_value(b));
}

static const char *running_for(json_t *job, char text[FORMAT_MAX])
{
        json_t *started = json_object_get(job, "started_at");
        time_t now = time(NULL), at = (time_t)json_integer_value(started);

        if (!json_is_integer(started))
                return "-";
        return format_duration(now > at ? (usec_t)(now - at) * USEC_PER_SEC : 0, text, FORMAT_MAX);
}

/* job: NULL for the headers. */
static void print_row(json_t *job, const struct layout *layout)
{
        char span[FORMAT_MAX];

        for (size_t i = 0; i < ELEMENTSOF(columns); i++) {
                if (layout->below && columns[i].below)
                        continue;
                text_print_cell(stdout, job ? reply_string(job, columns[i].key) : columns[i].header,
                                layout->widths[i] + GAP);
        }
        printf("%s\n", job ? running_for(job, span) : "FOR");
        if (job && layout->below)
                printf("%*s%s, queue %s\n", BELOW_INDENT, "", reply_string(job, "jid"),
                       reply_string(job, "queue"));
}

static void lay_out(json_t *const *jobs, size_t n, struct layout *ret)
{
        struct view view = screen_view();
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
                last = MAX(last, text_width(running_for(jobs[k], span)));
        ret->below = view.columns > 0 && all + last > view.columns;
}

static int print_jobs(json_t *jobs)
{
        size_t n = json_array_size(jobs);
        struct layout layout;

        _cleanup_free_ json_t **sorted = calloc(n, sizeof(*sorted));
        if (!sorted)
                return say_error(CTL_FAILED, "there is too little memory");
        for (size_t i = 0; i < n; i++)
                sorted[i] = json_array_get(jobs, i);
        qsort(sorted, n, sizeof(json_t *), compare_started);
        lay_out(sorted, n, &layout);
        print_row(NULL, &layout);
        for (size_t i = 0; i < n; i++)
                print_row(sorted[i], &layout);
        return CTL_DONE;
}

int ctl_jobs(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        json_t *jobs, *errors, *error;
        size_t i;
        int r = client_call(ctl, "GetJobs", json_pack("{s:o}", "fleets", client_fleets(ctl)), &reply);

        if (r != CTL_DONE)
                return r;
        jobs = json_object_get(reply, "jobs");
        errors = json_object_get(reply, "errors");
        if (ctl->json) {
                reply_print_json(reply);
                return json_array_size(errors) > 0 ? CTL_FAILED : CTL_DONE;
        }
        if (json_array_size(jobs) > 0)
                r = print_jobs(jobs);
        else if (json_array_size(errors) == 0)
                printf("no job is known to run\n");
        json_array_foreach(errors, i, error) r = say_error(CTL_FAILED, "%s", json_string_value(error));
        return r;
}
