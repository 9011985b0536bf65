/* SPDX-License-Identifier: MIT */
/* Answers about the jobs that processes run, or ran, as bytes. */
#include "queries/answer.h"
#include <string.h>

/* Entries that are no job are counted up to this number. */
#define COUNT_MAX 1000000
/* The clock of a host may be wrong by any amount. */
#define STARTED_MAX (UINT64_C(1000000000000) * USEC_PER_SEC)
/* The size of a job with empty texts: the lengths of these, and its start time. */
#define JOB_BYTES_MIN (5 * sizeof(uint64_t))

static const struct codec_field list_fields[] = {
        CODEC_RANGE(struct job_list, n_unreadable, 0, COUNT_MAX),
        CODEC_RANGE(struct job_list, n_oversized, 0, COUNT_MAX),
        CODEC_RANGE(struct job_list, n_jobs, 0, ANSWER_JOBS_MAX),
};
static const struct record list_record = RECORD(list_fields);

/* Space for jobs in an answer. */
struct space {
        size_t jobs, bytes;
};

static bool space_take(struct space *space, const struct job *job, bool with_entry)
{
        size_t bytes = JOB_BYTES_MIN + (size_t)4 * JOB_NAME_MAX + (with_entry ? job->entry_len : 0);

        if (space->jobs == 0 || space->bytes < bytes)
                return false;
        space->jobs--;
        space->bytes -= bytes;
        return true;
}

static void write_bytes(struct codec_writer *writer, const char *text, size_t length)
{
        codec_write_number(writer, length);
        uint8_t *at = codec_write_space(writer, length);
        if (at && length > 0)
                memcpy(at, text, length);
}

static void write_job(struct codec_writer *writer, const struct job *job, bool with_entry)
{
        const char *const names[] = {job->thread, job->queue, job->class, job->jid};

        codec_write_number(writer, MIN(job->started_usec, STARTED_MAX));
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                write_bytes(writer, names[i] ?: "", strnlen(names[i] ?: "", JOB_NAME_MAX));
        if (!with_entry)
                return;
        codec_write_number(writer, job->old_key);
        write_bytes(writer, job->entry, job->entry_len);
}

static void write_jobs(struct codec_writer *writer, const void *body)
{
        const struct answer_jobs *answer = body;
        struct space space = {ANSWER_JOBS_MAX, ANSWER_JOBS_BYTES_MAX};

        codec_write_number(writer, answer->with_entries);
        codec_write_number(writer, answer->n);
        for (size_t i = 0; i < answer->n; i++) {
                const struct job_list *list = &answer->lists[i];
                struct job_list counts = {.n_unreadable = MIN(list->n_unreadable, (size_t)COUNT_MAX)};

                while (counts.n_jobs < list->n_jobs &&
                       space_take(&space, &list->jobs[counts.n_jobs], answer->with_entries))
                        counts.n_jobs++;
                counts.n_oversized = MIN(list->n_oversized + list->n_jobs - counts.n_jobs, (size_t)COUNT_MAX);
                codec_write(writer, &list_record, &counts);
                for (size_t j = 0; j < counts.n_jobs; j++)
                        write_job(writer, &list->jobs[j], answer->with_entries);
        }
}

static int read_job(struct codec_reader *reader, struct job *job, bool with_entry)
{
        char **const names[] = {&job->thread, &job->queue, &job->class, &job->jid};

        job->started_usec = codec_read_number(reader, 0, STARTED_MAX);
        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                size_t length;
                const char *text = codec_read_text(reader, JOB_NAME_MAX, &length);

                *names[i] = strndup(text, length);
                if (!*names[i])
                        return -ENOMEM;
        }
        if (!with_entry)
                return 0;
        job->old_key = codec_read_number(reader, 0, 1);
        job->entry_len = codec_read_number(reader, 0, JOB_ENTRY_MAX);
        const uint8_t *entry = codec_read_space(reader, job->entry_len);
        if (!entry)
                return 0;
        job->entry = malloc(job->entry_len + 1);
        if (!job->entry)
                return -ENOMEM;
        memcpy(job->entry, entry, job->entry_len);
        job->entry[job->entry_len] = '\0';
        return 0;
}

/* left: jobs that further lists may have. */
static int read_list(struct codec_reader *reader, struct job_list *list, size_t *left, bool with_entries)
{
        (void)codec_read(reader, &list_record, list);
        size_t n = list->n_jobs;
        int r = 0;

        list->n_jobs = 0;
        if (n > *left || n > reader->left / JOB_BYTES_MIN) {
                reader->wrong = true;
                return 0;
        }
        *left -= n;
        list->jobs = calloc(n + 1, sizeof(*list->jobs));
        if (!list->jobs)
                return -ENOMEM;
        list->next = list->n_entries = list->allocated = n;
        for (; list->n_jobs < n && r == 0 && !reader->wrong; list->n_jobs++)
                r = read_job(reader, &list->jobs[list->n_jobs], with_entries);
        return r;
}

static int read_jobs(struct codec_reader *reader, void *body)
{
        struct answer_jobs *answer = body;
        size_t left = ANSWER_JOBS_MAX;
        int r = 0;

        answer->with_entries = codec_read_number(reader, 0, 1);
        size_t n = codec_read_number(reader, 0, QUERY_TEXTS_MAX);
        answer->lists = calloc(n + 1, sizeof(*answer->lists));
        if (!answer->lists)
                return -ENOMEM;
        for (; answer->n < n && r == 0 && !reader->wrong; answer->n++)
                r = read_list(reader, &answer->lists[answer->n], &left, answer->with_entries);
        return r;
}

static void clear_jobs(void *body)
{
        struct answer_jobs *answer = body;

        job_lists_free(TAKE_PTR(answer->lists), answer->n);
        answer->n = 0;
}

const struct answer_format answer_jobs_format = {.write = write_jobs, .read = read_jobs, .clear = clear_jobs};
