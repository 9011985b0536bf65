/* SPDX-License-Identifier: MIT */
/* The command `jobs`: what runs now. */
#include "base/parse.h"
#include "ctl/ctl.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const columns[] = {"class", "jid", "queue", "worker"};
static const char *const headers[] = {"CLASS", "JID", "QUEUE", "WORKER"};
static_assert(ELEMENTSOF(headers) == ELEMENTSOF(columns), "a header for each column");

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

static void print_job(json_t *job, const int *widths)
{
        json_t *started = json_object_get(job, "started_at");
        time_t now = time(NULL), at = (time_t)json_integer_value(started);
        char span[FORMAT_MAX] = "-";

        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                printf("%-*s  ", widths[i], ctl_string(job, columns[i]));
        if (json_is_integer(started))
                format_duration(now > at ? (usec_t)(now - at) * USEC_PER_SEC : 0, span, sizeof(span));
        printf("%s\n", span);
}

static int print_jobs(json_t *jobs)
{
        size_t n = json_array_size(jobs);
        int widths[ELEMENTSOF(columns)];

        if (n == 0) {
                printf("no job is running\n");
                return CTL_DONE;
        }
        _cleanup_free_ json_t **sorted = calloc(n, sizeof(*sorted));
        if (!sorted)
                return ctl_error(CTL_FAILED, "there is too little memory");
        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                widths[i] = (int)strlen(headers[i]);
        for (size_t i = 0; i < n; i++) {
                sorted[i] = json_array_get(jobs, i);
                for (size_t k = 0; k < ELEMENTSOF(columns); k++)
                        widths[k] = MAX(widths[k], (int)strlen(ctl_string(sorted[i], columns[k])));
        }
        qsort(sorted, n, sizeof(json_t *), compare_started);
        for (size_t i = 0; i < ELEMENTSOF(columns); i++)
                printf("%-*s  ", widths[i], headers[i]);
        printf("FOR\n");
        for (size_t i = 0; i < n; i++)
                print_job(sorted[i], widths);
        return CTL_DONE;
}

int command_jobs(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = client_call(ctl, "GetJobs", json_pack("{s:o}", "fleets", ctl_fleets(ctl)), &reply);

        if (r != CTL_DONE)
                return r;
        if (ctl->json) {
                ctl_print_json(reply);
                return CTL_DONE;
        }
        return print_jobs(json_object_get(reply, "jobs"));
}
