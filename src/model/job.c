/* SPDX-License-Identifier: MIT */
/* Decodes what the work lists of Sidekiq's processes hold. */
#include "model/job.h"
#include "settings/limits.h"
#include <jansson.h>
#include <stdio.h>
#include <string.h>

static void decref_pointer(json_t **json)
{
        json_decref(*json);
}
#define _cleanup_decref_ _cleanup_(decref_pointer)

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

/* The member of that name, as a text of its own: -EINVAL where it is no string, or holds a NUL. */
static int take_text(json_t *object, const char *name, char **ret)
{
        json_t *text = json_object_get(object, name);

        if (!json_is_string(text) || strlen(json_string_value(text)) != json_string_length(text))
                return -EINVAL;
        *ret = strdup(json_string_value(text));
        return *ret ? 0 : -ENOMEM;
}

/* Up to 6.0.1 the payload is an object, and from then on the text of one. */
static int take_payload(json_t *payload, char **ret_text, json_t **ret_object)
{
        if (json_is_object(payload)) {
                *ret_text = json_dumps(payload, JSON_COMPACT | JSON_REAL_PRECISION(17));
                *ret_object = json_incref(payload);
                return *ret_text ? 0 : -ENOMEM;
        }
        if (!json_is_string(payload) || strlen(json_string_value(payload)) != json_string_length(payload))
                return -EINVAL;
        int r = sidekiq_job_load(json_string_value(payload), json_string_length(payload), ret_object);
        if (r < 0)
                return r;
        *ret_text = strdup(json_string_value(payload));
        return *ret_text ? 0 : -ENOMEM;
}

static int decode(struct job *job)
{
        _cleanup_decref_ json_t *root = NULL, *payload = NULL;
        int r = sidekiq_job_load(job->entry, job->entry_len, &root);

        if (r >= 0)
                r = take_payload(json_object_get(root, "payload"), &job->payload, &payload);
        if (r < 0)
                return r;
        (void)sidekiq_stamp_decode(json_object_get(root, "run_at"), &job->started_usec);
        r = take_text(root, "queue", &job->queue);
        if (r >= 0)
                r = take_text(payload, "jid", &job->jid);
        if (r >= 0)
                r = take_text(payload, "wrapped", &job->class);
        return r == -EINVAL && job->jid ? take_text(payload, "class", &job->class) : r;
}

int job_list_add(struct job_list *list, bool old_key, const struct sidekiq_field *thread,
                 const struct sidekiq_field *entry)
{
        if (memchr(thread->text, '\0', thread->len)) {
                list->n_unreadable++;
                return 0;
        }
        if (list->n_entries == list->allocated) {
                size_t allocated = MAX((size_t)8, 2 * list->allocated);
                struct job *jobs = reallocarray(list->jobs, allocated, sizeof(*jobs));

                if (!jobs)
                        return -ENOMEM;
                list->jobs = jobs;
                list->allocated = allocated;
        }
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

int job_list_decode(struct job_list *list, size_t *bytes)
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
                if (r < 0) {
                        job_clear(job);
                        list->n_unreadable++;
                } else {
                        struct job decoded = *job;

                        *job = (struct job){0};
                        list->jobs[list->n_jobs++] = decoded;
                }
        }
        return 0;
}

void job_list_clear(struct job_list *list)
{
        for (size_t i = 0; i < list->n_entries; i++)
                job_clear(&list->jobs[i]);
        free(list->jobs);
        *list = (struct job_list){0};
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

bool job_is_long(const struct job *job, const char *limits, uint64_t now_usec, usec_t *ret_usec)
{
        uint64_t limit = limits ? limits_find(limits, LIMITS_DURATION, job->class) : 0;

        if (limit == 0 || job->started_usec == 0 || usec_sub(now_usec, job->started_usec) < limit)
                return false;
        /* When it began is told in whole seconds. */
        *ret_usec = usec_sub(now_usec, job->started_usec) / USEC_PER_SEC * USEC_PER_SEC;
        return true;
}

char *job_dead_payload(const struct job *job, const char *error_class, const char *error_message,
                       uint64_t now_usec)
{
        size_t length = strlen(job->payload);
        char *text = NULL;

        /* Of two members of one name the last counts: what the job brought along stays untouched before
         * ours, its numbers as they were written too. */
        while (length > 0 && strchr(" \t\r\n", job->payload[length - 1]))
                length--;
        if (length == 0)
                return NULL;
        _cleanup_decref_ json_t *why =
                json_pack("{s:s, s:s, s:f}", "error_class", error_class, "error_message", error_message,
                          "failed_at", (double)now_usec / (double)USEC_PER_SEC);
        char *members = why ? json_dumps(why, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
        if (members && asprintf(&text, "%.*s,%s", (int)(length - 1), job->payload, members + 1) < 0)
                text = NULL;
        free(members);
        return text;
}
