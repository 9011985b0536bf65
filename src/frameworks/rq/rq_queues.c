/* SPDX-License-Identifier: MIT */
/* How RQ's queues stand in Redis: a set of their keys, a list of job ids for each, the oldest first, and a
 * hash for each job. */
#include "frameworks/rq/rq_queues.h"
#include "frameworks/redis_queues.h"
#include "frameworks/rq/rq.h"
#include "model/queues.h"
#include <hiredis/hiredis.h>
#include <string.h>

/* What is asked for in the first round, and for each queue in the second. */
enum { ASK_NAMES, ASK_SUSPENDED, _ASK_MAX };
enum { EACH_SIZE, EACH_OLDEST, EACH_SCHEDULED, EACH_FAILED, _EACH_MAX };

static void ask_first(size_t which, struct beats_command *ret)
{
        static const char *const questions[][2] = {
                [ASK_NAMES] = {"SMEMBERS", RQ_QUEUES},
                [ASK_SUSPENDED] = {"EXISTS", "rq:suspended"},
        };

        *ret = (struct beats_command){.argv = {questions[which][0], questions[which][1]}, .argc = 2};
}

static int ask(const char *namespace _unused_, const char *queue, size_t which, struct beats_command *ret)
{
        static const char *const keys[] = {
                [EACH_SIZE] = "rq:queue",
                [EACH_OLDEST] = "rq:queue",
                [EACH_SCHEDULED] = "rq:scheduled",
                [EACH_FAILED] = "rq:failed",
        };

        if (!queue) {
                ask_first(which, ret);
                return 0;
        }
        char *key = decode_key(NULL, keys[which], queue);
        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){
                .argv = {which == EACH_SIZE ? "LLEN" : "ZCARD", key},
                .argc = 2,
                .keys = {key},
        };
        /* Of the job at the head of the list: that is all it goes through. */
        if (which == EACH_OLDEST)
                *ret = (struct beats_command){
                        .argv = {"SORT", key, "BY", "nosort", "LIMIT", "0", "1", "GET",
                                 "rq:job:*->enqueued_at"},
                        .argc = 9,
                        .keys = {key},
                };
        return 0;
}

static int take_first(const redisReply *reply, size_t which _unused_, struct queues_found *found)
{
        found->all_paused = queues_number(reply) > 0;
        return 0;
}

static void take_oldest(struct queue *queue, const redisReply *reply)
{
        const redisReply *at =
                reply->type == REDIS_REPLY_ARRAY && reply->elements == 1 ? reply->element[0] : NULL;
        usec_t since;

        /* An empty queue is not behind. */
        queue->latency_known = reply->type == REDIS_REPLY_ARRAY && reply->elements == 0;
        if (at && at->type == REDIS_REPLY_STRING &&
            decode_iso8601(&(struct field){.text = at->str, .len = at->len}, &since))
                queue_waits_since(queue, since);
}

/* What RQ has for each queue is told of all. A job that is to be retried is a scheduled one. */
static void take_each(const redisReply *reply, size_t which, struct queues *queues, struct queue *queue)
{
        switch (which) {
        case EACH_SIZE:
                queue->size = queues_number(reply);
                break;
        case EACH_OLDEST:
                take_oldest(queue, reply);
                break;
        case EACH_SCHEDULED:
                queues->schedule += queues_number(reply);
                break;
        default:
                queues->dead += queues_number(reply);
                break;
        }
}

static const struct queues_format format = {
        .n_first = _ASK_MAX,
        .n_each = _EACH_MAX,
        .ask = ask,
        .name = rq_queue_name,
        .take_first = take_first,
        .take_each = take_each,
};

static int queues_read(struct redis *redis, const char *namespace, queues_read_fn callback, void *userdata,
                       struct queues_read **ret)
{
        const struct queues_source source = {.redis = redis, .namespace = namespace};

        return redis_queues_read(&format, &source, callback, userdata, ret);
}

const struct queues_ops rq_queues = {.read = queues_read, .free = redis_queues_free};
