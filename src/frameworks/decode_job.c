/* SPDX-License-Identifier: MIT */
/* Loads jobs, which are JSON. */
#include "frameworks/decode_job.h"
#include "base/macro.h"
#include "model/job.h"
#include "wire/json.h"

int decode_job(const char *text, size_t len, json_t **ret)
{
        /* Sidekiq and Resque refuse arguments nested deeper than 100 themselves. */
        static const struct json_bounds bounds = {
                .bytes = JOB_ENTRY_MAX, .values = JOB_ENTRY_MAX / 2, .depth = 128};
        _cleanup_json_ json_t *job = NULL;

        /* Numbers in the arguments may exceed C integers, and strings may contain NULs. */
        int r = json_load(&bounds, text, len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &job);
        if (r < 0)
                return r;
        if (!json_is_object(job))
                return -EINVAL;
        *ret = TAKE_PTR(job);
        return 0;
}
