/* SPDX-License-Identifier: MIT */
/* How Sidekiq's heartbeats stand in Redis: a set of identities, a hash for each, and beside that its work
 * list. */
#include "frameworks/sidekiq/heartbeat.h"
#include "frameworks/sidekiq/format.h"
#include <hiredis/hiredis.h>
#include <string.h>

/* The note of a process is what its `info` field tells. */
static const struct sidekiq_info *info_of(const struct beat_info *info)
{
        return (const struct sidekiq_info *)info;
}

bool sidekiq_beat_thread_is_processor(const char *comm, const struct beat_info *info)
{
        return sidekiq_thread_is_processor(comm, info_of(info));
}

/* What stands behind the struct: see decode_info(). */
const char *sidekiq_beat_queue_names(const struct beat_info *info)
{
        const char *names = info ? (const char *)(info_of(info) + 1) : NULL;

        return names && names[0] != '\0' ? names : NULL;
}

static char *set_key(const char *namespace)
{
        return decode_key(namespace, SIDEKIQ_PROCESSES, NULL);
}

static int ask_beat(const char *namespace, const char *identity, bool with_info, struct beats_command *ret)
{
        char *key = decode_key(namespace, identity, NULL);

        if (!key)
                return -ENOMEM;
        *ret = (struct beats_command){
                .argv = {"HMGET", key, "busy", "beat", "quiet", "concurrency", "rss", "info"},
                .argc = with_info ? 8 : 7,
                .keys = {key},
        };
        return 0;
}

static int ask_work_list(const char *namespace, const char *identity, struct beats_command *ret)
{
        _cleanup_free_ char *work = decode_key(namespace, identity, "work");
        char *workers = decode_key(namespace, identity, "workers");

        if (!work || !workers) {
                free(workers);
                return -ENOMEM;
        }
        *ret = (struct beats_command){.argv = {"EXISTS", work, workers}, .argc = 3, .keys = {work, workers}};
        work = NULL;
        return 0;
}

static struct field reply_field(const redisReply *reply, size_t i)
{
        if (i >= reply->elements || reply->element[i]->type != REDIS_REPLY_STRING)
                return (struct field){0};
        return (struct field){.text = reply->element[i]->str, .len = reply->element[i]->len};
}

/* In one piece of memory: the names of the queues stand behind the struct. */
static struct beat_info *decode_info(const struct field *field)
{
        char names[SIDEKIQ_QUEUES_MAX];
        size_t length = sidekiq_info_queues(field, names);
        struct sidekiq_info *info = calloc(1, sizeof(*info) + length);

        if (info && sidekiq_info_decode(field, info) != 0) {
                free(info);
                info = NULL;
        }
        if (info)
                memcpy(info + 1, names, length);
        return (struct beat_info *)info;
}

static bool take_beat(const redisReply *reply, struct heartbeat *ret, struct beat_info **info)
{
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements < 5)
                return false;
        struct field busy = reply_field(reply, 0), beat = reply_field(reply, 1);
        struct field quiet = reply_field(reply, 2), concurrency = reply_field(reply, 3);
        struct field rss = reply_field(reply, 4), told = reply_field(reply, 5);

        if (told.text && !*info)
                *info = decode_info(&told);
        if (sidekiq_beat_decode(&busy, &beat, &quiet, &concurrency, &rss, ret) != SIDEKIQ_BEAT_DECODED)
                return false;
        if (ret->concurrency == 0 && *info)
                ret->concurrency = info_of(*info)->concurrency;
        return true;
}

static void take_work_list(const redisReply *reply, struct heartbeat *beat)
{
        if (reply->type != REDIS_REPLY_INTEGER)
                return;
        beat->work_list_known = true;
        beat->work_list_empty = reply->integer == 0;
}

const struct beats_format sidekiq_beats = {
        .set_key = set_key,
        .member_nsec = 500,
        .identity_pattern = decode_host_pattern,
        .identity_parse = sidekiq_identity_parse,
        .ask_beat = ask_beat,
        .take_beat = take_beat,
        .has_info = true,
        .ask_work_list = ask_work_list,
        .take_work_list = take_work_list,
};
