/* SPDX-License-Identifier: MIT */
/* Resque's data in Redis. Workers: a set of identities, one hash with the time
 * of each worker's last heartbeat, and one key per busy worker with its job. Queues: a set of names, a
 * list per queue, and a list of failed jobs. The time at which a job was enqueued is not stored. */
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "frameworks/redis_running_jobs.h"
#include "frameworks/resque/resque.h"
#include "redis/redis_command.h"
#include "wire/json.h"
#include <strings.h>

char *resque_key(const char *namespace, const char *name, const char *suffix)
{
        return decode_key(namespace && *namespace ? namespace : RESQUE_NAMESPACE, name, suffix);
}

bool resque_heartbeat_decode(const struct field *field, struct heartbeat *ret)
{
        uint64_t sent_usec;

        if (!decode_iso8601(field, &sent_usec))
                return false;
        *ret = (struct heartbeat){.sent_usec = sent_usec, .concurrency = 1};
        return true;
}

static int ask_heartbeat(const char *namespace, const char *identity, bool with_info _unused_,
                         struct redis_command *ret)
{
        return command_make_pair(ret, "HGET", resque_key(namespace, RESQUE_HEARTBEATS, NULL),
                                 strdup(identity));
}

static bool take_heartbeat(const redisReply *reply, struct heartbeat *ret,
                           struct heartbeat_info **info _unused_)
{
        const struct field field = reply_text(reply);

        return resque_heartbeat_decode(&field, ret);
}

static int ask_outcomes(const char *namespace, const char *identity, struct redis_command *ret)
{
        return command_make_pair(ret, "MGET", resque_key(namespace, RESQUE_PROCESSED, identity),
                                 resque_key(namespace, RESQUE_FAILED, identity));
}

/* The keys do not exist before the first job. */
static struct worker_outcomes take_outcomes(const redisReply *reply)
{
        static const struct field none = {.text = "0", .len = 1};
        const struct field processed = reply_element(reply, 0), failed = reply_element(reply, 1);

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2)
                return (struct worker_outcomes){0};
        return decode_outcomes(processed.text ? &processed : &none, failed.text ? &failed : &none);
}

static int ask_work_list(const char *namespace, const char *identity, struct redis_command *ret)
{
        return command_make(ret, resque_key(namespace, RESQUE_WORKER, identity), WORDS("EXISTS"));
}

static const struct heartbeat_format heartbeats = {
        .key = resque_key,
        .set = RESQUE_WORKERS,
        .identity_parse = resque_identity_parse,
        .ask_heartbeat = ask_heartbeat,
        .take_heartbeat = take_heartbeat,
        .ask_outcomes = ask_outcomes,
        .take_outcomes = take_outcomes,
        .ask_work_list = ask_work_list,
};

/* Returns the job data of ActiveJob's adapter; NULL: not a job of ActiveJob. */
static const json_t *wrapped_of(const json_t *payload)
{
        const json_t *inner = json_array_get(json_object_get(payload, "args"), 0);

        return json_is_string(json_object_get(inner, "job_class")) &&
                               json_is_string(json_object_get(inner, "job_id"))
                       ? inner
                       : NULL;
}

static int take_job(const json_t *root, struct job *job)
{
        const json_t *payload = json_object_get(root, "payload"), *wrapped = wrapped_of(payload);
        const json_t *run_at = json_object_get(root, "run_at");
        const struct field at = {.text = json_string_value(run_at), .len = json_string_length(run_at)};

        (void)decode_iso8601(&at, &job->started_usec);
        int r = json_take_text(root, "queue", &job->queue);
        if (r >= 0)
                r = json_take_text(wrapped ?: payload, wrapped ? "job_class" : "class", &job->class);
        if (r >= 0 && wrapped)
                r = json_take_text(wrapped, "job_id", &job->jid);
        if (r >= 0 && !wrapped)
                r = (job->jid = strdup("-")) ? 0 : -ENOMEM;
        return r;
}

int resque_job_decode(struct job *job)
{
        _cleanup_json_ json_t *root = NULL;
        int r = decode_job(job->entry, job->entry_len, &root);

        return r < 0 ? r : take_job(root, job);
}

static int request_running_jobs(const char *namespace, const char *identity, size_t which _unused_,
                                struct redis_command *ret)
{
        return command_make(ret, resque_key(namespace, RESQUE_WORKER, identity), WORDS("GET"));
}

static int take_running_jobs(const redisReply *reply, size_t which _unused_, struct job_list *list)
{
        const struct field thread = {.text = ""}, entry = reply_text(reply);

        return entry.text ? job_list_add(list, false, &thread, &entry) : 0;
}

static const struct running_jobs_format running_jobs = {
        .n_asks = 1, .ask = request_running_jobs, .take = take_running_jobs, .decode = resque_job_decode};

static int take_paused(const redisReply *reply, struct queues_found *found)
{
        if (reply->type == REDIS_REPLY_STRING && strcasecmp(reply->str, "true") == 0)
                queues_pause_all(found->queues);
        return 0;
}

static int take_size(const redisReply *reply, struct queues_found *found)
{
        struct queue *queue = found->queue;

        queue->size = queues_number(reply);
        /* An empty queue has no latency. */
        queue->latency_known = reply->type == REDIS_REPLY_INTEGER && queue->size == 0;
        return 0;
}

static const struct queues_question questions[] = {
        {QUEUES_ALL, {"SMEMBERS"}, "queues", .take = queues_take_names},
        {QUEUES_ALL, {"GET"}, "pause-all-workers", .take = take_paused},
        {QUEUES_ALL, {"LLEN"}, "failed", .counter = offsetof(struct queues, dead)},
        {QUEUES_EACH, {"LLEN"}, "queue", .take = take_size},
};

static const struct queues_format queues = {
        .questions = questions, .n = ELEMENTSOF(questions), .key = resque_key};

const struct redis_format resque_redis_format = {
        .traits = &resque_traits,
        .heartbeats = &heartbeats,
        .running_jobs = &running_jobs,
        .queues = &queues,
};
