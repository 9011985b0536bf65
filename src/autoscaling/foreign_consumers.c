/* SPDX-License-Identifier: MIT */
/* Counts the processes of one Redis that are no workers of this host's; see the header. */
#include "autoscaling/foreign_consumers.h"
#include "frameworks/identity_scan.h"
#include "frameworks/redis_command.h"
#include "io/clock.h"
#include "io/redis.h"
#include "io/redis_batch.h"
#include "model/queues.h"
#include <string.h>

/* So many are read of each count: of more, the others are taken for like these. */
#define READ_MAX 2000
/* From the end of one count to the begin of the next; and it may take this share of the time. Where there are
 * many, so are the hosts that count them: so long for each that was found. */
#define COUNT_USEC (60 * USEC_PER_SEC)
#define COUNT_DUTY 50
#define FOUND_USEC (100 * USEC_PER_MSEC)
/* Counts that fail leave the last one in force for so long after the next was due. */
#define KEEP_USEC (5 * USEC_PER_MIN)
/* A longer name of a host is none. */
#define HOST_MAX 255

struct consumer {
        char *host;                  /* owned */
        struct heartbeat_info *info; /* owned; NULL: it told nothing of itself */
        bool active;                 /* it was read, and takes jobs */
        unsigned idle;
};

struct consumer_list {
        struct consumer *list; /* owned; of those that were asked for */
        size_t n;
        size_t n_read;  /* that have a heartbeat */
        size_t n_found; /* not ours, be they asked for or not */
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
        char cursor[24]; /* of the next page; "": there is none */
        usec_t begun_at, next_at;
        usec_t counted_until; /* what was counted holds; 0: nothing was */
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

enum { TAG_PAGE, TAG_CONSUMER /* and beyond: which of the list */ };

static int send(struct foreign_consumers *consumers, size_t tag, struct heartbeats_command *command)
{
        int r = redis_batch_add(consumers->redis_batch, consumers->redis, tag, command->argc, command->argv,
                                NULL);

        command_clear(command);
        return r;
}

static void ask_page(struct foreign_consumers *consumers, const char *cursor)
{
        struct heartbeats_command command;

        identity_scan_ask(consumers->framework->heartbeats, consumers->set_key, NULL, cursor, &command);
        consumers->failed |= send(consumers, TAG_PAGE, &command) < 0;
}

static int found(const struct match_found *found, void *userdata)
{
        struct foreign_consumers *consumers = userdata;
        struct consumer_list *census = &consumers->now;
        struct heartbeats_command command;

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

        /* Of one that is dead the identity may be left, and no heartbeat. */
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
                /* What is no heartbeat hides no others. */
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

/* A page is answered, with the processes that it named. */
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
