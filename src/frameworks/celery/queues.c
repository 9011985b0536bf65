/* SPDX-License-Identifier: MIT */
/* Reads the queues of Celery; see the header. */
#include "frameworks/celery/queues.h"
#include "frameworks/queue_reader.h"
#include "io/clock.h"
#include "redis/redis_batch.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

/* Kombu's lists of a queue, by priority. */
static const unsigned priorities[] = {0, 3, 6, 9};

struct celery_queues {
        struct live_ask *ask;
        struct queues *queues;
        struct celery_waits *waits;
        struct redis_batch
                *batch; /* tag: index of the queue times the priorities, plus index of the priority */
        struct error_report error;
        celery_queues_fn done;
        void *userdata;
};

static void reading_free(struct celery_queues *reading)
{
        redis_batch_free(reading->batch);
        queues_free(reading->queues);
        free(reading);
}

struct celery_queues *celery_queues_free(struct celery_queues *reading)
{
        if (!reading)
                return NULL;
        celery_waits_forget(reading->waits);
        live_ask_fail(reading->ask, ANSWER_LOST, "connection lost");
        reading_free(reading);
        return NULL;
}

/* names: each ends with a NUL, the list with two; NULL: none. */
static int add_names(struct queues *queues, const char *names)
{
        for (const char *name = names; name && *name != '\0'; name += strlen(name) + 1) {
                if (strlen(name) <= QUEUE_NAME_MAX && queues_add_once(queues, name) < 0)
                        return -ENOMEM;
        }
        return 0;
}

static int gather_names(struct queues *queues, const struct celery_nodes *nodes, const struct query *query)
{
        int r = 0;

        if (query->n_texts > 0)
                return add_names(queues, query_text(query, 0));
        CELERY_NODES_FOREACH(nodes, node)
        r = r < 0 ? r : add_names(queues, node->queues);
        return r;
}

static void on_length(const redisReply *reply, size_t tag, void *userdata)
{
        struct celery_queues *reading = userdata;
        struct queue *queue = &reading->queues->list[tag / ELEMENTSOF(priorities)];

        if (!reply)
                error_report_set(&reading->error, "connection to Redis lost, or no reply in time");
        else if (reply->type != REDIS_REPLY_ERROR)
                queue->size = MIN(queue->size + queues_number(reply), QUEUE_JOBS_MAX);
        /* A key of another type holds no tasks. */
        else if (strncmp(reply->str, "WRONGTYPE", 9) != 0)
                error_report_quote(&reading->error, reply->str, "command refused");
}

static void answer(struct celery_queues *reading)
{
        struct live_ask *ask = reading->ask;

        if (reading->error.text[0] != '\0') {
                ask->answer->status = ANSWER_REFUSED;
                ask->answer->error = reading->error;
                celery_waits_forget(reading->waits);
        } else {
                queues_sort(reading->queues);
                celery_waits_judge(reading->waits, reading->queues, clock_now(CLOCK_MONOTONIC));
                ask->answer->queues.queues = TAKE_PTR(reading->queues);
        }
        ask->done(ask);
}

static void on_lengths(void *userdata)
{
        struct celery_queues *reading = userdata;

        answer(reading);
        reading->done(reading->userdata);
        reading_free(reading);
}

static int ask_lengths(struct celery_queues *reading, struct redis *redis, const struct celery_names *names)
{
        int r = 0;

        for (size_t tag = 0; tag < reading->queues->n * ELEMENTSOF(priorities) && r >= 0; tag++) {
                const char *name = reading->queues->list[tag / ELEMENTSOF(priorities)].name;
                _cleanup_free_ char *key =
                        celery_queue_key(names, name, priorities[tag % ELEMENTSOF(priorities)]);
                const char *const argv[] = {"LLEN", key};

                r = key ? redis_batch_add(reading->batch, redis, tag, ELEMENTSOF(argv), argv, NULL) : -ENOMEM;
        }
        return r;
}

struct celery_queues *celery_queues_read(struct redis *redis, const struct celery_names *names,
                                         struct celery_waits *waits, struct live_ask *ask,
                                         celery_queues_fn done, void *userdata)
{
        static const struct redis_batch_ops ops = {.reply = on_length, .done = on_lengths};
        struct celery_queues *reading = calloc(1, sizeof(*reading));

        if (!reading) {
                live_ask_fail(ask, ANSWER_LOST, "out of memory");
                return NULL;
        }
        *reading = (struct celery_queues){.ask = ask,
                                          .queues = calloc(1, sizeof(*reading->queues)),
                                          .waits = waits,
                                          .done = done,
                                          .userdata = userdata};
        int r = reading->queues ? redis_batch_new(&ops, reading, &reading->batch) : -ENOMEM;
        if (r >= 0)
                r = gather_names(reading->queues, waits->nodes, ask->query);
        if (r >= 0)
                r = ask_lengths(reading, redis, names);
        if (r >= 0 && redis_batch_pending(reading->batch) > 0)
                return reading;
        /* No queue is consumed, or not all lengths could be asked for. */
        if (r < 0)
                error_report_set(&reading->error,
                                 r == -ENOMEM ? "out of memory" : "connection to Redis lost");
        answer(reading);
        reading_free(reading);
        return NULL;
}
