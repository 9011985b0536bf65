/* SPDX-License-Identifier: MIT */
/* Are the jobs in Sidekiq's work lists read as each version writes them, and garbage left out? */
#include "frameworks/sidekiq/job.h"
#include "unit.h"
#include <jansson.h>

static struct job_list list;

static void teardown(void)
{
        job_list_clear(&list);
}

static void add_undecoded(const char *entry)
{
        struct field thread = {.text = "ouz", .len = 3};
        struct field value = {.text = entry, .len = strlen(entry)};

        ck_assert_int_eq(job_list_add(&list, false, &thread, &value), 0);
}

static int decode_all(void)
{
        size_t bytes = SIZE_MAX;

        return job_list_decode(&list, sidekiq_job_decode, &bytes);
}

/* Returns how many of it cannot be read. */
static int add(const char *entry)
{
        size_t before = list.n_unreadable;

        add_undecoded(entry);
        ck_assert_int_eq(decode_all(), 0);
        return (int)(list.n_unreadable - before);
}

#define PAYLOAD                                                                                              \
        "{\\\"class\\\":\\\"Sleep\\\",\\\"jid\\\":\\\"8d42\\\",\\\"args\\\":[1.0,"                           \
        "123456789012345678901234567890]}"

TEST(the_payload_is_text_from_6_0_2_on)
{
        ck_assert_int_eq(add("{\"queue\":\"low\",\"payload\":\"" PAYLOAD "\",\"run_at\":1795252687}"), 0);
        const struct job *job = &list.jobs[0];
        ck_assert_str_eq(job->thread, "ouz");
        ck_assert_str_eq(job->queue, "low");
        ck_assert_str_eq(job->class, "Sleep");
        ck_assert_str_eq(job->jid, "8d42");
        ck_assert_uint_eq(job->started_usec, 1795252687 * USEC_PER_SEC);
        /* As it stood in the queue, to the byte. */
        ck_assert_str_eq(
                job->payload,
                "{\"class\":\"Sleep\",\"jid\":\"8d42\",\"args\":[1.0,123456789012345678901234567890]}");
        ck_assert_uint_eq(job->entry_len, strlen(job->entry));
}

/* Each entry, and what the job in it must be, byte for byte. */
static const struct {
        const char *entry, *payload, *class;
        uint64_t started_usec;
} objects[] = {
        {"{\"queue\":\"q\",\"payload\":{\"jid\":\"1\",\"class\":\"A\",\"args\":[12345678901234567890,1,1.10,"
         "1e3,"
         "0.1]},\"run_at\":1}",
         "{\"jid\":\"1\",\"class\":\"A\",\"args\":[12345678901234567890,1,1.10,1e3,0.1]}", "A", 1000000},
        {"{\"payload\" : "
         "{\"class\":\"A\",\"jid\":\"1\",\"x\":{\"payload\":[{\"payload\":1}]},\"t\":\"\\\"},{\\\\\"} "
         ", \"queue\":\"q\"}",
         "{\"class\":\"A\",\"jid\":\"1\",\"x\":{\"payload\":[{\"payload\":1}]},\"t\":\"\\\"},{\\\\\"}", "A",
         0},
        {"{\"queue\":\"payload\",\"a\":[\"payload\",{\"payload\":2}],\"payload\":{\"class\":\"B\",\"jid\":"
         "\"2\"}}",
         "{\"class\":\"B\",\"jid\":\"2\"}", "B", 0},
        {"{\"payload\":7,\"queue\":\"q\",\"payload\":\n{ \"class\":\"A\", \"jid\":\"1\" }\n}",
         "{ \"class\":\"A\", \"jid\":\"1\" }", "A", 0},
        /* Up to 6.0.1. */
        {"{\"queue\":\"default\",\"payload\":{\"class\":\"Sleep\",\"jid\":\"1\",\"args\":[]},\"run_at\":1}",
         "{\"class\":\"Sleep\",\"jid\":\"1\",\"args\":[]}", "Sleep", 1000000},
        /* A job of Active Job has its own class. */
        {"{\"queue\":\"q\",\"payload\":{\"class\":\"ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper\","
         "\"wrapped\":\"Invoice\",\"jid\":\"1\"}}",
         "{\"class\":\"ActiveJob::QueueAdapters::SidekiqAdapter::JobWrapper\",\"wrapped\":\"Invoice\","
         "\"jid\":\"1\"}",
         "Invoice", 0},
        /* Milliseconds, not seconds. */
        {"{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"},\"run_at\":1795252687123}",
         "{\"class\":\"A\",\"jid\":\"1\"}", "A", 1795252687123000},
        /* As nothing writes it: not found, and so unreadable. */
        {"{\"queue\":\"q\",\"p\\u0061yload\":{\"class\":\"A\",\"jid\":\"1\"}}", NULL, NULL, 0},
        {"{\"queue\":\"q\",\"payload\":[1],\"p\\u0061yload\":{\"class\":\"A\",\"jid\":\"1\"}}", NULL, NULL,
         0},
};

TEST_LOOP(a_payload_that_is_an_object_stays_as_it_was_written, ELEMENTSOF(objects))
{
        ck_assert_int_eq(add(objects[_i].entry), objects[_i].payload ? 0 : 1);
        ck_assert_uint_eq(list.n_jobs, objects[_i].payload ? 1 : 0);
        if (objects[_i].payload) {
                ck_assert_str_eq(list.jobs[0].payload, objects[_i].payload);
                ck_assert_str_eq(list.jobs[0].class, objects[_i].class);
                ck_assert_uint_eq(list.jobs[0].started_usec, objects[_i].started_usec);
        }
}

TEST(an_entry_of_8_1_7)
{
        ck_assert_int_eq(
                add("{\"queue\":\"default\",\"payload\":\"{\\\"retry\\\":false,\\\"queue\\\":\\\"default\\\","
                    "\\\"args\\\":[\\\"/tmp/release\\\"],\\\"class\\\":\\\"Hold\\\","
                    "\\\"jid\\\":\\\"42916aa7347dfb2a2be4619b\\\",\\\"created_at\\\":1795261815371,"
                    "\\\"enqueued_at\\\":1795261815371}\",\"run_at\":1795261815}"),
                0);
        ck_assert_str_eq(list.jobs[0].class, "Hold");
        ck_assert_str_eq(list.jobs[0].jid, "42916aa7347dfb2a2be4619b");
        ck_assert_uint_eq(list.jobs[0].started_usec, 1795261815 * USEC_PER_SEC);
        /* A whole number would be taken for milliseconds. */
        char *text =
                sidekiq_job_dead_payload(&list.jobs[0], "WorkerKilled", "why", 1795261835 * USEC_PER_SEC);
        ck_assert_ptr_nonnull(strstr(text, ",\"enqueued_at\":1795261815371,"));
        ck_assert_ptr_nonnull(strstr(text, ",\"failed_at\":1795261835.0}"));
        free(text);
}

TEST(a_job_is_long_by_the_limit_of_its_class)
{
        usec_t runs = 0;

        ck_assert_int_eq(
                add("{\"queue\":\"q\",\"payload\":{\"class\":\"A::B\",\"jid\":\"1\"},\"run_at\":1000}"), 0);
        const struct job *job = &list.jobs[0];
        ck_assert(!job_is_long(job, NULL, 5000 * USEC_PER_SEC, &runs));
        ck_assert(!job_is_long(job, "none", 5000 * USEC_PER_SEC, &runs));
        ck_assert(!job_is_long(job, "1min", 1059 * USEC_PER_SEC, &runs));
        ck_assert(job_is_long(job, "1min", 1060 * USEC_PER_SEC, &runs));
        ck_assert_uint_eq(runs, USEC_PER_MIN);
        ck_assert(!job_is_long(job, "1min A::B=1h", 1060 * USEC_PER_SEC, &runs));
        ck_assert(!job_is_long(job, "1min A::B=none", 9000 * USEC_PER_SEC, &runs));
        /* The clock was set back. */
        ck_assert(!job_is_long(job, "1min", 10 * USEC_PER_SEC, &runs));
        list.jobs[0].started_usec = 0;
        ck_assert(!job_is_long(job, "1min", 9000 * USEC_PER_SEC, &runs));
}

TEST(the_oldest_job_of_a_list_is_found)
{
        ck_assert_uint_eq(job_list_oldest(&list, 5000 * USEC_PER_SEC), 0);
        ck_assert_int_eq(add("{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}"), 0);
        ck_assert_uint_eq(job_list_oldest(&list, 5000 * USEC_PER_SEC), 0);
        for (unsigned run_at = 1002; run_at >= 1000; run_at -= 2) {
                char text[96];

                snprintf(text, sizeof(text),
                         "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"%u\"},\"run_at\":%u}",
                         run_at, run_at);
                ck_assert_int_eq(add(text), 0);
        }
        ck_assert_uint_eq(job_list_oldest(&list, 1060 * USEC_PER_SEC), USEC_PER_MIN);
        /* The clock was set back. */
        ck_assert_uint_eq(job_list_oldest(&list, 10 * USEC_PER_SEC), 0);
}

static const char *const garbage[] = {
        "",
        "null",
        "[]",
        "{",
        "{}",
        "{\"queue\":\"q\",\"payload\":\"{\"}",
        "{\"queue\":\"q\",\"payload\":\"[]\"}",
        "{\"queue\":\"q\",\"payload\":7}",
        "{\"queue\":\"q\",\"payload\":{\"class\":\"A\"}}",
        "{\"queue\":\"q\",\"payload\":{\"jid\":\"1\"}}",
        "{\"queue\":7,\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}",
        "{\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}",
        "{\"queue\":\"q\\u0000\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}",
        "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":1}}",
        "{\"queue\":\"q\",\"payload\":\"{\\\"class\\\":\\\"A\\\",\\\"jid\\\":\\\"1\\\"}\\u0000\"}",
};

TEST_LOOP(garbage_is_left_out_and_counted, ELEMENTSOF(garbage))
{
        ck_assert_int_eq(add(garbage[_i]), 1);
        ck_assert_uint_eq(list.n_jobs, 0);
        ck_assert_int_eq(add("{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}"), 0);
        ck_assert_str_eq(list.jobs[0].class, "A");
        ck_assert_uint_eq(list.n_jobs, 1);
}

/* A job of exactly that size: with spaces, or with so many empty objects among its arguments. */
static char *make_job(size_t size, bool is_entry, const char *filler)
{
        const char *begin = is_entry
                                    ? "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\",\"args\":["
                                    : "{\"class\":\"A\",\"jid\":\"1\",\"enqueued_at\":1795238801,\"args\":[",
                   *end = is_entry ? "0]}}" : "0]}";
        char *text = malloc(size + 1);
        size_t length = strlen(begin), last = size - strlen(end);

        ck_assert_ptr_nonnull(text);
        memset(text, ' ', size);
        memcpy(text, begin, length);
        for (; length + strlen(filler) <= last; length += strlen(filler))
                memcpy(text + length, filler, strlen(filler));
        memcpy(text + last, end, strlen(end) + 1);
        return text;
}

TEST(an_entry_is_unknown_from_the_first_byte_too_many)
{
        for (size_t extra = 0; extra < 2; extra++) {
                _cleanup_free_ char *entry = make_job(JOB_ENTRY_MAX + extra, true, " ");

                ck_assert_int_eq(add(entry), 0);
                ck_assert_uint_eq(list.n_oversized, extra);
                ck_assert_uint_eq(job_list_unknown(&list), extra);
                /* Not even copied. */
                ck_assert_uint_eq(list.n_entries, 1);
                ck_assert_uint_eq(list.n_jobs, 1);
                ck_assert_str_eq(list.jobs[0].class, "A");
        }
        ck_assert_int_eq(add("garbage"), 1);
        ck_assert_uint_eq(job_list_unknown(&list), 2);
}

TEST(the_head_of_a_queue_is_unknown_from_the_first_byte_too_many)
{
        char class[JOB_CLASS_MAX];
        uint64_t at = 0;

        for (size_t extra = 0; extra < 2; extra++) {
                _cleanup_free_ char *job = make_job(JOB_ENTRY_MAX + extra, false, " ");

                ck_assert_int_eq(sidekiq_job_head(job, strlen(job), &at, class), extra == 0);
                ck_assert_str_eq(class, extra == 0 ? "A" : "");
        }
        ck_assert_uint_eq(at, 1795238801 * USEC_PER_SEC);
}

/* What a job can have among its arguments, and what is too much for the tree that it would become. */
static const struct {
        const char *filler;
        bool read;
} fillers[] = {
        {"{\"id\":1},", true}, {"[12345,1],", true}, {"7,", true}, {"{},", false}, {"[[[[[[[[[[", false},
};

TEST_LOOP(an_entry_whose_tree_would_be_too_large_is_unknown, ELEMENTSOF(fillers))
{
        _cleanup_free_ char *entry = make_job(JOB_ENTRY_MAX, true, fillers[_i].filler);

        ck_assert_int_eq(add(entry), 0);
        ck_assert_uint_eq(list.n_jobs, fillers[_i].read ? 1 : 0);
        ck_assert_uint_eq(list.n_oversized, fillers[_i].read ? 0 : 1);
}

TEST(a_payload_nested_as_deep_as_ruby_reads_it_is_read)
{
        for (unsigned depth = 100; depth <= 200; depth += 100) {
                char text[1024] = "{\"queue\":\"q\",\"payload\":\"{\\\"class\\\":\\\"A\\\",\\\"jid\\\":"
                                  "\\\"1\\\",\\\"args\\\":";
                size_t length = strlen(text);

                memset(text + length, '[', depth - 1);
                memset(text + length + depth - 1, ']', depth - 1);
                strcpy(text + length + 2 * (depth - 1), "}\"}");
                ck_assert_int_eq(add(text), 0);
                ck_assert_uint_eq(list.n_jobs, 1);
                ck_assert_uint_eq(list.n_oversized, depth > 100);
        }
}

TEST(a_thread_with_a_nul_is_counted_only)
{
        struct field thread = {.text = "o\0z", .len = 3}, entry = {.text = "{}", .len = 2};

        ck_assert_int_eq(job_list_add(&list, false, &thread, &entry), 0);
        ck_assert_uint_eq(list.n_unreadable, 1);
        ck_assert_uint_eq(list.n_entries, 0);
}

/* jansson passes over a NUL after a number. */
TEST(a_payload_with_a_nul_is_unknown)
{
        static const char text[] =
                "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\",\"args\":[3\0,4]}}";
        struct field thread = {.text = "ouz", .len = 3}, entry = {.text = text, .len = sizeof(text) - 1};

        ck_assert_int_eq(job_list_add(&list, false, &thread, &entry), 0);
        ck_assert_int_eq(decode_all(), 0);
        ck_assert_uint_eq(list.n_jobs, 0);
        ck_assert_uint_eq(list.n_unreadable, 1);
}

TEST(a_list_is_decoded_in_slices)
{
        static const char *const entries[] = {
                "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}",
                "garbage",
                "{\"queue\":\"q\",\"payload\":{\"class\":\"B\",\"jid\":\"2\"}}",
        };
        size_t bytes = 0;

        for (size_t i = 0; i < ELEMENTSOF(entries); i++)
                add_undecoded(entries[i]);
        ck_assert_int_eq(job_list_decode(&list, sidekiq_job_decode, &bytes), 1);
        ck_assert_uint_eq(list.n_jobs, 0);
        /* What is begun is done. */
        bytes = 1;
        ck_assert_int_eq(job_list_decode(&list, sidekiq_job_decode, &bytes), 1);
        ck_assert_uint_eq(bytes, 0);
        ck_assert_uint_eq(list.n_jobs, 1);
        bytes = strlen(entries[1]) + 2;
        ck_assert_int_eq(job_list_decode(&list, sidekiq_job_decode, &bytes), 0);
        ck_assert_uint_eq(bytes, 0);
        ck_assert_uint_eq(list.n_jobs, 2);
        ck_assert_uint_eq(list.n_unreadable, 1);
        ck_assert_str_eq(list.jobs[0].class, "A");
        ck_assert_str_eq(list.jobs[1].class, "B");
}

TEST(a_long_class_is_cut)
{
        char entry[1024], class[601] = "";

        memset(class, 'C', sizeof(class) - 1);
        snprintf(entry, sizeof(entry), "{\"queue\":\"q\",\"payload\":{\"class\":\"%s\",\"jid\":\"1\"}}",
                 class);
        ck_assert_int_eq(add(entry), 0);
        ck_assert_uint_eq(strlen(list.jobs[0].class), JOB_NAME_MAX);
}

/* Entries beyond the space, which several lists may share, are counted. */
TEST(lists_have_a_bound_together)
{
        static const char text[] = "{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}";
        const struct field thread = {.text = "ouz", .len = 3}, entry = {.text = text, .len = strlen(text)};
        struct job_space space = {.jobs = 2, .bytes = SIZE_MAX};
        struct job_list other = {.space = &space};

        list.space = &space;
        add_undecoded(text);
        for (unsigned i = 0; i < 3; i++)
                ck_assert_int_eq(job_list_add(&other, false, &thread, &entry), 0);
        ck_assert_uint_eq(other.n_entries, 1);
        ck_assert_uint_eq(other.n_oversized, 2);
        space = (struct job_space){.jobs = SIZE_MAX, .bytes = sizeof(struct job) + thread.len + entry.len};
        add_undecoded(text);
        ck_assert_uint_eq(list.n_entries, 2);
        add_undecoded("");
        ck_assert_uint_eq(list.n_oversized, 1);
        job_list_clear(&other);
}

TEST(of_a_decoded_list_stays_what_is_wanted)
{
        struct job_space space = {.jobs = 2, .bytes = SIZE_MAX};

        list.space = &space;
        ck_assert_int_eq(add("{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}"), 0);
        job_list_end(&list, true);
        ck_assert_ptr_null(list.space);
        ck_assert_ptr_null(list.jobs[0].payload);
        ck_assert_ptr_nonnull(list.jobs[0].entry);
        job_list_end(&list, false);
        ck_assert_ptr_null(list.jobs[0].entry);
        ck_assert_uint_eq(list.jobs[0].entry_len, 0);
        ck_assert_str_eq(list.jobs[0].class, "A");
}

TEST(a_list_half_decoded_is_cleared)
{
        size_t bytes = 1;

        for (unsigned i = 0; i < 3; i++)
                add_undecoded("{\"queue\":\"q\",\"payload\":{\"class\":\"A\",\"jid\":\"1\"}}");
        ck_assert_int_eq(job_list_decode(&list, sidekiq_job_decode, &bytes), 1);
        job_list_clear(&list);
        ck_assert_uint_eq(list.n_entries, 0);
        ck_assert_int_eq(job_list_decode(&list, sidekiq_job_decode, &bytes), 0);
}

static unsigned allocations_left;

static void *allocate(size_t size)
{
        if (allocations_left == 0) {
                errno = ENOMEM;
                return NULL;
        }
        allocations_left--;
        return malloc(size);
}

/* Left out as garbage it would be lost. */
TEST(a_job_that_memory_is_too_short_for_is_no_garbage)
{
        /* jansson itself ends the process for want of memory for a number of more than 15 digits. */
        static const char entry[] =
                "{\"queue\":\"low\",\"payload\":\"{\\\"class\\\":\\\"InvoicesOfTheLastMonth\\\","
                "\\\"jid\\\":\\\"8d42916aa7347dfb2a2be461\\\",\\\"args\\\":[1.0,\\\"many words\\\"]}\","
                "\"run_at\":1795252687}";
        unsigned n = 0;
        int r;

        add_undecoded(entry);
        json_set_alloc_funcs(allocate, free);
        do {
                allocations_left = n++;
                r = decode_all();
                ck_assert(r == 0 || r == -ENOMEM);
        } while (r < 0);
        json_set_alloc_funcs(malloc, free);
        ck_assert_uint_gt(n, 10);
        ck_assert_uint_eq(list.n_jobs, 1);
        ck_assert_str_eq(list.jobs[0].class, "InvoicesOfTheLastMonth");
        ck_assert_str_eq(list.jobs[0].jid, "8d42916aa7347dfb2a2be461");
}

TEST(a_dead_job_carries_the_reason_and_is_otherwise_as_it_was)
{
        ck_assert_int_eq(add("{\"queue\":\"q\",\"payload\":\"" PAYLOAD "\"}"), 0);
        char *text = sidekiq_job_dead_payload(&list.jobs[0], "WorkerKilled", "it said \"no\"",
                                              1500 * USEC_PER_MSEC);
        ck_assert_ptr_nonnull(text);
        ck_assert_ptr_nonnull(strstr(text, "[1.0,123456789012345678901234567890],"));
        json_t *json = json_loads(text, JSON_DECODE_INT_AS_REAL, NULL);
        ck_assert_str_eq(json_string_value(json_object_get(json, "error_class")), "WorkerKilled");
        ck_assert_str_eq(json_string_value(json_object_get(json, "error_message")), "it said \"no\"");
        ck_assert(json_number_value(json_object_get(json, "failed_at")) == 1.5);
        ck_assert_str_eq(json_string_value(json_object_get(json, "jid")), "8d42");
        json_decref(json);
        free(text);
}

TEST_MAIN("job", .each = {NULL, teardown})
