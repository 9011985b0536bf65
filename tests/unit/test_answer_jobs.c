/* SPDX-License-Identifier: MIT */
/* Do answers about jobs arrive as they were sent, and is what cannot be refused? */
#include "answer_bytes.h"

static struct answer answer;

static void add_job(struct job_list *list, const char *class, size_t entry_len)
{
        ck_assert(ARRAY_RESERVE(list->jobs, list->n_jobs, list->allocated));
        list->jobs[list->n_jobs] = (struct job){
                .thread = strdup("t1"),
                .queue = strdup("mail"),
                .class = strdup(class),
                .jid = strdup("j1"),
                .entry = calloc(1, entry_len + 1),
                .entry_len = entry_len,
                .old_key = true,
                .started_usec = 1700000000 * USEC_PER_SEC,
        };
        list->n_entries = list->next = ++list->n_jobs;
}

static void setup(void)
{
        answer = (struct answer){.kind = QUERY_JOBS, .jobs = {.n = 2, .with_entries = true}};
        answer.jobs.lists = calloc(2, sizeof(*answer.jobs.lists));
        ck_assert_ptr_nonnull(answer.jobs.lists);
        add_job(&answer.jobs.lists[0], "Hard", 3);
        add_job(&answer.jobs.lists[0], "Soft", 0);
        answer.jobs.lists[0].n_unreadable = 4;
        answer.jobs.lists[0].n_oversized = 5;
}

static void teardown(void)
{
        answer_clear(&answer);
}

TEST(jobs_arrive_as_they_were_sent)
{
        struct answer read;

        error_report_quote(&answer.error, "ERR\nx", "one list is missing");
        memcpy(answer.jobs.lists[0].jobs[0].entry, "a\0b", 3);
        ck_assert_int_eq(answer_pass(&answer, &read), 0);
        ck_assert(error_report_equal(&read.error, &answer.error));
        ck_assert_uint_eq(read.jobs.n, 2);
        const struct job_list *list = &read.jobs.lists[0];
        ck_assert_uint_eq(list->n_jobs, 2);
        ck_assert_uint_eq(list->n_unreadable, 4);
        ck_assert_uint_eq(list->n_oversized, 5);
        const struct job *job = &list->jobs[0];
        ck_assert_str_eq(job->thread, "t1");
        ck_assert_str_eq(job->queue, "mail");
        ck_assert_str_eq(job->class, "Hard");
        ck_assert_str_eq(job->jid, "j1");
        ck_assert(job->old_key);
        ck_assert_uint_eq(job->started_usec, 1700000000 * USEC_PER_SEC);
        ck_assert_uint_eq(job->entry_len, 3);
        ck_assert_int_eq(memcmp(job->entry, "a\0b", 4), 0);
        ck_assert_str_eq(list->jobs[1].class, "Soft");
        ck_assert_uint_eq(read.jobs.lists[1].n_jobs, 0);
        answer_clear(&read);
}

TEST(entries_stay_behind_unless_asked_for)
{
        struct answer read;

        answer.jobs.with_entries = false;
        ck_assert_int_eq(answer_pass(&answer, &read), 0);
        ck_assert_ptr_null(read.jobs.lists[0].jobs[0].entry);
        ck_assert_uint_eq(read.jobs.lists[0].jobs[0].entry_len, 0);
        ck_assert_str_eq(read.jobs.lists[0].jobs[1].class, "Soft");
        answer_clear(&read);
}

TEST(a_part_of_an_answer_is_refused)
{
        answer_expect_whole(&answer);
        answer.jobs.with_entries = false;
        answer_expect_whole(&answer);
}

TEST(the_class_of_a_job_is_cut)
{
        char class[2 * JOB_NAME_MAX] = "";
        struct answer read;

        memset(class, 'x', sizeof(class) - 1);
        add_job(&answer.jobs.lists[1], class, 0);
        ck_assert_int_eq(answer_pass(&answer, &read), 0);
        ck_assert_uint_eq(strlen(read.jobs.lists[1].jobs[0].class), JOB_NAME_MAX);
        answer_clear(&read);
}

/* The total of entries is bounded by the message, and the number of jobs. */
TEST(jobs_that_do_not_fit_count_as_too_large)
{
        const size_t fitting = ANSWER_JOBS_BYTES_MAX / (JOB_ENTRY_MAX + 40 + (size_t)4 * JOB_NAME_MAX);
        struct job_list *list = &answer.jobs.lists[1];
        struct codec_writer writer = {0};
        struct answer read;

        for (size_t i = 0; i < fitting + 3; i++)
                add_job(list, "Large", JOB_ENTRY_MAX);
        answer_write(&writer, 7, &answer);
        ck_assert_uint_le(writer.size, ANSWER_BYTES_MAX);
        ck_assert_int_eq(answer_read_bytes(writer.bytes, writer.size, QUERY_JOBS, &read), 0);
        ck_assert_uint_ge(read.jobs.lists[1].n_jobs, fitting - 1);
        ck_assert_uint_eq(read.jobs.lists[1].n_jobs + read.jobs.lists[1].n_oversized, list->n_jobs);
        answer_clear(&read);
        free(writer.bytes);
}

/* Such as no reader of ours writes: one list with one job, of these numbers. */
struct forged {
        uint64_t with_entries, lists, unreadable, oversized, jobs, started, names[4], old_key, entry;
};

static int read_forged(const struct forged *forged)
{
        const struct answer none = {.kind = QUERY_PING};
        const uint64_t numbers[] = {forged->with_entries, forged->lists, forged->unreadable,
                                    forged->oversized,    forged->jobs,  forged->started};
        struct codec_writer writer = {0};
        struct answer read;

        answer_write(&writer, 7, &none);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++)
                codec_write_number(&writer, numbers[i]);
        for (size_t i = 0; i < ELEMENTSOF(forged->names); i++) {
                codec_write_number(&writer, forged->names[i]);
                memset(codec_write_space(&writer, forged->names[i]), 'x', forged->names[i]);
        }
        codec_write_number(&writer, forged->old_key);
        codec_write_number(&writer, forged->entry);
        memset(codec_write_space(&writer, forged->entry), 0, forged->entry);
        int r = answer_read_bytes(writer.bytes, writer.size, QUERY_JOBS, &read);
        if (r == 0)
                answer_clear(&read);
        free(writer.bytes);
        return r;
}

#define STARTED_MAX (UINT64_C(1000000000000) * USEC_PER_SEC)

TEST(each_number_has_a_bound)
{
        const struct forged fine = {.with_entries = 1,
                                    .lists = 1,
                                    .unreadable = 1000000,
                                    .oversized = 1000000,
                                    .jobs = 1,
                                    .started = STARTED_MAX,
                                    .names = {JOB_NAME_MAX, JOB_NAME_MAX, JOB_NAME_MAX, JOB_NAME_MAX},
                                    .old_key = 1,
                                    .entry = JOB_ENTRY_MAX};
        uint64_t numbers[sizeof(fine) / sizeof(uint64_t)];

        ck_assert_int_eq(read_forged(&fine), 0);
        for (size_t i = 0; i < ELEMENTSOF(numbers); i++) {
                struct forged wrong;

                memcpy(numbers, &fine, sizeof(fine));
                numbers[i]++;
                memcpy(&wrong, numbers, sizeof(wrong));
                ck_assert_msg(read_forged(&wrong) == -EBADMSG, "number %zu", i);
        }
}

/* Counts beyond what the bytes can hold take no memory. */
TEST(counts_have_a_bound)
{
        struct forged forged = {.lists = QUERY_TEXTS_MAX + 1};

        ck_assert_int_eq(read_forged(&forged), -EBADMSG);
        forged.lists = 1;
        forged.jobs = ANSWER_JOBS_MAX;
        ck_assert_int_eq(read_forged(&forged), -EBADMSG);
        forged.jobs = UINT64_MAX;
        ck_assert_int_eq(read_forged(&forged), -EBADMSG);
}

TEST(the_jobs_of_all_lists_have_a_bound_together)
{
        struct answer read;

        answer.jobs.with_entries = false;
        for (size_t i = 0; i < ANSWER_JOBS_MAX; i++)
                add_job(&answer.jobs.lists[1], "", 0);
        ck_assert_int_eq(answer_pass(&answer, &read), 0);
        size_t n = read.jobs.lists[0].n_jobs + read.jobs.lists[1].n_jobs;
        ck_assert_uint_le(n, ANSWER_JOBS_MAX);
        ck_assert_uint_eq(n + read.jobs.lists[1].n_oversized, ANSWER_JOBS_MAX + 2);
        answer_clear(&read);
}

TEST_MAIN("answer_jobs", .each = {setup, teardown})
