/* SPDX-License-Identifier: MIT */
/* Reads the jobs that processes run for sqmgr. Between slices of their decoding other queries are answered.
 */
#include "frameworks/redis_running_jobs.h"
#include "reader/redis_ask.h"
#include <stdio.h>

static void on_jobs(struct job_list *lists, const struct error_report *error, void *userdata)
{
        struct ask *ask = userdata;
        const struct query *query = ask_query(ask);

        ask->answer.jobs = (struct answer_jobs){
                .lists = lists, .n = query->n_texts, .with_entries = query->numbers[0] != 0};
        if (error)
                ask->answer.error = *error;
        ask_done(ask);
}

static void cancel(struct ask *ask)
{
        redis_running_jobs_free(ask->work);
}

void ask_jobs(struct ask *ask)
{
        const struct running_jobs_format *format = ask_format(ask)->running_jobs;
        const struct query *query = ask_query(ask);
        _cleanup_free_ const char **identities = calloc(query->n_texts + 1, sizeof(*identities));
        struct redis_running_jobs *running_jobs;

        if (!format || query->n_texts == 0) {
                ask_fail(ask, ANSWER_REFUSED, "the framework has no lists of jobs");
                return;
        }
        for (size_t i = 0; identities && i < query->n_texts; i++)
                identities[i] = query_text(query, i);
        const struct running_jobs_request request = {
                .event = ask_event(ask),
                .redis = ask_redis(ask),
                .namespace = ask_namespace(ask),
                .identities = identities,
                .n = query->n_texts,
        };
        int r = identities ? redis_running_jobs_read(format, &request, on_jobs, ask, &running_jobs) : -ENOMEM;
        if (r < 0) {
                ask_fail_errno(ask, r);
                return;
        }
        ask->work = running_jobs;
        ask_keep(ask, cancel);
}
