/* SPDX-License-Identifier: MIT */
/* Resque's data in Redis, and its struct framework. Workers: a set of identities, one hash with the time
 * of each worker's last heartbeat, and one key per busy worker with its job. Queues: a set of names, a
 * list per queue, and a list of failed jobs. The time at which a job was enqueued is not stored. */
#include "frameworks/framework.h"
#include "frameworks/heartbeat_format.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "frameworks/redis_running_jobs.h"
#include "frameworks/resque/resque.h"
#include "model/worker.h"
#include "redis/redis_command.h"
#include <signal.h>
#include <strings.h>

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

static int ask_work_list(const char *namespace, const char *identity, struct redis_command *ret)
{
        return command_make(ret, resque_key(namespace, RESQUE_WORKER, identity), WORDS("EXISTS"));
}

static const struct heartbeat_format heartbeats = {
        .key = resque_key,
        .set = RESQUE_WORKERS,
        .member_nsec = 500,
        .identity_parse = resque_identity_parse,
        .ask_heartbeat = ask_heartbeat,
        .take_heartbeat = take_heartbeat,
        .ask_work_list = ask_work_list,
};

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

const struct framework resque_framework = {
        .traits = &resque_traits,
        .quiet_signal = SIGUSR2,
        .stop_signal = SIGQUIT,
        /* QUIT waits for the job's child, which would outlive a worker killed meanwhile. TERM makes the
         * worker end its child and report that. No wake_signal: CONT would make a worker accept jobs
         * again. */
        .cut_off_signal = SIGTERM,
        .title_parse = resque_title_parse,
        .title_may_lack = true,
        .heartbeats = &heartbeats,
        .has_queues = true,
};
