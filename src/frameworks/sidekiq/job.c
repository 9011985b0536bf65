/* SPDX-License-Identifier: MIT */
/* Decodes and encodes jobs in Sidekiq's format; see the header. */
#include "frameworks/sidekiq/job.h"
#include "frameworks/sidekiq/format.h"
#include "wire/json.h"
#include <stdio.h>

/* Returns the position after the string that begins at text. */
static const char *skip_string(const char *text, const char *end)
{
        for (text++; text < end && *text != '"'; text++)
                text += *text == '\\';
        return text + 1;
}

/* Copies the text of an object. Returns -EINVAL if the text is not an object. */
static int take_object(const char *text, size_t length, char **ret)
{
        while (length > 0 && strchr(" \t\r\n", text[0])) {
                text++;
                length--;
        }
        while (length > 0 && strchr(" \t\r\n", text[length - 1]))
                length--;
        if (length < 2 || text[0] != '{' || text[length - 1] != '}')
                return -EINVAL;
        *ret = strndup(text, length);
        return *ret ? 0 : -ENOMEM;
}

/* Copies the value of `payload` byte for byte, because its numbers may be larger or more exact than C
 * numbers. The entry must be an object that decoded without error. If a name occurs twice, the last member
 * counts. Returns -EINVAL if there is no such object, or a NUL in it, which jansson skips after a number. */
static int cut_payload(const struct job *job, char **ret)
{
        static const char name[] = "\"payload\"";
        const char *end = job->entry + job->entry_len, *value = NULL, *found = NULL;
        size_t depth = 0, length = 0;
        bool is_key = false, is_wanted = false;

        for (const char *p = job->entry; p < end; p++) {
                if (*p == '"') {
                        const char *begin = p;

                        p = skip_string(p, end) - 1;
                        if (depth == 1 && is_key)
                                is_wanted = p - begin == sizeof(name) - 2 &&
                                            memcmp(begin, name, sizeof(name) - 1) == 0;
                        continue;
                }
                bool ends = depth == 1 && (*p == ',' || *p == '}');
                if (ends && is_wanted && value) {
                        found = value;
                        length = (size_t)(p - value);
                }
                if (depth == 1 && *p == ':') {
                        value = p + 1;
                        is_key = false;
                } else if (ends) {
                        value = NULL;
                        is_key = true;
                }
                if (*p == '{' || *p == '[')
                        is_key = depth++ == 0;
                else if (*p == '}' || *p == ']')
                        depth--;
        }
        return found && !memchr(found, '\0', length) ? take_object(found, length, ret) : -EINVAL;
}

/* Up to 6.0.1 the payload is an object, later the text of an object. */
static int take_payload(const struct job *job, json_t *payload, char **ret_text, json_t **ret_object)
{
        if (json_is_object(payload)) {
                *ret_object = json_incref(payload);
                return cut_payload(job, ret_text);
        }
        if (!json_is_string(payload) || strlen(json_string_value(payload)) != json_string_length(payload))
                return -EINVAL;
        int r = decode_job(json_string_value(payload), json_string_length(payload), ret_object);
        if (r < 0)
                return r;
        *ret_text = strdup(json_string_value(payload));
        return *ret_text ? 0 : -ENOMEM;
}

int sidekiq_job_decode(struct job *job)
{
        _cleanup_json_ json_t *root = NULL, *payload = NULL;
        int r = decode_job(job->entry, job->entry_len, &root);

        if (r >= 0)
                r = take_payload(job, json_object_get(root, "payload"), &job->payload, &payload);
        if (r < 0)
                return r;
        (void)sidekiq_stamp_decode(json_object_get(root, "run_at"), &job->started_usec);
        r = json_take_text(root, "queue", &job->queue);
        if (r >= 0)
                r = json_take_text(payload, "jid", &job->jid);
        if (r >= 0)
                r = json_take_text(payload, "wrapped", &job->class);
        return r == -EINVAL && job->jid ? json_take_text(payload, "class", &job->class) : r;
}

bool sidekiq_job_head(const char *payload, size_t len, uint64_t *ret_usec, char class[static JOB_CLASS_MAX])
{
        _cleanup_json_ json_t *job = NULL;

        class[0] = '\0';
        if (decode_job(payload, len, &job) < 0)
                return false;
        const char *name = json_string_value(json_object_get(job, "wrapped"))
                                   ?: json_string_value(json_object_get(job, "class"));
        if (name)
                snprintf(class, JOB_CLASS_MAX, "%s", name);
        return sidekiq_stamp_decode(json_object_get(job, "enqueued_at"), ret_usec);
}

bool sidekiq_job_queue(const char *payload, size_t len, char *queue, size_t size)
{
        _cleanup_json_ json_t *job = NULL;

        if (decode_job(payload, len, &job) < 0)
                return false;
        const char *name = json_string_value(json_object_get(job, "queue"));
        return name && (size_t)snprintf(queue, size, "%s", name) < size;
}

char *sidekiq_job_dead_payload(const struct job *job, const char *error_class, const char *error_message,
                               uint64_t now_usec)
{
        size_t length = strlen(job->payload);
        char *text = NULL;

        /* If a name occurs twice, the last member counts. Ours are appended, and the job's own members
         * stay byte for byte as they are. */
        while (length > 0 && strchr(" \t\r\n", job->payload[length - 1]))
                length--;
        if (length == 0)
                return NULL;
        _cleanup_json_ json_t *why =
                json_pack("{s:s, s:s, s:f}", "error_class", error_class, "error_message", error_message,
                          "failed_at", (double)now_usec / (double)USEC_PER_SEC);
        char *members = why ? json_dumps(why, JSON_COMPACT | JSON_REAL_PRECISION(17)) : NULL;
        if (members && asprintf(&text, "%.*s,%s", (int)(length - 1), job->payload, members + 1) < 0)
                text = NULL;
        free(members);
        return text;
}
