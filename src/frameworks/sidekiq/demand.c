/* SPDX-License-Identifier: MIT */
/* Reads what waits in some of Sidekiq's queues, and what its jobs take: all in one round trip, two commands
 * for each queue, and once a minute two more. */
#include "frameworks/sidekiq/demand.h"
#include "frameworks/decode.h"
#include "frameworks/redis_queues.h"
#include "frameworks/sidekiq/durations.h"
#include "frameworks/sidekiq/job.h"
#include "io/asks.h"
#include "model/queues.h"
#include "wire/withhold.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The questions that there are once, and from TAG_QUEUES on two for each queue. */
enum { TAG_PAUSED, TAG_DONE, TAG_MINUTE_OLD, TAG_MINUTE_NEW, TAG_QUEUES };

struct demand {
        struct redis *redis;
        char *namespace;
        demand_fn callback;
        void *userdata;
        struct asks *asks;
        struct queues *queues; /* of the reading under way */
        struct queues_found found;
        bool done_known;
        uint64_t done;
        char error[256]; /* "": none */
        usec_t minute;   /* of which the metrics were asked for last, since 1970 */
        bool aged;       /* what a minute tells is taken */
        struct durations durations;
};

static struct demand *demand_free(struct demand *demand)
{
        if (!demand)
                return NULL;
        asks_free(demand->asks);
        queues_free(demand->queues);
        redis_queues_found_clear(&demand->found);
        durations_clear(&demand->durations);
        free(demand->namespace);
        free(demand);
        return NULL;
}

static void fail(struct demand *demand, const redisReply *reply)
{
        if (demand->error[0] != '\0')
                return;
        if (reply)
                snprintf(demand->error, sizeof(demand->error), WITHHOLD_ANSWER "%.200s'", reply->str);
        else
                snprintf(demand->error, sizeof(demand->error), "Redis went away or did not answer in time");
}

static void take_done(struct demand *demand, const redisReply *reply)
{
        unsigned long long done;

        /* It is not there before the first job. */
        demand->done = 0;
        demand->done_known = reply->type == REDIS_REPLY_NIL;
        if (reply->type == REDIS_REPLY_STRING && decode_count(reply->str, reply->len, INT64_MAX, &done)) {
                demand->done = done;
                demand->done_known = true;
        }
}

static void take_minute(struct demand *demand, const redisReply *reply)
{
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
                return;
        if (!demand->aged)
                durations_age(&demand->durations);
        demand->aged = true;
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
                const redisReply *name = reply->element[i], *value = reply->element[i + 1];

                if (name->type == REDIS_REPLY_STRING && value->type == REDIS_REPLY_STRING)
                        durations_take(&demand->durations, &(struct field){name->str, name->len},
                                       &(struct field){value->str, value->len});
        }
}

static void take_queue(struct demand *demand, const redisReply *reply, size_t which)
{
        struct queue *queue = &demand->queues->list[which / 2];
        char class[JOB_CLASS_MAX];
        usec_t at;

        if (which % 2 == 0) {
                queue->size = queues_number(reply);
                return;
        }
        queue->latency_known = reply->type == REDIS_REPLY_NIL;
        if (reply->type != REDIS_REPLY_STRING)
                return;
        if (sidekiq_job_head(reply->str, reply->len, &at, class))
                queue_waits_since(queue, at);
        durations_see(&demand->durations, queue->name, class);
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct demand *demand = userdata;
        /* The others may be forbidden, or too large: less is known then. */
        bool needed = tag == TAG_PAUSED || (tag >= TAG_QUEUES && (tag - TAG_QUEUES) % 2 == 0);

        if (!reply || reply->type == REDIS_REPLY_ERROR) {
                if (!reply || (needed && !redis_queues_is_wrong_type(reply)))
                        fail(demand, reply);
                return;
        }
        if (tag >= TAG_QUEUES)
                take_queue(demand, reply, tag - TAG_QUEUES);
        else if (tag == TAG_PAUSED && queues_found_pause(&demand->found, reply) < 0)
                snprintf(demand->error, sizeof(demand->error), "memory is short");
        else if (tag == TAG_DONE)
                take_done(demand, reply);
        else if (tag != TAG_PAUSED)
                take_minute(demand, reply);
}

static void tell(struct demand *demand)
{
        struct demand_reading reading = {.done_known = demand->done_known, .done = demand->done};

        if (demand->error[0] == '\0') {
                redis_queues_pause(demand->queues, &demand->found);
                reading.queues = TAKE_PTR(demand->queues);
        } else {
                reading.error = demand->error;
        }
        demand->queues = queues_free(demand->queues);
        redis_queues_found_clear(&demand->found);
        demand->callback(&reading, demand->userdata);
        queues_free(reading.queues);
}

static void on_done(void *userdata)
{
        tell(userdata);
}

static int demand_new(struct redis *redis, const char *namespace, demand_fn callback, void *userdata,
                      struct demand **ret)
{
        static const struct asks_ops ops = {.reply = on_reply, .done = on_done};
        struct demand *demand = calloc(1, sizeof(*demand));

        if (!demand)
                return -ENOMEM;
        demand->redis = redis;
        demand->callback = callback;
        demand->userdata = userdata;
        demand->namespace = strdup(namespace ?: "");
        if (!demand->namespace || asks_new(&ops, demand, &demand->asks) < 0) {
                demand_free(demand);
                return -ENOMEM;
        }
        *ret = demand;
        return 0;
}

static int ask(struct demand *demand, size_t tag, const char *command, const char *name, const char *suffix,
               const char *more)
{
        _cleanup_free_ char *key = decode_key(demand->namespace, name, suffix);
        const char *argv[] = {command, key, more};

        if (!key)
                return -ENOMEM;
        return asks_add(demand->asks, demand->redis, tag, more ? 3 : 2, argv, NULL);
}

static int ask_metrics(struct demand *demand, usec_t realtime)
{
        usec_t minute = realtime / USEC_PER_MIN;
        char key[DURATIONS_KEY_MAX];

        demand->aged = false;
        if (minute == demand->minute)
                return 0;
        demand->minute = minute;
        int r = ask(demand, TAG_MINUTE_OLD, "HGETALL", durations_key(realtime, false, key), NULL, NULL);
        return r < 0 ? r
                     : ask(demand, TAG_MINUTE_NEW, "HGETALL", durations_key(realtime, true, key), NULL, NULL);
}

static int add_queues(struct queues *queues, const char *names)
{
        for (; *names != '\0'; names += strlen(names) + 1)
                if (!queues_add(queues, names, strlen(names)))
                        return -ENOMEM;
        return 0;
}

static int ask_all(struct demand *demand, usec_t realtime)
{
        int r = ask(demand, TAG_PAUSED, "SMEMBERS", "paused", NULL, NULL);

        if (r >= 0)
                r = ask(demand, TAG_DONE, "GET", "stat", "processed", NULL);
        if (r >= 0)
                r = ask_metrics(demand, realtime);
        for (size_t i = 0; r >= 0 && i < demand->queues->n; i++) {
                const char *name = demand->queues->list[i].name;

                r = ask(demand, TAG_QUEUES + 2 * i, "LLEN", "queue", name, NULL);
                if (r >= 0)
                        r = ask(demand, TAG_QUEUES + 2 * i + 1, "LINDEX", "queue", name, "-1");
        }
        return r;
}

static int demand_read(struct demand *demand, const char *names, usec_t realtime)
{
        if (asks_pending(demand->asks) > 0)
                return -EBUSY;
        if (redis_state(demand->redis) != REDIS_STATE_CONNECTED)
                return -ENOTCONN;
        demand->queues = queues_free(demand->queues);
        demand->queues = calloc(1, sizeof(*demand->queues));
        if (!demand->queues || add_queues(demand->queues, names) < 0)
                return -ENOMEM;
        demand->done_known = false;
        demand->error[0] = '\0';
        int r = ask_all(demand, realtime);
        if (r < 0 && asks_pending(demand->asks) > 0) {
                /* What was asked is still to be answered. */
                snprintf(demand->error, sizeof(demand->error), "it could not be asked for all of them");
                return 0;
        }
        return r;
}

static usec_t demand_service(const struct demand *demand, const char *names)
{
        return durations_service(&demand->durations, names);
}

const struct demand_ops sidekiq_demand = {
        .new = demand_new, .read = demand_read, .service = demand_service, .free = demand_free};
