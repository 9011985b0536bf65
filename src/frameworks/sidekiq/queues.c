/* SPDX-License-Identifier: MIT */
/* How Sidekiq's queues stand in Redis: a set of their names and a list for each, the newest job first. */
#include "frameworks/sidekiq/queues.h"
#include "frameworks/decode.h"
#include "frameworks/redis_queues.h"
#include "frameworks/sidekiq/job.h"
#include "model/queues.h"
#include <hiredis/hiredis.h>

/* What is asked for in the first round, and for each queue in the second. */
enum { ASK_NAMES, ASK_PAUSED, ASK_RETRY, ASK_SCHEDULE, ASK_DEAD, _ASK_MAX };
enum { EACH_SIZE, EACH_OLDEST, _EACH_MAX };

struct question {
        const char *command, *key, *more; /* more: NULL: nothing stands behind the key */
};

static const struct question first[] = {
        [ASK_NAMES] = {"SMEMBERS", "queues", NULL}, [ASK_PAUSED] = {"SMEMBERS", "paused", NULL},
        [ASK_RETRY] = {"ZCARD", "retry", NULL},     [ASK_SCHEDULE] = {"ZCARD", "schedule", NULL},
        [ASK_DEAD] = {"ZCARD", "dead", NULL},
};
static_assert(ELEMENTSOF(first) == _ASK_MAX, "a question for each");

static const struct question each[] = {
        [EACH_SIZE] = {"LLEN", "queue", NULL},
        [EACH_OLDEST] = {"LINDEX", "queue", "-1"},
};
static_assert(ELEMENTSOF(each) == _EACH_MAX, "a question for each");

static int ask(const char *namespace, const char *queue, size_t which, struct beats_command *ret)
{
        const struct question *question = queue ? &each[which] : &first[which];
        char *key = decode_key(namespace, question->key, queue);

        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){
                .argv = {question->command, key, question->more},
                .argc = question->more ? 3 : 2,
                .keys = {key},
        };
        return 0;
}

static int take_first(const redisReply *reply, size_t which, struct queues_found *found)
{
        switch (which) {
        case ASK_PAUSED:
                return queues_found_pause(found, reply);
        case ASK_RETRY:
                found->queues->retry = queues_number(reply);
                break;
        case ASK_SCHEDULE:
                found->queues->schedule = queues_number(reply);
                break;
        default:
                found->queues->dead = queues_number(reply);
                break;
        }
        return 0;
}

static void take_each(const redisReply *reply, size_t which, struct queues *queues _unused_,
                      struct queue *queue)
{
        usec_t at;

        if (which == EACH_SIZE) {
                queue->size = queues_number(reply);
                return;
        }
        /* An empty queue is not behind. */
        queue->latency_known = reply->type == REDIS_REPLY_NIL;
        if (reply->type == REDIS_REPLY_STRING && sidekiq_job_enqueued_at(reply->str, reply->len, &at))
                queue_waits_since(queue, at);
}

static const struct queues_format format = {.n_first = _ASK_MAX,
                                            .n_each = _EACH_MAX,
                                            .ask = ask,
                                            .take_first = take_first,
                                            .take_each = take_each};

static int queues_read(struct redis *redis, const char *namespace, queues_read_fn callback, void *userdata,
                       struct queues_read **ret)
{
        const struct queues_source source = {.redis = redis, .namespace = namespace};

        return redis_queues_read(&format, &source, callback, userdata, ret);
}

const struct queues_ops sidekiq_queues = {.read = queues_read, .free = redis_queues_free};
