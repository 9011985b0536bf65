/* SPDX-License-Identifier: MIT */
/* The work lists of Sidekiq's processes: a hash for each, with an entry for each thread. */
#include "frameworks/sidekiq/works.h"
#include "frameworks/decode.h"
#include "frameworks/redis_works.h"
#include "frameworks/sidekiq/job.h"
#include <hiredis/hiredis.h>

/* Which of them a process writes depends on its version: `work` from 6.4.2 on, `workers` before. */
static const char *const suffixes[] = {"work", "workers"};

static int ask(const char *namespace, const char *identity, size_t which, struct beats_command *ret)
{
        char *key = decode_key(namespace, identity, suffixes[which]);

        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){.argv = {"HGETALL", key}, .argc = 2, .keys = {key}};
        return 0;
}

static int take(const redisReply *reply, size_t which, struct job_list *list)
{
        int r = 0;

        if (reply->type != REDIS_REPLY_ARRAY)
                return 0;
        for (size_t i = 0; i + 1 < reply->elements && r >= 0; i += 2) {
                const redisReply *thread = reply->element[i], *entry = reply->element[i + 1];

                if (thread->type != REDIS_REPLY_STRING || entry->type != REDIS_REPLY_STRING)
                        continue;
                struct field field = {.text = thread->str, .len = thread->len};
                struct field value = {.text = entry->str, .len = entry->len};
                r = job_list_add(list, which > 0, &field, &value);
        }
        return r;
}

static const struct works_format format = {
        .n_asks = ELEMENTSOF(suffixes), .ask = ask, .take = take, .decode = sidekiq_job_decode};

static int works_read(const struct works_request *request, works_fn done, void *userdata, struct works **ret)
{
        return redis_works_read(&format, request, done, userdata, ret);
}

const struct works_ops sidekiq_works = {.read = works_read, .free = redis_works_free};
