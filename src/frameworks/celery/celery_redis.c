/* SPDX-License-Identifier: MIT */
/* Celery's queues in Redis, as its transport kombu writes them: a list for each priority, which kombu rounds
 * down to 0, 3, 6 or 9 unless the application sets `priority_steps`. There is no list of the queues, and a
 * task carries no time at which it was queued. */
#include "frameworks/celery/celery.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include <stdio.h>

/* Returns the transport option `global_keyprefix`, the queue's name and the priority; a list without a queue
 * has only the name. */
static char *make_key(const char *namespace, const char *name, const char *queue)
{
        char *key;

        return asprintf(&key, "%s%s%s", namespace ?: "", queue ?: "", name) < 0 ? NULL : key;
}

static const struct queues_question questions[] = {
        {QUEUES_EACH, {"LLEN"}, "", .take = queues_take_more},
        {QUEUES_EACH,
         {"LLEN"},
         "\x06\x16"
         "3",
         .take = queues_take_more},
        {QUEUES_EACH,
         {"LLEN"},
         "\x06\x16"
         "6",
         .take = queues_take_more},
        {QUEUES_EACH,
         {"LLEN"},
         "\x06\x16"
         "9",
         .take = queues_take_more},
};

static const struct queues_format queues = {
        .questions = questions,
        .n = ELEMENTSOF(questions),
        .key = make_key,
};

const struct redis_format celery_redis_format = {
        .traits = &celery_traits,
        .queues = &queues,
};
