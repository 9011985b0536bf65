/* SPDX-License-Identifier: MIT */
/* Fuzzes a work list of Sidekiq, an entry per line: decoding and encoding of its jobs, and the bounds of
 * foreign JSON. */
#include "frameworks/sidekiq/job.h"
#include "fuzz.h"
#include "wire/json.h"

#define NOW         1700000000000000U
#define SLICE_BYTES 64

#define FLAGS (JSON_DECODE_INT_AS_REAL | JSON_ALLOW_NUL)

static json_t *load(const char *text, size_t len)
{
        return json_loadb(text, len, FLAGS, NULL);
}

struct extent {
        size_t values, depth;
};

/* Adds the values of the tree to extent. above: how deep value is nested. */
static void measure(json_t *value, size_t above, struct extent *extent)
{
        size_t depth = above + (json_is_array(value) || json_is_object(value)), i;
        const char *name;
        json_t *each;

        extent->values++;
        extent->depth = MAX(extent->depth, depth);
        json_array_foreach(value, i, each)
        {
                measure(each, depth, extent);
        }
        json_object_foreach(value, name, each)
        {
                measure(each, depth, extent);
        }
}

/* Checks that a loaded text is within its bounds, and that wide bounds refuse nothing that jansson accepts.
 */
static void check_bounds(const char *text, size_t len)
{
        static const struct json_bounds narrow = {.bytes = 64, .values = 2, .depth = 2},
                                        wide = {.bytes = SIZE_MAX, .values = SIZE_MAX, .depth = SIZE_MAX};
        _cleanup_json_ json_t *bounded = NULL, *unbounded = NULL, *all = load(text, len);
        struct extent extent = {0};
        int r = json_load(&narrow, text, len, FLAGS, &bounded);

        fuzz_check((r == 0) == !!bounded && (r != -EINVAL || !all));
        if (bounded) {
                measure(bounded, 0, &extent);
                fuzz_check(len <= narrow.bytes && extent.depth <= narrow.depth &&
                           extent.values <= narrow.values && json_equal(bounded, all));
        }
        r = json_load(&wide, text, len, FLAGS, &unbounded);
        fuzz_check(r == (all ? 0 : -EINVAL));
}

/* Checks that the text cut out of an entry is its payload. */
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

                check_bounds(entry.text, entry.len);
                fuzz_check(job_list_add(&list, n % 2 == 1, &thread, &entry) == 0);
                (void)sidekiq_job_head(entry.text, entry.len, &enqueued_at, class);
                field_free(&entry);
        }
        while ((r = job_list_decode(&list, sidekiq_job_decode, &bytes)) > 0)
                bytes = SLICE_BYTES;
        fuzz_check(r == 0 && list.n_jobs + job_list_unknown(&list) == n);
        for (size_t i = 0; i < list.n_jobs; i++) {
                fuzz_check(list.jobs[i].entry_len <= JOB_ENTRY_MAX);
                check_job(&list.jobs[i]);
        }
        fuzz_check(job_list_oldest(&list, NOW) <= NOW);
        job_list_clear(&list);
        return 0;
}
