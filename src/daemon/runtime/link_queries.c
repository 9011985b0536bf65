/* SPDX-License-Identifier: MIT */
/* Queries to the server of a link that several parts of sqmgr need. */
#include "daemon/runtime/link_queries.h"
#include "model/queues.h"
#include <string.h>

int link_read_queues(const struct link *link, const char *names, bool due, reader_answer_fn callback,
                     void *userdata)
{
        const struct field text = {.text = names, .len = names ? queue_names_length(names) : 0};
        const struct query query = {
                .kind = QUERY_QUEUES, .numbers = {due}, .texts = &text, .n_texts = names ? 1 : 0};

        return reader_ask(link->reader, &query, callback, userdata);
}

struct running_jobs {
        struct reader *reader;
        size_t n;
        running_jobs_fn done;
        void *userdata;
};

static void on_jobs(struct answer *answer, void *userdata)
{
        _cleanup_free_ struct running_jobs *running_jobs = userdata;
        bool is_complete = answer->status == ANSWER_OK && answer->jobs.n == running_jobs->n;
        static const struct error_report unanswered = {.text = "the server did not answer this query"};
        const struct error_report *error = is_complete ? NULL : &unanswered;

        running_jobs->done(is_complete ? answer->jobs.lists : NULL,
                           answer->error.text[0] != '\0' ? &answer->error : error, running_jobs->userdata);
}

int link_read_running_jobs(const struct link *link, const struct running_jobs_request *request,
                           running_jobs_fn done, void *userdata, struct running_jobs **ret)
{
        _cleanup_free_ struct field *texts = calloc(request->n, sizeof(*texts));
        _cleanup_free_ struct running_jobs *running_jobs = malloc(sizeof(*running_jobs));
        const struct query query = {.kind = QUERY_JOBS,
                                    .numbers = {request->with_entries},
                                    .texts = texts,
                                    .n_texts = request->n};

        if (!texts || !running_jobs)
                return -ENOMEM;
        for (size_t i = 0; i < request->n; i++)
                texts[i] = (struct field)QUERY_TEXT(request->identities[i]);
        *running_jobs = (struct running_jobs){
                .reader = link->reader, .n = request->n, .done = done, .userdata = userdata};
        int r = reader_ask(link->reader, &query, on_jobs, running_jobs);
        if (r >= 0)
                *ret = TAKE_PTR(running_jobs);
        return r;
}

struct running_jobs *running_jobs_cancel(struct running_jobs *running_jobs)
{
        if (!running_jobs)
                return NULL;
        reader_forget(running_jobs->reader, running_jobs);
        free(running_jobs);
        return NULL;
}
