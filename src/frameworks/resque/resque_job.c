/* SPDX-License-Identifier: MIT */
/* Decodes jobs as Resque writes them; see the header. */
#include "frameworks/resque/resque_job.h"
#include "frameworks/decode.h"
#include "model/job.h"
#include "wire/json.h"

/* What ActiveJob's adapter says of the job that it wraps; NULL: it is none of its. */
static const json_t *wrapped_of(const json_t *payload)
{
        const json_t *inner = json_array_get(json_object_get(payload, "args"), 0);

        return json_is_string(json_object_get(inner, "job_class")) &&
                               json_is_string(json_object_get(inner, "job_id"))
                       ? inner
                       : NULL;
}

static int take_job(const json_t *root, struct job *job)
{
        const json_t *payload = json_object_get(root, "payload"), *wrapped = wrapped_of(payload);
        const json_t *run_at = json_object_get(root, "run_at");
        const struct field at = {.text = json_string_value(run_at), .len = json_string_length(run_at)};

        (void)decode_iso8601(&at, &job->started_usec);
        int r = json_take_text(root, "queue", &job->queue);
        if (r >= 0)
                r = json_take_text(wrapped ?: payload, wrapped ? "job_class" : "class", &job->class);
        if (r >= 0 && wrapped)
                r = json_take_text(wrapped, "job_id", &job->jid);
        if (r >= 0 && !wrapped)
                r = (job->jid = strdup("-")) ? 0 : -ENOMEM;
        return r;
}

int resque_job_decode(struct job *job)
{
        json_t *root = NULL;

        /* Numbers in the arguments may be larger than ours, and strings may hold what C cannot. */
        int r = json_load(job->entry, job->entry_len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &root);
        if (r >= 0)
                r = take_job(root, job);
        json_decref(root);
        return r;
}
