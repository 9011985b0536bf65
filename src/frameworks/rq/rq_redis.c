/* SPDX-License-Identifier: MIT */
/* RQ's data in Redis. Workers: a set of worker keys, which contain neither host
 * nor pid, and a hash at each key, which contains both. Queues: a set of queue keys, a list of job ids per
 * queue with the oldest first, and a hash per job. RQ has no namespaces. */
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "frameworks/rq/rq.h"
#include "redis/redis_command.h"

/* The elements of the reply for each worker: its key, host and pid. */
enum { LIST_KEY, LIST_HOST, LIST_PID, _LIST_MAX };

#define QUEUE_PREFIX "rq:queue:"

bool rq_heartbeat_decode(const struct rq_record *record, struct heartbeat *ret)
{
        uint64_t sent_usec, born_usec = 0;

        if (record->death.text || !decode_iso8601(&record->last_heartbeat, &sent_usec))
                return false;
        (void)decode_iso8601(&record->birth, &born_usec);
        *ret = (struct heartbeat){
                .sent_usec = sent_usec,
                .born_usec = born_usec,
                .busy = decode_field_is(&record->state, "busy"),
                .concurrency = 1,
                .quiet = !!record->shutdown_requested_date.text,
                .outcomes = decode_outcomes_apart(&record->successful, &record->failed),
        };
        return true;
}

size_t rq_queue_name(const struct field *key, const char **ret)
{
        if (!key->text || key->len <= strlen(QUEUE_PREFIX) ||
            memcmp(key->text, QUEUE_PREFIX, strlen(QUEUE_PREFIX)) != 0 || memchr(key->text, '\0', key->len))
                return 0;
        *ret = key->text + strlen(QUEUE_PREFIX);
        return key->len - strlen(QUEUE_PREFIX);
}

static char *make_key(const char *namespace _unused_, const char *name, const char *suffix)
{
        return decode_key(NULL, name, suffix);
}

static void ask_list(const char *set_key, struct redis_command *ret)
{
        *ret = (struct redis_command){
                .argv = {"SORT", set_key, "BY", "nosort", "GET", "#", "GET", "*->hostname", "GET", "*->pid"},
                .argc = 10,
        };
}

static int found_one(const struct rq_worker *worker, identity_fn found, void *userdata)
{
        struct match_found one;
        int error;
        _cleanup_free_ char *identity = rq_identity_make(worker, &error);

        /* The record has expired or is invalid. */
        if (!identity)
                return error == -ENOMEM ? error : 0;
        one = (struct match_found){.identity = identity, .len = strlen(identity)};
        return rq_identity_parse(identity, one.len, &one.host_len, &one.pid) ? found(&one, userdata) : 0;
}

static int take_list(const redisReply *reply, identity_fn found, void *userdata)
{
        int r = 0;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements % _LIST_MAX != 0)
                return -EBADMSG;
        for (size_t i = 0; i < reply->elements && r >= 0; i += _LIST_MAX) {
                const struct rq_worker worker = {
                        .host = reply_element(reply, i + LIST_HOST),
                        .pid = reply_element(reply, i + LIST_PID),
                        .key = reply_element(reply, i + LIST_KEY),
                };
                r = found_one(&worker, found, userdata);
        }
        return r;
}

static int ask_heartbeat(const char *namespace _unused_, const char *identity, bool with_info _unused_,
                         struct redis_command *ret)
{
        /* An invalid identity, for example from a state file, is used as the key and not found. */
        return command_make(ret, strdup(rq_identity_key(identity) ?: identity),
                            WORDS("HMGET", "state", "last_heartbeat", "shutdown_requested_date", "death",
                                  "birth", "successful_job_count", "failed_job_count"));
}

static bool take_heartbeat(const redisReply *reply, struct heartbeat *ret,
                           struct heartbeat_info **info _unused_)
{
        const struct rq_record record = {
                .state = reply_element(reply, 0),
                .last_heartbeat = reply_element(reply, 1),
                .shutdown_requested_date = reply_element(reply, 2),
                .death = reply_element(reply, 3),
                .birth = reply_element(reply, 4),
                .successful = reply_element(reply, 5),
                .failed = reply_element(reply, 6),
        };

        return reply->type == REDIS_REPLY_ARRAY && reply->elements == 7 && rq_heartbeat_decode(&record, ret);
}

static const struct heartbeat_format heartbeats = {
        .key = make_key,
        .set = RQ_WORKERS,
        .ask_list = ask_list,
        .take_list = take_list,
        .identity_parse = rq_identity_parse,
        .ask_heartbeat = ask_heartbeat,
        .take_heartbeat = take_heartbeat,
};

static int take_suspended(const redisReply *reply, struct queues_found *found)
{
        if (queues_number(reply) > 0)
                queues_pause_all(found->queues);
        return 0;
}

static int take_oldest(const redisReply *reply, struct queues_found *found)
{
        const struct field at = reply_element(reply, 0);
        usec_t since;

        /* An empty queue has no latency. */
        found->queue->latency_known = reply->type == REDIS_REPLY_ARRAY && reply->elements == 0;
        if (at.text && reply->elements == 1 && decode_iso8601(&at, &since))
                queue_waits_since(found->queue, since);
        return 0;
}

/* RQ has these sets per queue; their sizes are summed. A job to be retried counts as scheduled. */
static const struct queues_question questions[] = {
        {QUEUES_ALL, {"SMEMBERS"}, RQ_QUEUES, .take = queues_take_names},
        {QUEUES_ALL, {"EXISTS"}, "rq:suspended", .take = take_suspended},
        {QUEUES_EACH, {"LLEN"}, "rq:queue", .take = queues_take_size},
        /* Reads only the job at the head of the list: LIMIT stops there. */
        {QUEUES_EACH,
         {"SORT", "BY", "nosort", "LIMIT", "0", "1", "GET", "rq:job:*->enqueued_at"},
         "rq:queue",
         .take = take_oldest},
        {QUEUES_EACH, {"ZCARD"}, "rq:scheduled", .counter = offsetof(struct queues, schedule)},
        {QUEUES_EACH, {"ZCARD"}, "rq:failed", .counter = offsetof(struct queues, dead)},
};

static const struct queues_format queues = {
        .questions = questions, .n = ELEMENTSOF(questions), .key = make_key, .name = rq_queue_name};

const struct redis_format rq_redis_format = {
        .traits = &rq_traits,
        .heartbeats = &heartbeats,
        .queues = &queues,
};
