/* SPDX-License-Identifier: MIT */
/* BullMQ's queues and jobs in Redis. A queue is a list of the ids of jobs that wait, with the oldest at its
 * end, and further lists and sets beside it; a job is a hash. BullMQ keeps no list of all queues. */
#include "frameworks/bullmq/bullmq.h"
#include "frameworks/decode.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "redis/redis_command.h"
#include "wire/json.h"
#include <stdio.h>

/* BullMQ's prefix of keys unless the application sets another. */
#define PREFIX "bull"

/* The limit of BullMQ's times, which are in milliseconds. */
#define TIME_MAX_MSEC (UINT64_MAX / 4 / 1000)

/* Returns `PREFIX:QUEUE:NAME`, or only the name if there is no queue. */
static char *make_key(const char *namespace, const char *name, const char *queue)
{
        const char *prefix = namespace && *namespace ? namespace : PREFIX;
        char *key;

        if (!queue)
                return strdup(name);
        return asprintf(&key, "%s:%s:%s", prefix, queue, name) < 0 ? NULL : key;
}

static int take_paused(const redisReply *reply, struct queues_found *found)
{
        found->queue->paused = reply_text(reply).text;
        return 0;
}

/* Adds the delay that the application has asked for. Options that cannot be read have none. */
static bool add_delay(struct queues_found *found, const struct field *options, usec_t *since)
{
        _cleanup_json_ json_t *root = NULL;

        if (!options->text)
                return true;
        if (!queues_may_decode(found, options->len) || decode_job(options->text, options->len, &root) < 0)
                return false;
        double delay = json_number_value(json_object_get(root, "delay"));
        if (delay > 0 && delay < (double)TIME_MAX_MSEC)
                *since += (usec_t)delay * USEC_PER_MSEC;
        return true;
}

/* The job that is taken next: when it was created, its options, and how often it was begun. Since when a job
 * waits that was begun before is not known. */
static int take_oldest(const redisReply *reply, struct queues_found *found)
{
        struct queue *queue = found->queue;
        const struct field created = reply_element(reply, 0), options = reply_element(reply, 1);
        unsigned long long ms;
        usec_t since;

        if (reply->type == REDIS_REPLY_ARRAY && reply->elements == 0)
                queue->latency_known |= queue->size == 0;
        if (!created.text || reply_element(reply, 2).text ||
            !decode_count(created.text, created.len, TIME_MAX_MSEC, &ms))
                return 0;
        since = ms * USEC_PER_MSEC;
        usec_t known = queue->latency_known ? queue->latency : 0;
        if (add_delay(found, &options, &since)) {
                queue_waits_since(queue, since);
                queue->latency = MAX(queue->latency, known);
        }
        return 0;
}

#define OLDEST "SORT", "BY", "nosort", "LIMIT", "0", "1"

/* A queue's jobs wait in a list, and in a set if they have a priority. Versions before 5 move the list while
 * the queue is paused. */
static const struct queues_question questions[] = {
        {QUEUES_EACH, {"LLEN"}, "wait", .take = queues_take_size},
        {QUEUES_EACH, {"LLEN"}, "paused", .take = queues_take_more},
        {QUEUES_EACH, {"ZCARD"}, "prioritized", .take = queues_take_more},
        {QUEUES_EACH, {"HGET", "paused"}, "meta", .take = take_paused, .optional = true},
        {QUEUES_EACH,
         {OLDEST, "DESC"},
         "wait",
         .get = {"*->timestamp", "*->opts", "*->ats"},
         .take = take_oldest,
         .optional = true},
        {QUEUES_EACH,
         {OLDEST},
         "prioritized",
         .get = {"*->timestamp", "*->opts", "*->ats"},
         .take = take_oldest,
         .optional = true},
        {QUEUES_EACH, {"ZCARD"}, "delayed", .counter = offsetof(struct queues, schedule)},
        {QUEUES_EACH, {"ZCARD"}, "failed", .counter = offsetof(struct queues, dead)},
};

static const struct queues_format bullmq_queues = {
        .questions = questions,
        .n = ELEMENTSOF(questions),
        .key = make_key,
};

const struct redis_format bullmq_redis_format = {
        .traits = &bullmq_traits,
        .queues = &bullmq_queues,
};
