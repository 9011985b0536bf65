/* SPDX-License-Identifier: MIT */
/* How Resque's queues stand in Redis: a set of their names, a list for each, and one of failed jobs. When a
 * job was put there is not told. */
#include "frameworks/resque/resque_queues.h"
#include "frameworks/redis_queues.h"
#include "frameworks/resque/resque.h"
#include "model/queues.h"
#include <hiredis/hiredis.h>
#include <strings.h>

/* What is asked for in the first round; of each queue its size. */
enum { ASK_NAMES, ASK_PAUSED, ASK_FAILED, _ASK_MAX };

static int ask(const char *namespace, const char *queue, size_t which, struct beats_command *ret)
{
        static const char *const questions[][2] = {
                [ASK_NAMES] = {"SMEMBERS", "queues"},
                [ASK_PAUSED] = {"GET", "pause-all-workers"},
                [ASK_FAILED] = {"LLEN", "failed"},
        };
        char *key = resque_key(namespace, queue ? "queue" : questions[which][1], queue);

        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){
                .argv = {queue ? "LLEN" : questions[which][0], key},
                .argc = 2,
                .keys = {key},
        };
        return 0;
}

static int take_first(const redisReply *reply, size_t which, struct queues_found *found)
{
        if (which == ASK_FAILED)
                found->queues->dead = queues_number(reply);
        else
                found->all_paused = reply->type == REDIS_REPLY_STRING && strcasecmp(reply->str, "true") == 0;
        return 0;
}

/* An empty queue is not behind. */
static void take_each(const redisReply *reply, size_t which _unused_, struct queues *queues _unused_,
                      struct queue *queue)
{
        queue->size = queues_number(reply);
        queue->latency_known = reply->type == REDIS_REPLY_INTEGER && queue->size == 0;
}

static const struct queues_format format = {
        .n_first = _ASK_MAX, .n_each = 1, .ask = ask, .take_first = take_first, .take_each = take_each};

static int queues_read(struct redis *redis, const char *namespace, queues_read_fn callback, void *userdata,
                       struct queues_read **ret)
{
        const struct queues_source source = {.redis = redis, .namespace = namespace};

        return redis_queues_read(&format, &source, callback, userdata, ret);
}

const struct queues_ops resque_queues = {.read = queues_read, .free = redis_queues_free};
