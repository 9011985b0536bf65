/* SPDX-License-Identifier: MIT */
/* BullMQ's queues and jobs in Redis. A queue is a list of the ids of jobs that wait, with the oldest at its
 * end, and further lists and sets beside it; a job is a hash. BullMQ keeps no list of all queues: those with
 * a worker are in the names of connections. */
#include "frameworks/bullmq/clients.h"
#include "frameworks/decode.h"
#include "frameworks/decode_job.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "model/job.h"
#include "redis/redis_command.h"
#include "wire/json.h"
#include <stdio.h>
#include <string.h>

static int take_names(const redisReply *reply, struct queues_found *found)
{
        struct field text = reply_text(reply), line;
        struct bullmq_client client;
        size_t left = BULLMQ_CLIENTS_MAX;

        while (left > 0 && bullmq_next_line(&text, &line)) {
                if (!bullmq_client_parse(&line, bullmq_prefix(found->namespace), found->database, &client))
                        continue;
                left--;
                if (queues_add_once(found->queues, client.queue) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int take_more(const redisReply *reply, struct queues_found *found)
{
        found->queue->size = MIN(found->queue->size + queues_number(reply), QUEUE_JOBS_MAX);
        return 0;
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
        if (delay > 0 && delay < (double)BULLMQ_TIME_MAX_MSEC)
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
            !decode_count(created.text, created.len, BULLMQ_TIME_MAX_MSEC, &ms))
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
        {QUEUES_ALL, {"CLIENT", "TYPE", "normal"}, "LIST", .take = take_names},
        {QUEUES_EACH, {"LLEN"}, "wait", .take = queues_take_size},
        {QUEUES_EACH, {"LLEN"}, "paused", .take = take_more},
        {QUEUES_EACH, {"ZCARD"}, "prioritized", .take = take_more},
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

const struct queues_format bullmq_queues = {
        .questions = questions,
        .n = ELEMENTSOF(questions),
        .key = bullmq_key,
};

static size_t count_nameless(const struct field *clients, const char *namespace, unsigned database)
{
        struct field text = *clients, line;
        struct bullmq_client client;
        size_t n = 0;

        while (bullmq_next_line(&text, &line))
                n += bullmq_client_parse(&line, bullmq_prefix(namespace), database, &client) &&
                     !client.identity.text;
        return n;
}

const struct redis_format bullmq_redis_format = {
        .traits = &bullmq_traits,
        .live = &bullmq_live_format,
        .queues = &bullmq_queues,
        .count_nameless = count_nameless,
};
