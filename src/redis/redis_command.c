/* SPDX-License-Identifier: MIT */
/* Commands to Redis, alone and in batches; see the header. */
#include "redis/redis_command.h"
#include "redis/redis.h"

void command_clear(struct redis_command *command)
{
        for (size_t i = 0; i < ELEMENTSOF(command->keys); i++)
                free(command->keys[i]);
}

int command_make(struct redis_command *ret, char *key, const char *const words[])
{
        if (!key)
                return -ENOMEM;
        *ret = (struct redis_command){.argv = {words[0], key}, .argc = 2, .keys = {key}};
        for (words++; *words; words++)
                ret->argv[ret->argc++] = *words;
        return 0;
}

int command_make_pair(struct redis_command *ret, const char *command, char *key, char *second)
{
        *ret = (struct redis_command){.argv = {command, key, second}, .argc = 3, .keys = {key, second}};
        if (key && second)
                return 0;
        command_clear(ret);
        return -ENOMEM;
}

int command_add_get(struct redis_command *command, char *pattern)
{
        size_t i = 0;

        if (!pattern) {
                command_clear(command);
                return -ENOMEM;
        }
        while (command->keys[i])
                i++;
        command->keys[i] = pattern;
        command->argv[command->argc++] = "GET";
        command->argv[command->argc++] = pattern;
        return 0;
}

bool reply_is_wrong_type(const redisReply *reply)
{
        return strncmp(reply->str, "WRONGTYPE ", strlen("WRONGTYPE ")) == 0;
}

struct redis_batch {
        const struct redis_batch_ops *ops;
        void *userdata;
        size_t pending; /* commands whose reply was not delivered yet: each refers to this batch */
        bool freed;     /* by its owner */
};

struct batch_request {
        struct redis_batch *redis_batch;
        size_t tag;
};

int redis_batch_new(const struct redis_batch_ops *ops, void *userdata, struct redis_batch **ret)
{
        struct redis_batch *redis_batch = malloc(sizeof(*redis_batch));

        if (!redis_batch)
                return -ENOMEM;
        *redis_batch = (struct redis_batch){.ops = ops, .userdata = userdata};
        *ret = redis_batch;
        return 0;
}

struct redis_batch *redis_batch_free(struct redis_batch *redis_batch)
{
        if (!redis_batch)
                return NULL;
        if (redis_batch->pending == 0)
                free(redis_batch);
        else
                redis_batch->freed = true;
        return NULL;
}

static void on_reply(struct redis *redis _unused_, const struct redisReply *reply, void *userdata)
{
        _cleanup_free_ struct batch_request *ask = userdata;
        struct redis_batch *redis_batch = ask->redis_batch;

        /* The command still counts as pending here, so the callback may free the batch. */
        if (!redis_batch->freed)
                redis_batch->ops->reply(reply, ask->tag, redis_batch->userdata);
        if (--redis_batch->pending > 0)
                return;
        if (redis_batch->freed)
                free(redis_batch);
        else
                redis_batch->ops->done(redis_batch->userdata);
}

int redis_batch_add(struct redis_batch *redis_batch, struct redis *redis, size_t tag,
                    const struct redis_command *command)
{
        struct batch_request *ask = malloc(sizeof(*ask));

        if (!ask)
                return -ENOMEM;
        *ask = (struct batch_request){.redis_batch = redis_batch, .tag = tag};
        int r = redis_command_forbiddable(redis, on_reply, ask, command->argc, command->argv, NULL);
        if (r < 0) {
                free(ask);
                return r;
        }
        redis_batch->pending++;
        return 0;
}

size_t redis_batch_pending(const struct redis_batch *redis_batch)
{
        return redis_batch->pending;
}
