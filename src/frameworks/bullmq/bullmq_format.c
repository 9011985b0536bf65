/* SPDX-License-Identifier: MIT */
/* Keys and jobs of BullMQ; see the header. */
#include "base/macro.h"
#include "base/usec.h"
#include "frameworks/bullmq/bullmq.h"
#include "frameworks/decode.h"
#include "model/job.h"
#include <stdio.h>
#include <string.h>

const char *bullmq_prefix(const char *namespace)
{
        return namespace && *namespace ? namespace : BULLMQ_PREFIX;
}

char *bullmq_key(const char *namespace, const char *name, const char *queue)
{
        char *key;

        if (!queue)
                return strdup(name);
        return asprintf(&key, "%s:%s:%s", bullmq_prefix(namespace), queue, name) < 0 ? NULL : key;
}

/* Appends a text and a NUL. A missing text is empty, and so is one with a NUL: no name of BullMQ has one. */
static char *append(char *at, const struct field *text)
{
        bool usable = text->text && !memchr(text->text, '\0', text->len);

        if (usable)
                memcpy(at, text->text, text->len);
        at += usable ? text->len : 0;
        *at = '\0';
        return at + 1;
}

char *bullmq_job_entry(const char *queue, const struct field texts[static 3], size_t *ret_len)
{
        const struct field first = {queue, strlen(queue)};
        char *entry = malloc(first.len + texts[0].len + texts[1].len + texts[2].len + 4), *at = entry;

        if (!entry)
                return NULL;
        at = append(at, &first);
        for (size_t i = 0; i < 3; i++)
                at = append(at, &texts[i]);
        *ret_len = (size_t)(at - entry) - 1;
        return entry;
}

int bullmq_job_decode(struct job *job)
{
        const char *at = job->entry, *end = job->entry + job->entry_len;
        const char *texts[4];
        unsigned long long ms;

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                if (at > end)
                        return -EINVAL;
                texts[i] = at;
                at += strlen(at) + 1;
        }
        if (at != end + 1 || texts[1][0] == '\0')
                return -EINVAL;
        if (decode_count(texts[3], strlen(texts[3]), BULLMQ_TIME_MAX_MSEC, &ms))
                job->started_usec = ms * USEC_PER_MSEC;
        job->queue = strdup(texts[0]);
        job->jid = strdup(texts[1]);
        job->class = strdup(texts[2]);
        return job->queue && job->jid && job->class ? 0 : -ENOMEM;
}
