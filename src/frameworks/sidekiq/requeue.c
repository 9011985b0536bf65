/* SPDX-License-Identifier: MIT */
/* Puts a job of a dead process back into its queue; see the header. */
#include "base/parse.h"
#include "frameworks/redis_format.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/job.h"
#include <hiredis/hiredis.h>
#include <stdio.h>

/* How long the rescue count of a job is kept. */
#define COUNT_SECONDS "604800"
/* Shown on Sidekiq's web page for a job that was given up. */
#define ERROR_CLASS "Sqmgr::WorkerDied"

enum key {
        KEY_WORK_LIST,
        KEY_QUEUE,
        KEY_COUNT,
        KEY_DEAD,
        KEY_QUEUES,
        KEY_PRIVATE,         /* of super_fetch: jobs that the process fetched from this queue */
        KEY_PRIVATE_QUEUES,  /* of super_fetch: all private queues of the process */
        KEY_PRIVATE_WORKING, /* of sidekiq-reliable-fetch */
        _KEY_MAX,
};

/* Commands that can fail run before the entry is removed from the work list. A script that stops halfway
 * is not undone: the job may then exist twice, but is never lost. RPUSH is the last command that can fail,
 * because the script is retried. */
static const char script[] =
        "if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 'left' end\n"
        "if redis.call('EXISTS', KEYS[6], KEYS[7], KEYS[8]) > 0 then return 'private' end\n"
        "if ARGV[4] == '' then return 'lost' end\n"
        "local times = tonumber(redis.call('GET', KEYS[3]) or 0) + 1\n"
        "if times > tonumber(ARGV[4]) then\n"
        "  redis.call('ZADD', KEYS[4], ARGV[7], ARGV[6])\n"
        "  redis.call('HDEL', KEYS[1], ARGV[1])\n"
        "  redis.call('DEL', KEYS[3])\n"
        "  return 'parked'\n"
        "end\n"
        "redis.call('SADD', KEYS[5], ARGV[8])\n"
        "redis.call('RPUSH', KEYS[2], ARGV[3])\n"
        "redis.call('HDEL', KEYS[1], ARGV[1])\n"
        "redis.call('SET', KEYS[3], times, 'EX', ARGV[5])\n"
        "return times\n";

static bool requeue_take(const redisReply *reply, enum rescue_outcome *outcome, unsigned *times)
{
        static const struct {
                const char *text;
                enum rescue_outcome outcome;
        } outcomes[] = {
                {"left", RESCUE_LEFT},
                {"private", RESCUE_PRIVATE},
                {"lost", RESCUE_LOST},
                {"parked", RESCUE_PARKED},
        };

        *times = 0;
        if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0) {
                *outcome = RESCUE_REQUEUED;
                *times = (unsigned)MIN(reply->integer, (long long)UINT_MAX);
                return true;
        }
        for (size_t i = 0; reply->type == REDIS_REPLY_STRING && i < ELEMENTSOF(outcomes); i++)
                if (strcmp(reply->str, outcomes[i].text) == 0) {
                        *outcome = outcomes[i].outcome;
                        return true;
                }
        return false;
}

/* Returns false if memory is short; the keys made so far are then set. */
static bool make_keys(const struct requeue_request *request, char *keys[_KEY_MAX])
{
        const char *namespace = request->namespace, *identity = request->identity;
        const struct job *job = request->job;
        _cleanup_free_ char *private = NULL, *working = decode_key("working:queue", job->queue, NULL);

        if (asprintf(&private, "queue:sq|%s|%s", identity, job->queue) < 0) {
                private = NULL;
                return false;
        }
        keys[KEY_WORK_LIST] = decode_key(namespace, identity, job->old_key ? "workers" : "work");
        keys[KEY_QUEUE] = decode_key(namespace, "queue", job->queue);
        keys[KEY_COUNT] = decode_key(namespace, "sqmgr:rescued", job->jid);
        keys[KEY_DEAD] = decode_key(namespace, "dead", NULL);
        keys[KEY_QUEUES] = decode_key(namespace, "queues", NULL);
        keys[KEY_PRIVATE] = decode_key(namespace, private, NULL);
        keys[KEY_PRIVATE_QUEUES] = decode_key(namespace, identity, "super_queues");
        keys[KEY_PRIVATE_WORKING] = working ? decode_key(namespace, working, identity) : NULL;
        for (size_t i = 0; i < _KEY_MAX; i++)
                if (!keys[i])
                        return false;
        return true;
}

static int send_script(struct redis *redis, const struct requeue_request *request, char *const keys[_KEY_MAX],
                       const char *dead, redis_reply_fn callback, void *userdata)
{
        const struct job *job = request->job;
        const char *argv[3 + _KEY_MAX + 8] = {"EVAL", script, "8"};
        size_t lengths[ELEMENTSOF(argv)], n = 3;
        char limit[16] = "", score[48];

        static_assert(_KEY_MAX == 8, "the number of keys");
        if (request->puts_back)
                snprintf(limit, sizeof(limit), "%u", request->limit);
        snprintf(score, sizeof(score), "%.6f", (double)request->realtime / (double)USEC_PER_SEC);
        for (size_t i = 0; i < _KEY_MAX; i++)
                argv[n++] = keys[i];
        const char *const words[] = {job->thread,   job->entry, job->payload, limit,
                                     COUNT_SECONDS, dead,       score,        job->queue};
        for (size_t i = 0; i < ELEMENTSOF(words); i++)
                argv[n++] = words[i];
        for (size_t i = 0; i < n; i++)
                lengths[i] = argv[i] == job->entry ? job->entry_len : strlen(argv[i]);
        return redis_command_forbiddable(redis, callback, userdata, (int)n, argv, lengths);
}

static int requeue_send(struct redis *redis, const struct requeue_request *request, redis_reply_fn callback,
                        void *userdata)
{
        char *keys[_KEY_MAX] = {NULL}, message[512];
        int r = -ENOMEM;

        snprintf(message, sizeof(message),
                 "worker %s while running this job; re-enqueued %u time%s before; not re-enqueued "
                 "again",
                 request->why, request->limit, plural(request->limit));
        _cleanup_free_ char *dead =
                sidekiq_job_dead_payload(request->job, ERROR_CLASS, message, request->realtime);
        if (dead && make_keys(request, keys))
                r = send_script(redis, request, keys, dead, callback, userdata);
        for (size_t i = 0; i < _KEY_MAX; i++)
                free(keys[i]);
        return r;
}

const struct requeue_format sidekiq_requeue = {.send = requeue_send, .take = requeue_take};
