/* SPDX-License-Identifier: MIT */
/* What Resque's workers run: a key for each, with the one job that it runs. */
#include "frameworks/resque/resque_works.h"
#include "frameworks/redis_works.h"
#include "frameworks/resque/resque.h"
#include "frameworks/resque/resque_job.h"
#include <hiredis/hiredis.h>

static int ask(const char *namespace, const char *identity, size_t which _unused_, struct beats_command *ret)
{
        char *key = resque_key(namespace, RESQUE_WORKER, identity);

        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){.argv = {"GET", key}, .argc = 2, .keys = {key}};
        return 0;
}

static int take(const redisReply *reply, size_t which _unused_, struct job_list *list)
{
        const struct field thread = {.text = "", .len = 0}, entry = {.text = reply->str, .len = reply->len};

        return reply->type == REDIS_REPLY_STRING ? job_list_add(list, false, &thread, &entry) : 0;
}

static const struct works_format format = {
        .n_asks = 1, .ask = ask, .take = take, .decode = resque_job_decode};

static int works_read(const struct works_request *request, works_fn done, void *userdata, struct works **ret)
{
        return redis_works_read(&format, request, done, userdata, ret);
}

const struct works_ops resque_works = {.read = works_read, .free = redis_works_free};
