/* SPDX-License-Identifier: MIT */
/* Counts the Sidekiqs of a Redis that are nobody's here: a walk through the set of identities, page by page,
 * and one command for each of them that is not ours. */
#include "frameworks/sidekiq/crowd.h"
#include "frameworks/decode.h"
#include "frameworks/redis_queues.h"
#include "frameworks/sidekiq/format.h"
#include "io/asks.h"
#include "io/clock.h"
#include "model/autoscale.h"
#include <hiredis/hiredis.h>
#include <stdlib.h>
#include <string.h>

#define PAGE "100"
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

struct other {
        char *host;   /* owned */
        char *queues; /* owned: names, each ended by a NUL, the last by two */
        unsigned idle;
};

struct others {
        struct other *list; /* owned */
        size_t n;           /* that take jobs */
        char **hosts;       /* owned: of those that are asked for, by when; NULL where it was taken */
        size_t n_hosts;
        size_t n_read;  /* of all that were read */
        size_t n_found; /* not ours, be they read or not */
};

struct crowd {
        struct redis *redis;
        char *namespace;
        char *set_key;
        bool (*is_ours)(const char *identity, size_t len, void *userdata);
        void *userdata;
        struct asks *asks;
        bool walking;
        bool failed;
        char cursor[24]; /* of the next page; "": there is none */
        usec_t begun_at, next_at;
        usec_t counted_until; /* what was counted holds; 0: nothing was */
        struct others now, counted;
};

static void others_clear(struct others *others)
{
        for (size_t i = 0; i < others->n; i++) {
                free(others->list[i].host);
                free(others->list[i].queues);
        }
        for (size_t i = 0; i < others->n_hosts; i++)
                free(others->hosts[i]);
        free(others->list);
        free(others->hosts);
        *others = (struct others){0};
}

static struct crowd *crowd_free(struct crowd *crowd)
{
        if (!crowd)
                return NULL;
        asks_free(crowd->asks);
        others_clear(&crowd->now);
        others_clear(&crowd->counted);
        free(crowd->namespace);
        free(crowd->set_key);
        free(crowd);
        return NULL;
}

enum { TAG_PAGE, TAG_PROCESS /* and beyond: which of the hosts it is on */ };

static void ask_page(struct crowd *crowd, const char *cursor)
{
        const char *argv[] = {"SSCAN", crowd->set_key, cursor, "COUNT", PAGE};

        crowd->failed |= asks_add(crowd->asks, crowd->redis, TAG_PAGE, ELEMENTSOF(argv), argv, NULL) < 0;
}

/* Returns the index of it, or -ENOMEM. */
static ssize_t note_host(struct others *others, const char *name, size_t len)
{
        char **hosts = reallocarray(others->hosts, others->n_hosts + 1, sizeof(*hosts));

        if (!hosts)
                return -ENOMEM;
        others->hosts = hosts;
        hosts[others->n_hosts] = strndup(name, len > HOST_MAX ? 0 : len);
        return hosts[others->n_hosts] ? (ssize_t)others->n_hosts++ : -ENOMEM;
}

static void ask_process(struct crowd *crowd, const char *identity, size_t host_len)
{
        _cleanup_free_ char *key = decode_key(crowd->namespace, identity, NULL);
        const char *argv[] = {"HMGET", key, "busy", "beat", "quiet", "concurrency", "rss", "info"};
        ssize_t host = note_host(&crowd->now, identity, host_len);

        crowd->failed |= !key || host < 0 ||
                         asks_add(crowd->asks, crowd->redis, TAG_PROCESS + (size_t)host, ELEMENTSOF(argv),
                                  argv, NULL) < 0;
}

static void take_page(struct crowd *crowd, const redisReply *reply)
{
        if (reply->type != REDIS_REPLY_ARRAY || reply->elements != 2 ||
            reply->element[0]->type != REDIS_REPLY_STRING || reply->element[1]->type != REDIS_REPLY_ARRAY ||
            reply->element[0]->len >= sizeof(crowd->cursor)) {
                crowd->failed = true;
                return;
        }
        const redisReply *page = reply->element[1];
        for (size_t i = 0; i < page->elements; i++) {
                const redisReply *member = page->element[i];
                size_t host_len;
                pid_t pid;

                if (member->type != REDIS_REPLY_STRING ||
                    !sidekiq_identity_parse(member->str, member->len, &host_len, &pid) ||
                    crowd->is_ours(member->str, member->len, crowd->userdata))
                        continue;
                crowd->now.n_found++;
                if (crowd->now.n_found <= READ_MAX)
                        ask_process(crowd, member->str, host_len);
        }
        memcpy(crowd->cursor, reply->element[0]->str, reply->element[0]->len + 1);
        if (strcmp(crowd->cursor, "0") == 0)
                crowd->cursor[0] = '\0';
}

static struct field field_of(const redisReply *reply, size_t i)
{
        if (reply->type != REDIS_REPLY_ARRAY || i >= reply->elements ||
            reply->element[i]->type != REDIS_REPLY_STRING)
                return (struct field){0};
        return (struct field){.text = reply->element[i]->str, .len = reply->element[i]->len};
}

static void take_process(struct crowd *crowd, const redisReply *reply, size_t host)
{
        struct field busy = field_of(reply, 0), beat = field_of(reply, 1), quiet = field_of(reply, 2);
        struct field concurrency = field_of(reply, 3), rss = field_of(reply, 4), told = field_of(reply, 5);
        struct sidekiq_info info = {0};
        struct heartbeat heartbeat;
        char names[SIDEKIQ_QUEUES_MAX];

        /* Of one that is dead the identity may be left, and no heartbeat. */
        if (sidekiq_beat_decode(&busy, &beat, &quiet, &concurrency, &rss, &heartbeat) != SIDEKIQ_BEAT_DECODED)
                return;
        crowd->now.n_read++;
        if (heartbeat.quiet)
                return;
        (void)sidekiq_info_decode(&told, &info);
        size_t length = sidekiq_info_queues(&told, names);
        unsigned threads = heartbeat.concurrency != 0 ? heartbeat.concurrency : info.concurrency;
        struct other *list = reallocarray(crowd->now.list, crowd->now.n + 1, sizeof(*list));
        if (!list) {
                crowd->failed = true;
                return;
        }
        crowd->now.list = list;
        char *queues = malloc(length);
        if (!queues) {
                crowd->failed = true;
                return;
        }
        memcpy(queues, names, length);
        struct other *other = &list[crowd->now.n++];
        other->host = TAKE_PTR(crowd->now.hosts[host]);
        other->queues = queues;
        other->idle = threads > heartbeat.busy ? threads - heartbeat.busy : 0;
}

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        struct crowd *crowd = userdata;

        if (!reply || reply->type == REDIS_REPLY_ERROR)
                /* What is no heartbeat hides no others. */
                crowd->failed |= !reply || tag == TAG_PAGE || !redis_queues_is_wrong_type(reply);
        else if (tag == TAG_PAGE)
                take_page(crowd, reply);
        else
                take_process(crowd, reply, tag - TAG_PROCESS);
}

static void end(struct crowd *crowd)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        crowd->walking = false;
        crowd->next_at = now + MAX(MAX(COUNT_USEC, COUNT_DUTY * usec_sub(now, crowd->begun_at)),
                                   FOUND_USEC * crowd->now.n_found);
        if (!crowd->failed) {
                others_clear(&crowd->counted);
                crowd->counted = crowd->now;
                crowd->counted_until = crowd->next_at + KEEP_USEC;
                crowd->now = (struct others){0};
        }
        others_clear(&crowd->now);
}

/* A page is answered, with the processes that it named. */
static void on_done(void *userdata)
{
        struct crowd *crowd = userdata;

        if (!crowd->failed && crowd->cursor[0] != '\0') {
                char cursor[sizeof(crowd->cursor)];

                memcpy(cursor, crowd->cursor, sizeof(cursor));
                ask_page(crowd, cursor);
        }
        if (asks_pending(crowd->asks) == 0)
                end(crowd);
}

static int crowd_new(struct redis *redis, const char *namespace,
                     bool (*is_ours)(const char *identity, size_t len, void *userdata), void *userdata,
                     struct crowd **ret)
{
        static const struct asks_ops ops = {.reply = on_reply, .done = on_done};
        struct crowd *crowd = calloc(1, sizeof(*crowd));

        if (!crowd)
                return -ENOMEM;
        crowd->redis = redis;
        crowd->is_ours = is_ours;
        crowd->userdata = userdata;
        crowd->namespace = strdup(namespace ?: "");
        crowd->set_key = decode_key(namespace, SIDEKIQ_PROCESSES, NULL);
        if (!crowd->namespace || !crowd->set_key || asks_new(&ops, crowd, &crowd->asks) < 0) {
                crowd_free(crowd);
                return -ENOMEM;
        }
        *ret = crowd;
        return 0;
}

static void crowd_look(struct crowd *crowd, usec_t now)
{
        if (crowd->walking || now < crowd->next_at || redis_state(crowd->redis) != REDIS_STATE_CONNECTED)
                return;
        crowd->begun_at = now;
        crowd->failed = false;
        crowd->cursor[0] = '\0';
        others_clear(&crowd->now);
        ask_page(crowd, "0");
        crowd->walking = asks_pending(crowd->asks) > 0;
        if (!crowd->walking)
                crowd->next_at = now + COUNT_USEC;
}

static bool serves(const struct other *other, const char *names)
{
        for (; names && *names != '\0'; names += strlen(names) + 1)
                if (autoscale_list_has(other->queues, names))
                        return true;
        return false;
}

static bool crowd_count(const struct crowd *crowd, const char *names, usec_t now,
                        bool (*is_told)(const char *host, const char *queues, void *userdata), void *userdata,
                        struct crowd_count *ret)
{
        const struct others *others = &crowd->counted;
        double serving = 0;

        *ret = (struct crowd_count){.any = others->n_read > 0};
        if (now >= crowd->counted_until)
                return false;
        for (size_t i = 0; i < others->n; i++) {
                const struct other *other = &others->list[i];

                if (!serves(other, names) || (is_told && is_told(other->host, other->queues, userdata)))
                        continue;
                serving++;
                ret->idle += other->idle;
        }
        if (others->n_found > READ_MAX) {
                double each = (double)others->n_found / READ_MAX;

                serving *= each;
                ret->idle *= each;
        }
        ret->serving = (unsigned)serving;
        return true;
}

const struct crowd_ops sidekiq_crowd = {
        .new = crowd_new, .look = crowd_look, .count = crowd_count, .free = crowd_free};
