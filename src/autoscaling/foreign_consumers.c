/* SPDX-License-Identifier: MIT */
/* Counts the processes of one Redis that are not workers of this host; see the header. */
#include "autoscaling/foreign_consumers.h"
#include "frameworks/identity_scan.h"
#include "redis/redis_command.h"
#include "io/clock.h"
#include "redis/redis.h"
#include "redis/redis_batch.h"
#include "model/queues.h"
#include <string.h>

/* Consumers read per count. Further ones are assumed to be like those read. */
#define READ_MAX 2000
/* The pause between counts is the greatest of three: a fixed time, a multiple of the count's duration, and
 * a time per consumer found. Many consumers mean many hosts that count them. */
#define COUNT_USEC (60 * USEC_PER_SEC)
#define COUNT_DUTY 50
#define FOUND_USEC (100 * USEC_PER_MSEC)
/* If counts fail, the last result stays valid for this long after the next count was due. */
#define KEEP_USEC (5 * USEC_PER_MIN)
/* A longer host name is invalid. */
#define HOST_MAX 255

struct consumer {
        char *host;                  /* owned */
        struct heartbeat_info *info; /* owned; NULL: the process reported nothing about itself */
        bool active;                 /* its heartbeat was read and is not quiet */
        unsigned idle;
};

struct consumer_list {
        struct consumer *list; /* owned; the consumers whose heartbeat was requested */
        size_t n;
        size_t n_read;  /* with a heartbeat */
        size_t n_found; /* identities that are not ours, requested or not */
};

struct foreign_consumers {
        const struct framework *framework;
        struct redis *redis;
        char *namespace;
        char *set_key;
        bool (*is_ours)(const char *identity, size_t len, void *userdata);
        void *userdata;
        struct redis_batch *redis_batch;
        bool failed;
        char cursor[24]; /* of the next page; "": none */
        usec_t begun_at, next_at;
        usec_t counted_until; /* the last result is valid until then; 0: no result */
        struct consumer_list now, counted;
};

static void census_clear(struct consumer_list *census)
{
        for (size_t i = 0; i < census->n; i++) {
                free(census->list[i].host);
                free(census->list[i].info);
        }
        free(census->list);
        *census = (struct consumer_list){0};
}

struct foreign_consumers *foreign_consumers_free(struct foreign_consumers *consumers)
{
        if (!consumers)
                return NULL;
        redis_batch_free(consumers->redis_batch);
        census_clear(&consumers->now);
        census_clear(&consumers->counted);
        free(consumers->namespace);
        free(consumers->set_key);
        free(consumers);
        return NULL;
}

enum { TAG_PAGE, TAG_CONSUMER /* plus the index in the list */ };

static int send(struct foreign_consumers *consumers, size_t tag, struct redis_command *command)
{
        int r = redis_batch_add(consumers->redis_batch, consumers->redis, tag, command->argc, command->argv,
                                NULL);

        command_clear(command);
        return r;
}

static void ask_page(struct foreign_consumers *consumers, const char *cursor)
{
        struct redis_command command;

        identity_scan_ask(consumers->framework->heartbeats, consumers->set_key, NULL, cursor, &command);
        consumers->failed |= send(consumers, TAG_PAGE, &command) < 0;
}

static int found(const struct match_found *found, void *userdata)
{
        struct foreign_consumers *consumers = userdata;
        struct consumer_list *census = &consumers->now;
        struct redis_command command;

        if (consumers->is_ours(found->identity, found->len, consumers->userdata) ||
            ++census->n_found > READ_MAX)
                return 0;
        struct consumer *list = reallocarray(census->list, census->n + 1, sizeof(*list));
        if (!list)
                return -ENOMEM;
        census->list = list;
        list[census->n] = (struct consumer){
                .host = strndup(found->identity, found->host_len > HOST_MAX ? 0 : found->host_len)};
        if (!list[census->n].host)
                return -ENOMEM;
        int r = consumers->framework->heartbeats->ask_heartbeat(consumers->namespace, found->identity, true,
                                                                &command);

        return r < 0 ? r : send(consumers, TAG_CONSUMER + census->n++, &command);
}

static void take_page(struct foreign_consumers *consumers, const redisReply *reply)
{
        const char *cursor;
        int r = identity_scan_take(consumers->framework->heartbeats, reply, found, consumers, &cursor);
        size_t length = r >= 0 && cursor ? strlen(cursor) : 0;

        consumers->failed |= r < 0 || length >= sizeof(consumers->cursor);
        if (!consumers->failed)
                memcpy(consumers->cursor, length > 0 ? cursor : "", length + 1);
}

static void take_consumer(struct foreign_consumers *consumers, const redisReply *reply, size_t i)
{
        struct consumer *consumer = &consumers->now.list[i];
        struct heartbeat heartbeat;

        /* A dead process may leave its identity without a heartbeat. */
        if (!consumers->framework->heartbeats->take_heartbeat(reply, &heartbeat, &consumer->info))
                return;
        consumers->now.n_read++;
        consumer->active = !heartbeat.quiet;
        consumer->idle = heartbeat.concurrency > heartbeat.busy ? heartbeat.concurrency - heartbeat.busy : 0;
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct foreign_consumers *consumers = userdata;

        if (!reply || reply->type == REDIS_REPLY_ERROR)
                /* A key of the wrong type must not hide other consumers. */
                consumers->failed |= !reply || tag == TAG_PAGE || !reply_is_wrong_type(reply);
        else if (tag == TAG_PAGE)
                take_page(consumers, reply);
        else
                take_consumer(consumers, reply, tag - TAG_CONSUMER);
}

static void end(struct foreign_consumers *consumers)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        consumers->next_at = now + MAX(MAX(COUNT_USEC, COUNT_DUTY * usec_sub(now, consumers->begun_at)),
                                       FOUND_USEC * consumers->now.n_found);
        if (!consumers->failed) {
                census_clear(&consumers->counted);
                consumers->counted = consumers->now;
                consumers->counted_until = consumers->next_at + KEEP_USEC;
                consumers->now = (struct consumer_list){0};
        }
        census_clear(&consumers->now);
}

/* A page and the consumers on it were answered. */
static void on_done(void *userdata)
{
        struct foreign_consumers *consumers = userdata;

        if (!consumers->failed && consumers->cursor[0] != '\0')
                ask_page(consumers, consumers->cursor);
        if (redis_batch_pending(consumers->redis_batch) == 0)
                end(consumers);
}

int foreign_consumers_new(const struct framework *framework, struct redis *redis, const char *namespace,
                          bool (*is_ours)(const char *identity, size_t len, void *userdata), void *userdata,
                          struct foreign_consumers **ret)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_done};
        struct foreign_consumers *consumers = calloc(1, sizeof(*consumers));

        if (!consumers)
                return -ENOMEM;
        consumers->framework = framework;
        consumers->redis = redis;
        consumers->is_ours = is_ours;
        consumers->userdata = userdata;
        consumers->namespace = strdup(namespace ?: "");
        consumers->set_key = framework->heartbeats->key(namespace, framework->heartbeats->set, NULL);
        if (!consumers->namespace || !consumers->set_key ||
            redis_batch_new(&ops, consumers, &consumers->redis_batch) < 0) {
                foreign_consumers_free(consumers);
                return -ENOMEM;
        }
        *ret = consumers;
        return 0;
}

void foreign_consumers_poll(struct foreign_consumers *consumers, usec_t now)
{
        if (redis_batch_pending(consumers->redis_batch) > 0 || now < consumers->next_at ||
            redis_state(consumers->redis) != REDIS_STATE_CONNECTED)
                return;
        consumers->begun_at = now;
        consumers->failed = false;
        consumers->cursor[0] = '\0';
        ask_page(consumers, "0");
        if (redis_batch_pending(consumers->redis_batch) == 0)
                consumers->next_at = now + COUNT_USEC;
}

static bool serves(const char *queues, const char *names)
{
        for (; names && *names != '\0'; names += strlen(names) + 1)
                if (queue_names_have(queues, names))
                        return true;
        return false;
}

bool foreign_consumers_count(const struct foreign_consumers *consumers, const char *names, usec_t now,
                             bool (*is_reported)(const char *host, const char *queues, void *userdata),
                             void *userdata, struct foreign_count *ret)
{
        const struct consumer_list *census = &consumers->counted;
        double serving = 0;

        *ret = (struct foreign_count){.any = census->n_read > 0};
        if (now >= consumers->counted_until)
                return false;
        for (size_t i = 0; i < census->n; i++) {
                const struct consumer *consumer = &census->list[i];
                const char *queues = consumers->framework->queue_names(consumer->info);

                if (!consumer->active || !serves(queues, names) ||
                    (is_reported && is_reported(consumer->host, queues, userdata)))
                        continue;
                serving++;
                ret->idle += consumer->idle;
        }
        if (census->n_found > READ_MAX) {
                double each = (double)census->n_found / READ_MAX;

                serving *= each;
                ret->idle *= each;
        }
        ret->serving = (unsigned)serving;
        return true;
}
