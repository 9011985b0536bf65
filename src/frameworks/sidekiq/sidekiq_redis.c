/* SPDX-License-Identifier: MIT */
/* Sidekiq's data in Redis. Heartbeats: a set of identities, a hash for each, and
 * beside that hash the work list, a hash with an entry per thread. Queues: a set of names, and a list per
 * queue with the newest job first. */
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "frameworks/redis_running_jobs.h"
#include "frameworks/sidekiq/durations.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/job.h"
#include "redis/redis_command.h"

/* Key suffixes of work lists: a process writes `work` from 6.4.2 on, `workers` before. */
static const char *const suffixes[] = {"work", "workers"};

static int ask_heartbeat(const char *namespace, const char *identity, bool with_info,
                         struct redis_command *ret)
{
        return command_make(ret, decode_key(namespace, identity, NULL),
                            WORDS("HMGET", "busy", "beat", "quiet", "concurrency", "rss", "sqmgr_processed",
                                  "sqmgr_failed", "sqmgr_failed_class", "sqmgr_failed_class_count",
                                  with_info ? "info" : NULL));
}

static int ask_work_list(const char *namespace, const char *identity, struct redis_command *ret)
{
        return command_make_pair(ret, "EXISTS", decode_key(namespace, identity, suffixes[0]),
                                 decode_key(namespace, identity, suffixes[1]));
}

static bool take_heartbeat(const redisReply *reply, struct heartbeat *ret, struct heartbeat_info **info)
{
        const struct field reported = reply_element(reply, _SIDEKIQ_FIELD_MAX);
        struct field fields[_SIDEKIQ_FIELD_MAX];
        struct heartbeat_info *decoded;

        reply_fields(reply, fields, ELEMENTSOF(fields));
        if (reported.text && !*info && sidekiq_info_decode(&reported, &decoded) == 0)
                *info = decoded;
        if (!sidekiq_heartbeat_decode(fields, ret))
                return false;
        if (ret->concurrency == 0 && *info)
                ret->concurrency = (*info)->concurrency;
        return true;
}

static const struct heartbeat_format heartbeats = {
        .key = decode_key,
        .set = SIDEKIQ_PROCESSES,
        .identity_parse = sidekiq_identity_parse,
        .ask_heartbeat = ask_heartbeat,
        .take_heartbeat = take_heartbeat,
        .ask_work_list = ask_work_list,
};

static int request_running_jobs(const char *namespace, const char *identity, size_t which,
                                struct redis_command *ret)
{
        return command_make(ret, decode_key(namespace, identity, suffixes[which]), WORDS("HGETALL"));
}

static int take_running_jobs(const redisReply *reply, size_t which, struct job_list *list)
{
        int r = 0;

        for (size_t i = 0; r >= 0 && reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
                const struct field thread = reply_element(reply, i), entry = reply_element(reply, i + 1);

                if (thread.text && entry.text)
                        r = job_list_add(list, which > 0, &thread, &entry);
        }
        return r;
}

static const struct running_jobs_format running_jobs = {.n_asks = ELEMENTSOF(suffixes),
                                                        .ask = request_running_jobs,
                                                        .take = take_running_jobs,
                                                        .decode = sidekiq_job_decode};

/* Data that autoscaling keeps between readings. */
struct measures {
        struct durations durations;
        usec_t aged_at; /* wall clock of the last reading that added a minute's hash */
};

static void measures_clear(void *measures)
{
        durations_clear(&((struct measures *)measures)->durations);
}

static void take_service(const void *measures, struct queues *queues)
{
        durations_fill(&((const struct measures *)measures)->durations, queues);
}

static int take_done(const redisReply *reply, struct queues_found *found)
{
        const struct field text = reply_text(reply);
        unsigned long long done = 0;

        /* The key does not exist before the first job is done. */
        found->done_known = reply->type == REDIS_REPLY_NIL ||
                            (text.text && decode_count(text.text, text.len, INT64_MAX, &done));
        found->done = done;
        return 0;
}

static const char *minute_key(usec_t realtime, char text[static QUEUE_KEY_MAX])
{
        return durations_key(realtime, false, text);
}

static const char *newer_minute_key(usec_t realtime, char text[static QUEUE_KEY_MAX])
{
        return durations_key(realtime, true, text);
}

static int take_minute(const redisReply *reply, struct queues_found *found)
{
        struct measures *measures = found->measures;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements == 0)
                return 0;
        if (measures->aged_at != found->realtime)
                durations_age(&measures->durations);
        measures->aged_at = found->realtime;
        for (size_t i = 0; i + 1 < reply->elements; i += 2) {
                const struct field name = reply_element(reply, i), value = reply_element(reply, i + 1);

                if (name.text && value.text)
                        durations_take(&measures->durations, &name, &value);
        }
        return 0;
}

static int take_oldest(const redisReply *reply, struct queues_found *found)
{
        const struct field job = reply_text(reply);
        struct measures *measures = found->measures;
        char class[JOB_CLASS_MAX] = "";
        usec_t at;

        /* An empty queue has no latency. */
        found->queue->latency_known = reply->type == REDIS_REPLY_NIL;
        if (!job.text)
                return 0;
        if (queues_may_decode(found, job.len) && sidekiq_job_head(job.text, job.len, &at, class))
                queue_waits_since(found->queue, at);
        if (measures)
                durations_see(&measures->durations, found->queue->name, class);
        return 0;
}

/* A job that is overdue for this long counts for all queues: no worker runs anywhere that would enqueue it.
 */
#define OVERDUE_USEC (30 * USEC_PER_SEC)

/* The score is the time, in seconds with a fraction. A time before 1970, as -inf, has passed. */
static bool decode_score(const struct field *score, usec_t *ret)
{
        char text[32], *end;

        if (!score->text || score->len == 0 || score->len >= sizeof(text))
                return false;
        memcpy(text, score->text, score->len);
        text[score->len] = '\0';
        double seconds = strtod(text, &end);
        if (*end != '\0' || !(seconds <= 1e11))
                return false;
        *ret = seconds > 0 ? (usec_t)(seconds * USEC_PER_SEC) : 0;
        return true;
}

static int take_scheduled(const redisReply *reply, struct queues_found *found)
{
        for (size_t i = 0; reply->type == REDIS_REPLY_ARRAY && i + 1 < reply->elements; i += 2) {
                const struct field job = reply_element(reply, i), score = reply_element(reply, i + 1);
                char queue[QUEUE_NAME_MAX + 1];
                usec_t due;

                if (!job.text || !decode_score(&score, &due))
                        continue;
                if (usec_add(due, OVERDUE_USEC) <= found->realtime || !queues_may_decode(found, job.len))
                        queues_take_due(found, NULL, due);
                else if (sidekiq_job_queue(job.text, job.len, queue, sizeof(queue)))
                        queues_take_due(found, &(struct field){.text = queue, .len = strlen(queue)}, due);
        }
        return 0;
}

/* Scheduled jobs may be large, and are read four times a second: few, and only those that soon fall due.
 * Another process that enqueues the first ones enqueues the next ones, too. */
#define SCHEDULED "ZRANGEBYSCORE", "-inf", QUEUES_UNTIL, "WITHSCORES", "LIMIT", "0", "4"

static const struct queues_question questions[] = {
        {QUEUES_ALL, {"SMEMBERS"}, "queues", .take = queues_take_names},
        {QUEUES_ALL | QUEUES_NAMED, {"SMEMBERS"}, "paused", .take = queues_take_paused},
        {QUEUES_ALL, {"ZCARD"}, "retry", .counter = offsetof(struct queues, retry)},
        {QUEUES_ALL, {"ZCARD"}, "schedule", .counter = offsetof(struct queues, schedule)},
        {QUEUES_ALL, {"ZCARD"}, "dead", .counter = offsetof(struct queues, dead)},
        {QUEUES_NAMED, {"GET"}, "stat:processed", .take = take_done, .optional = true},
        {QUEUES_NAMED, {"HGETALL"}, .minute_key = minute_key, .take = take_minute, .optional = true},
        {QUEUES_NAMED, {"HGETALL"}, .minute_key = newer_minute_key, .take = take_minute, .optional = true},
        {QUEUES_DUE, {SCHEDULED}, "schedule", .take = take_scheduled, .optional = true},
        {QUEUES_DUE, {SCHEDULED}, "retry", .take = take_scheduled, .optional = true},
        {QUEUES_EACH, {"LLEN"}, "queue", .take = queues_take_size},
        {QUEUES_EACH, {"LINDEX", "-1"}, "queue", .take = take_oldest, .optional = true},
};

static const struct queues_format queues = {
        .questions = questions,
        .n = ELEMENTSOF(questions),
        .key = decode_key,
        .measures_size = sizeof(struct measures),
        .measures_clear = measures_clear,
        .take_service = take_service,
};

const struct redis_format sidekiq_redis_format = {
        .traits = &sidekiq_traits,
        .heartbeats = &heartbeats,
        .running_jobs = &running_jobs,
        .queues = &queues,
        .requeue = &sidekiq_requeue,
        .signals_suffix = "-signals",
};
