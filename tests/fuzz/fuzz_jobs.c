/* SPDX-License-Identifier: MIT */
/* A work list of Sidekiq's, an entry on each line, and what is made of its jobs. */
#include "frameworks/sidekiq/job.h"
#include "fuzz.h"
#include "wire/json.h"

#define NOW         1700000000000000U
#define SLICE_BYTES 64

static json_t *load(const char *text, size_t len)
{
        json_t *value = NULL;

        (void)json_load(text, len, JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL, &value);
        return value;
}

/* What was cut out of an entry is the payload that the entry has. */
static void check_payload(const struct job *job)
{
        _cleanup_json_ json_t *entry = load(job->entry, job->entry_len);
        _cleanup_json_ json_t *payload = load(job->payload, strlen(job->payload));
        json_t *reported = json_object_get(entry, "payload");

        fuzz_check(json_is_object(payload));
        if (json_is_object(reported))
                fuzz_check(json_equal(reported, payload));
        else
                fuzz_check(json_is_string(reported) &&
                           strcmp(json_string_value(reported), job->payload) == 0);
}

static void check_job(const struct job *job)
{
        usec_t age;

        fuzz_check(job->payload && job->queue && job->class && job->jid);
        check_payload(job);
        char *dead = sidekiq_job_dead_payload(job, "A::B", "why \"\n", NOW);
        fuzz_check(dead);
        _cleanup_json_ json_t *object = load(dead, strlen(dead));
        fuzz_check(json_is_object(object));
        fuzz_check(strcmp(json_string_value(json_object_get(object, "error_class")), "A::B") == 0);
        free(dead);
        (void)job_is_long(job, "1s Mail=2s", NOW, &age);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
        static const struct field thread = {.text = "oz3i", .len = 4};
        struct input input = {data, size};
        struct job_list list = {0};
        size_t n = 0, bytes = SLICE_BYTES;
        char class[JOB_CLASS_MAX];
        uint64_t enqueued_at;
        int r;

        for (; input.left > 0; n++) {
                struct field entry = input_line(&input);

                fuzz_check(job_list_add(&list, n % 2 == 1, &thread, &entry) == 0);
                (void)sidekiq_job_head(entry.text, entry.len, &enqueued_at, class);
                field_free(&entry);
        }
        while ((r = job_list_decode(&list, sidekiq_job_decode, &bytes)) > 0)
                bytes = SLICE_BYTES;
        fuzz_check(r == 0 && list.n_jobs + list.n_unreadable == n);
        for (size_t i = 0; i < list.n_jobs; i++)
                check_job(&list.jobs[i]);
        fuzz_check(job_list_oldest(&list, NOW) <= NOW);
        job_list_clear(&list);
        return 0;
}
