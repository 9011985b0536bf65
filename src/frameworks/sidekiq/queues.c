/* SPDX-License-Identifier: MIT */
/* Reads the queues of one Redis, in two round trips. The first round asks for their names and for what there
 * is once, the second for the size of each queue and its oldest job. */
#include "frameworks/sidekiq/queues.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/sidekiq/job.h"
#include "io/asks.h"
#include "io/clock.h"
#include <hiredis/hiredis.h>
#include <stdio.h>
#include <string.h>

/* What is asked for in the first round, and for each queue in the second. */
enum { ASK_NAMES, ASK_PAUSED, ASK_RETRY, ASK_SCHEDULE, ASK_DEAD };
enum { EACH_SIZE, EACH_OLDEST, _EACH_MAX };

struct queues_read {
        struct redis *redis;
        char *namespace;
        queues_read_fn callback;
        void *userdata;
        struct queues *queues;
        char **paused; /* owned */
        size_t n_paused;
        struct asks *asks;
        bool each;       /* in the second round */
        char error[256]; /* "": none */
};

static struct queues_read *read_free(struct queues_read *read)
{
        if (!read)
                return NULL;
        asks_free(read->asks);
        for (size_t i = 0; i < read->n_paused; i++)
                free(read->paused[i]);
        free(read->paused);
        queues_free(read->queues);
        free(read->namespace);
        free(read);
        return NULL;
}

static void fail(struct queues_read *read, const char *error)
{
        if (read->error[0] == '\0')
                snprintf(read->error, sizeof(read->error), "%s", error);
}

/* argv: the command and, behind the key, what it takes more, or NULL. Where it cannot be sent the read has
 * failed. */
static void ask(struct queues_read *read, size_t tag, const char *key, const char *suffix,
                const char *const argv[2])
{
        _cleanup_free_ char *full = sidekiq_key(read->namespace, key, suffix);
        const char *words[3] = {argv[0], full, argv[1]};
        int r = full ? asks_add(read->asks, read->redis, tag, argv[1] ? 3 : 2, words, NULL) : -ENOMEM;

        if (r < 0)
                fail(read, r == -ENOMEM ? "memory is short" : "Redis went away");
}

static void ask_each(struct queues_read *read)
{
        static const char *const size[2] = {"LLEN"}, *const oldest[2] = {"LINDEX", "-1"};

        read->each = true;
        for (size_t i = 0; i < read->queues->n && read->error[0] == '\0'; i++) {
                ask(read, i * _EACH_MAX + EACH_SIZE, "queue", read->queues->list[i].name, size);
                ask(read, i * _EACH_MAX + EACH_OLDEST, "queue", read->queues->list[i].name, oldest);
        }
}

/* Calls with each text of a list, but not with one that holds a NUL. Returns false where memory is short. */
static bool take_list(struct queues_read *read, const redisReply *reply,
                      bool (*take)(struct queues_read *read, const char *text, size_t length))
{
        size_t n = reply->type == REDIS_REPLY_ARRAY ? reply->elements : 0;

        for (size_t i = 0; i < MIN(n, (size_t)QUEUES_READ_MAX); i++) {
                const redisReply *member = reply->element[i];

                if (member->type == REDIS_REPLY_STRING && !memchr(member->str, '\0', member->len) &&
                    !take(read, member->str, member->len))
                        return false;
        }
        return true;
}

static bool take_name(struct queues_read *read, const char *text, size_t length)
{
        return queues_add(read->queues, text, length);
}

static bool take_paused(struct queues_read *read, const char *text, size_t length)
{
        char **paused = reallocarray(read->paused, read->n_paused + 1, sizeof(char *));

        if (!paused)
                return false;
        read->paused = paused;
        paused[read->n_paused] = strndup(text, length);
        return paused[read->n_paused] && ++read->n_paused > 0;
}

static uint64_t number(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_INTEGER && reply->integer > 0 ? (uint64_t)reply->integer : 0;
}

static void take_oldest(struct queue *queue, const redisReply *reply)
{
        usec_t at;

        /* An empty queue is not behind. */
        queue->latency_known = reply->type == REDIS_REPLY_NIL;
        if (reply->type != REDIS_REPLY_STRING || !sidekiq_job_enqueued_at(reply->str, reply->len, &at))
                return;
        queue->latency_known = true;
        queue->latency = usec_sub(clock_now(CLOCK_REALTIME), at);
}

/* One key that is no list must not hide the other queues. */
static bool is_wrong_type(const redisReply *reply)
{
        return strncmp(reply->str, "WRONGTYPE ", strlen("WRONGTYPE ")) == 0;
}

static void take_first(struct queues_read *read, size_t what, const redisReply *reply)
{
        bool taken = true;

        switch (what) {
        case ASK_NAMES:
                taken = take_list(read, reply, take_name);
                if (reply->type == REDIS_REPLY_ARRAY && reply->elements > QUEUES_READ_MAX)
                        read->queues->left_out = reply->elements - QUEUES_READ_MAX;
                break;
        case ASK_PAUSED:
                taken = take_list(read, reply, take_paused);
                break;
        case ASK_RETRY:
                read->queues->retry = number(reply);
                break;
        case ASK_SCHEDULE:
                read->queues->schedule = number(reply);
                break;
        default:
                read->queues->dead = number(reply);
                break;
        }
        if (!taken)
                fail(read, "memory is short");
}

static void take_each(struct queue *queue, size_t what, const redisReply *reply)
{
        if (what == EACH_SIZE)
                queue->size = number(reply);
        else
                take_oldest(queue, reply);
}

static void finish(struct queues_read *read)
{
        struct queues *queues = read->queues;

        for (size_t i = 0; i < queues->n; i++)
                for (size_t j = 0; j < read->n_paused; j++)
                        queues->list[i].paused |= strcmp(queues->list[i].name, read->paused[j]) == 0;
        queues_sort(queues);
        read->queues = NULL;
        read->callback(queues, NULL, read->userdata);
}

static void on_round(void *userdata)
{
        struct queues_read *read = userdata;

        if (read->error[0] == '\0' && !read->each)
                ask_each(read);
        /* Where one of them could not be sent, those before it are still to be answered. */
        if (asks_pending(read->asks) > 0)
                return;
        if (read->error[0] != '\0')
                read->callback(NULL, read->error, read->userdata);
        else
                finish(read);
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct queues_read *read = userdata;

        if (!reply)
                fail(read, "Redis went away or did not answer in time");
        else if (reply->type == REDIS_REPLY_ERROR && !(read->each && is_wrong_type(reply)))
                fail(read, reply->str); /* in Redis' own words */
        else if (read->each)
                take_each(&read->queues->list[tag / _EACH_MAX], tag % _EACH_MAX, reply);
        else
                take_first(read, tag, reply);
}

static int read_start(struct redis *redis, const char *namespace, queues_read_fn callback, void *userdata,
                      struct queues_read **ret)
{
        static const struct asks_ops ops = {.reply = on_reply, .done = on_round};
        static const char *const members[2] = {"SMEMBERS"}, *const size[2] = {"ZCARD"};
        struct queues_read *read = calloc(1, sizeof(*read));

        if (redis_state(redis) != REDIS_STATE_CONNECTED) {
                free(read);
                return -ENOTCONN;
        }
        if (!read)
                return -ENOMEM;
        *read = (struct queues_read){
                .redis = redis,
                .callback = callback,
                .userdata = userdata,
                .namespace = strdup(namespace ? namespace : ""),
                .queues = calloc(1, sizeof(struct queues)),
        };
        if (!read->namespace || !read->queues || asks_new(&ops, read, &read->asks) < 0) {
                read_free(read);
                return -ENOMEM;
        }
        ask(read, ASK_NAMES, "queues", NULL, members);
        ask(read, ASK_PAUSED, "paused", NULL, members);
        ask(read, ASK_RETRY, "retry", NULL, size);
        ask(read, ASK_SCHEDULE, "schedule", NULL, size);
        ask(read, ASK_DEAD, "dead", NULL, size);
        if (asks_pending(read->asks) == 0) {
                read_free(read);
                return -ENOMEM;
        }
        *ret = read;
        return 0;
}

const struct queues_ops sidekiq_queues = {.read = read_start, .free = read_free};
