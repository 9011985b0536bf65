/* SPDX-License-Identifier: MIT */
/* The jobs that a process runs. */
#include "model/job.h"
#include "base/printable.h"
#include "settings/limits.h"
#include <stdio.h>
#include <string.h>

static void job_clear_decoded(struct job *job)
{
        free(job->payload);
        free(job->queue);
        free(job->class);
        free(job->jid);
        job->payload = job->queue = job->class = job->jid = NULL;
}

static void job_clear(struct job *job)
{
        job_clear_decoded(job);
        free(job->thread);
        free(job->entry);
        *job = (struct job){0};
}

/* Returns true, and takes the space, if an entry with this many bytes of texts fits. */
static bool takes_space(struct job_space *space, size_t bytes)
{
        if (!space)
                return true;
        bytes += sizeof(struct job);
        if (space->jobs == 0 || bytes > space->bytes)
                return false;
        space->jobs--;
        space->bytes -= bytes;
        return true;
}

int job_list_add(struct job_list *list, bool old_key, const struct field *thread, const struct field *entry)
{
        if (entry->len > JOB_ENTRY_MAX) {
                list->n_oversized++;
                return 0;
        }
        if (thread->len > JOB_NAME_MAX || memchr(thread->text, '\0', thread->len)) {
                list->n_unreadable++;
                return 0;
        }
        if (!takes_space(list->space, thread->len + entry->len)) {
                list->n_oversized++;
                return 0;
        }
        if (!ARRAY_RESERVE(list->jobs, list->n_entries, list->allocated))
                return -ENOMEM;
        struct job job = {
                .old_key = old_key,
                .thread = strndup(thread->text, thread->len),
                .entry = malloc(entry->len + 1),
                .entry_len = entry->len,
        };
        if (!job.thread || !job.entry) {
                job_clear(&job);
                return -ENOMEM;
        }
        memcpy(job.entry, entry->text, entry->len);
        job.entry[entry->len] = '\0';
        list->jobs[list->n_entries++] = job;
        return 0;
}

static bool has_long_name(const struct job *job)
{
        return (job->queue && strlen(job->queue) > JOB_NAME_MAX) ||
               (job->jid && strlen(job->jid) > JOB_NAME_MAX);
}

int job_list_decode(struct job_list *list, job_decode_fn decode, size_t *bytes)
{
        for (; list->next < list->n_entries; list->next++) {
                if (*bytes == 0)
                        return 1;
                struct job *job = &list->jobs[list->next];
                int r = decode(job);

                if (r == -ENOMEM) {
                        job_clear_decoded(job);
                        return r;
                }
                *bytes -= MIN(*bytes, job->entry_len + 1);
                if (r >= 0 && has_long_name(job))
                        r = -EINVAL;
                if (r < 0) {
                        job_clear(job);
                        *(r == -EMSGSIZE ? &list->n_oversized : &list->n_unreadable) += 1;
                } else {
                        struct job decoded = *job;

                        *job = (struct job){0};
                        if (decoded.class)
                                decoded.class[strnlen(decoded.class, JOB_NAME_MAX)] = '\0';
                        list->jobs[list->n_jobs++] = decoded;
                }
        }
        return 0;
}

void job_list_end(struct job_list *list, bool with_entries)
{
        list->space = NULL;
        for (size_t i = 0; i < list->n_jobs; i++) {
                struct job *job = &list->jobs[i];

                free(TAKE_PTR(job->payload));
                if (!with_entries) {
                        free(TAKE_PTR(job->entry));
                        job->entry_len = 0;
                }
        }
}

void job_list_clear(struct job_list *list)
{
        for (size_t i = 0; i < list->n_entries; i++)
                job_clear(&list->jobs[i]);
        free(list->jobs);
        *list = (struct job_list){0};
}

void job_lists_free(struct job_list *lists, size_t n)
{
        for (size_t i = 0; i < n; i++)
                job_list_clear(&lists[i]);
        free(lists);
}

usec_t job_list_oldest(const struct job_list *list, uint64_t now_usec)
{
        uint64_t oldest = 0;

        for (size_t i = 0; i < list->n_jobs; i++) {
                uint64_t started = list->jobs[i].started_usec;

                if (started > 0 && (oldest == 0 || started < oldest))
                        oldest = started;
        }
        return oldest > 0 ? usec_sub(now_usec, oldest) : 0;
}

/* Inserts a class by descending number of jobs. Classes arrive sorted by name, which decides ties. */
static void add_class(struct job_classes *classes, const char *class, size_t jobs)
{
        size_t at = classes->n;

        while (at > 0 && classes->list[at - 1].jobs < jobs)
                at--;
        if (classes->n == JOB_CLASSES_MAX) {
                classes->more++;
                if (at == JOB_CLASSES_MAX)
                        return;
                classes->n--;
        }
        memmove(&classes->list[at + 1], &classes->list[at], (classes->n - at) * sizeof(classes->list[0]));
        classes->n++;
        /* The class name is untrusted. */
        char *name = classes->list[at].name;
        snprintf(name, JOB_CLASS_MAX, "%s", class[0] != '\0' ? class : "?");
        printable_replace(name, strlen(name), false);
        classes->list[at].jobs = jobs;
}

static int compare_classes(const void *left, const void *right)
{
        const struct job *const *a = left, *const *b = right;

        return strcmp((*a)->class, (*b)->class);
}

bool job_classes_count(const struct job_list *jobs, struct job_classes *classes)
{
        _cleanup_free_ const struct job **sorted = calloc(jobs->n_jobs + 1, sizeof(struct job *));
        size_t first = 0;

        if (!sorted)
                return false;
        for (size_t i = 0; i < jobs->n_jobs; i++)
                sorted[i] = &jobs->jobs[i];
        qsort(sorted, jobs->n_jobs, sizeof(struct job *), compare_classes);
        for (size_t i = 1; i <= jobs->n_jobs; i++) {
                if (i < jobs->n_jobs && strcmp(sorted[i]->class, sorted[first]->class) == 0)
                        continue;
                add_class(classes, sorted[first]->class, i - first);
                first = i;
        }
        return true;
}

const char *job_classes_text(const struct job_classes *classes, char *text, size_t size)
{
        size_t length = 0;

        snprintf(text, size, "no job");
        for (size_t i = 0; i < classes->n && length < size; i++) {
                char jobs[32] = "";

                if (classes->list[i].jobs > 1)
                        snprintf(jobs, sizeof(jobs), " (%zu)", classes->list[i].jobs);
                length += (size_t)snprintf(text + length, size - length, "%s%s%s", i > 0 ? ", " : "",
                                           classes->list[i].name, jobs);
        }
        if (classes->more > 0 && length < size)
                snprintf(text + length, size - length, " and %zu more", classes->more);
        return text;
}

bool job_is_long(const struct job *job, const char *limits, uint64_t now_usec, usec_t *ret_usec)
{
        uint64_t limit = limits ? limits_find(limits, LIMITS_DURATION, job->class) : 0;

        if (limit == 0 || job->started_usec == 0 || usec_sub(now_usec, job->started_usec) < limit)
                return false;
        /* The start of a job is known in whole seconds only. */
        *ret_usec = usec_sub(now_usec, job->started_usec) / USEC_PER_SEC * USEC_PER_SEC;
        return true;
}
