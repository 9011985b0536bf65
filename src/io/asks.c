/* SPDX-License-Identifier: MIT */
/* Several questions to Redis, and one answer. */
#include "io/asks.h"
#include "base/macro.h"
#include "io/redis.h"
#include <errno.h>
#include <stdlib.h>

struct asks {
        const struct asks_ops *ops;
        void *userdata;
        size_t pending; /* questions whose reply has not been taken yet: each refers to this */
        bool freed;     /* by who asked */
};

struct ask {
        struct asks *asks;
        size_t tag;
};

int asks_new(const struct asks_ops *ops, void *userdata, struct asks **ret)
{
        struct asks *asks = malloc(sizeof(*asks));

        if (!asks)
                return -ENOMEM;
        *asks = (struct asks){.ops = ops, .userdata = userdata};
        *ret = asks;
        return 0;
}

struct asks *asks_free(struct asks *asks)
{
        if (!asks)
                return NULL;
        if (asks->pending == 0)
                free(asks);
        else
                asks->freed = true;
        return NULL;
}

static void on_reply(struct redis *redis _unused_, const struct redisReply *reply, void *userdata)
{
        _cleanup_free_ struct ask *ask = userdata;
        struct asks *asks = ask->asks;

        /* It counts until it was taken, so that it may be freed meanwhile. */
        if (!asks->freed)
                asks->ops->reply(reply, ask->tag, asks->userdata);
        if (--asks->pending > 0)
                return;
        if (asks->freed)
                free(asks);
        else
                asks->ops->done(asks->userdata);
}

int asks_add(struct asks *asks, struct redis *redis, size_t tag, int argc, const char *const argv[],
             const size_t argvlen[])
{
        struct ask *ask = malloc(sizeof(*ask));

        if (!ask)
                return -ENOMEM;
        *ask = (struct ask){.asks = asks, .tag = tag};
        int r = redis_command_forbiddable(redis, on_reply, ask, argc, argv, argvlen);
        if (r < 0) {
                free(ask);
                return r;
        }
        asks->pending++;
        return 0;
}

size_t asks_pending(const struct asks *asks)
{
        return asks->pending;
}
