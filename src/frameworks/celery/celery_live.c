/* SPDX-License-Identifier: MIT */
/* Observes the Celery workers of one Redis: listens to their events, and asks them what they consume and run.
 * The requests of all queries that arrive together are one round (pidbox.h), however many workers are asked.
 *
 * A heartbeat is answered from memory. Its flag `quiet` is never derived from our own requests: a reply that
 * lists no queue must have arrived before the event. A worker executes the requests of a round in order:
 * first it lists its queues, then the tasks that wait in it, then those that run. If all three lists are
 * empty, it is idle. */
#include "base/macro.h"
#include "frameworks/celery/celery.h"
#include "frameworks/celery/celery_redis.h"
#include "frameworks/celery/nodes.h"
#include "frameworks/celery/pidbox.h"
#include "frameworks/celery/queues.h"
#include "io/clock.h"
#include "model/heartbeat_info.h"
#include "redis/redis.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
        WANT_QUEUES = 1 << 0,
        WANT_TASKS = 1 << 1, /* whether any wait or run */
        WANT_JOBS = 1 << 2,  /* the tasks that run */
};

/* Time in which queries join the same round. */
#define GATHER_USEC (5 * USEC_PER_MSEC)
/* How often the queues of an active worker are asked for, and those of a worker that is being quieted. */
#define QUEUES_USEC       (30 * USEC_PER_SEC)
#define QUIET_QUEUES_USEC USEC_PER_SEC
/* Workers that one round asks. The others follow in the next one. */
#define ROUND_NODES_MAX 1024

/* A worker that has replied to nothing for this long will not: some versions of Celery do not listen any more
 * after they have connected again. */
#define NO_REPLY_USEC (20 * USEC_PER_SEC)

#define PROBE_KEY "sqmgr.probe"
/* The bounds of answers. */
#define COUNT_MAX     1000000
#define PROCESSED_MAX (UINT64_C(1) << 50)

struct live {
        const struct live_server *server;
        struct celery_names names;
        struct celery_nodes nodes;
        struct celery_waits waits;
        struct pidbox *pidbox;
        sd_event_source *gather;      /* begins the next round */
        uint64_t subscriptions;       /* connections of the subscriber whose events were heard */
        uint64_t round;               /* number of the last round that has begun */
        usec_t round_at;              /* when it began */
        struct live_ask *asks;        /* await the end of a round, oldest first */
        struct live_ask *queue_asks;  /* await the end of the reading of queues, oldest first */
        struct celery_queues *queues; /* a reading in progress; NULL: none */
};

static void names_of(const char *namespace, unsigned database, struct celery_names *ret)
{
        *ret = (struct celery_names){.database = database,
                                     .key_prefix = namespace && namespace[0] != '\0' ? namespace : NULL};
}

static char *probe_key(const char *namespace)
{
        struct celery_names names;

        names_of(namespace, 0, &names);
        return celery_list_key(&names, PROBE_KEY);
}

static void gather(struct live *live)
{
        if (pidbox_is_busy(live->pidbox))
                return;
        /* Neither call fails for our own event source. */
        (void)sd_event_source_set_time(live->gather, usec_add(clock_now(CLOCK_MONOTONIC), GATHER_USEC));
        (void)sd_event_source_set_enabled(live->gather, SD_EVENT_ONESHOT);
}

static void want(struct live *live, struct celery_node *node, unsigned wants)
{
        if ((node->wants & wants) == wants)
                return;
        node->wants |= wants;
        node->keeps_jobs |= (wants & WANT_JOBS) != 0;
        gather(live);
}

/* Cancels each queue. The queues are asked for anew after that. */
static void cancel_queues(struct live *live, struct celery_node *node)
{
        const char *const nodes[] = {node->name};

        for (const char *name = node->queues; name && *name != '\0'; name += strlen(name) + 1) {
                const struct celery_request request = {
                        .method = CELERY_CANCEL_CONSUMER, .queue = name, .nodes = nodes, .n_nodes = 1};

                /* sqmgr asks again if heartbeats contradict. */
                (void)pidbox_send(live->pidbox, &request);
        }
        node->is_to_quiet = false;
        want(live, node, WANT_QUEUES);
}

static void on_reply(struct celery_reply *reply, bool readable, usec_t asked_at, void *userdata)
{
        struct live *live = userdata;
        enum celery_method method = reply->method;
        struct celery_node *node =
                celery_nodes_reply(&live->nodes, reply, readable, asked_at, clock_now(CLOCK_MONOTONIC));

        if (node)
                node->waits_since = 0;
        if (node && method == CELERY_ACTIVE_QUEUES && node->is_to_quiet)
                cancel_queues(live, node);
}

/* Hands over the jobs of one identity. Returns false if they are not known. */
static bool answer_list(struct live *live, const char *identity, struct job_list *ret)
{
        struct celery_node *node = celery_nodes_find(&live->nodes, identity);

        if (!node || node->active_at < live->round_at || !node->keeps_jobs)
                return false;
        *ret = node->jobs;
        node->jobs = (struct job_list){0};
        node->keeps_jobs = false;
        return true;
}

static void answer_jobs(struct live *live, struct live_ask *ask)
{
        struct answer_jobs *answer = &ask->answer->jobs;

        answer->lists = calloc(ask->query->n_texts, sizeof(*answer->lists));
        if (!answer->lists) {
                live_ask_fail(ask, ANSWER_LOST, "out of memory");
                return;
        }
        answer->n = ask->query->n_texts;
        for (size_t i = 0; i < answer->n; i++)
                if (!answer_list(live, query_text(ask->query, i), &answer->lists[i]))
                        error_report_set(&ask->answer->error,
                                         "a worker did not reply; Celery's task_serializer must be 'json'");
        ask->done(ask);
}

static void on_queues(void *userdata);

/* Reads queues for one ask at a time. */
static void read_queues(struct live *live)
{
        struct live_ask *ask;

        while (!live->queues && (ask = live->queue_asks)) {
                live->queue_asks = ask->next;
                live->queues = celery_queues_read(live->server->redis, &live->names, &live->waits, ask,
                                                  on_queues, live);
        }
}

static void on_queues(void *userdata)
{
        struct live *live = userdata;

        live->queues = NULL;
        read_queues(live);
}

static void answer_queues(struct live *live, struct live_ask *ask)
{
        live_ask_add(&live->queue_asks, ask);
        read_queues(live);
}

static void drop_jobs(struct live *live)
{
        CELERY_NODES_FOREACH(&live->nodes, node)
        {
                if (node->wants & WANT_JOBS)
                        continue;
                node->keeps_jobs = false;
                job_list_clear(&node->jobs);
        }
}

static void on_end(void *userdata)
{
        struct live *live = userdata;

        while (live->asks && live->asks->number <= live->round) {
                struct live_ask *ask = live->asks;

                live->asks = ask->next;
                if (ask->query->kind == QUERY_QUEUES)
                        answer_queues(live, ask);
                else
                        answer_jobs(live, ask);
        }
        drop_jobs(live);
        /* An ask that came during the round awaits the next one, even if no worker is to be asked. */
        bool more = live->asks;
        CELERY_NODES_FOREACH(&live->nodes, node)
        more |= node->wants != 0;
        if (more)
                gather(live);
}

static size_t choose_methods(unsigned wants, enum celery_method methods[static 3])
{
        size_t n = 0;

        if (wants & (WANT_QUEUES | WANT_TASKS))
                methods[n++] = CELERY_ACTIVE_QUEUES;
        if (wants & WANT_TASKS)
                methods[n++] = CELERY_RESERVED;
        if (wants & (WANT_TASKS | WANT_JOBS))
                methods[n++] = CELERY_ACTIVE;
        return n;
}

static int on_gather(sd_event_source *source _unused_, uint64_t due _unused_, void *userdata)
{
        struct live *live = userdata;
        const char *names[ROUND_NODES_MAX];
        enum celery_method methods[3];
        size_t n = 0;
        unsigned wants = 0;

        CELERY_NODES_FOREACH(&live->nodes, node)
        {
                if (node->wants == 0 || n == ROUND_NODES_MAX)
                        continue;
                wants |= node->wants;
                node->wants = 0;
                node->waits_since = node->waits_since ?: clock_now(CLOCK_MONOTONIC);
                names[n++] = node->name;
        }
        const struct pidbox_round round = {
                .methods = methods,
                .n_methods = choose_methods(wants, methods),
                .nodes = names,
                .n_nodes = n,
        };
        live->round++;
        live->round_at = clock_now(CLOCK_MONOTONIC);
        /* Nothing was sent, so nothing will be known. */
        if (n == 0 || pidbox_begin(live->pidbox, &round) < 0)
                on_end(live);
        return 0;
}

/* Events were missed while the subscription was down. */
static void check_subscription(struct live *live)
{
        uint64_t count = redis_connection_count(live->server->subscriber);

        if (live->subscriptions == count)
                return;
        live->subscriptions = count;
        celery_nodes_missed(&live->nodes);
        celery_waits_forget(&live->waits);
}

static void on_event(struct redis *redis _unused_, const struct field *channel _unused_,
                     const struct field *text, void *userdata)
{
        struct live *live = userdata;
        struct celery_event event;

        check_subscription(live);
        /* Anybody may publish there. */
        if (celery_event_decode(text->text, text->len, &event) == 0)
                (void)celery_nodes_hear(&live->nodes, &event, clock_now(CLOCK_MONOTONIC));
}

/* Refuses the ask if workers cannot be asked. */
static bool is_refused(struct live *live, struct live_ask *ask)
{
        const struct error_report *error = pidbox_error(live->pidbox);

        if (!error)
                return false;
        ask->answer->status = ANSWER_REFUSED;
        ask->answer->error = *error;
        ask->done(ask);
        return true;
}

/* Returns the queues that the node consumes; NULL: none, or not known, or out of memory. */
static struct heartbeat_info *info_of(const struct celery_node *node)
{
        size_t length = node->queues ? queue_names_length(node->queues) : 0;
        struct heartbeat_info *info = node->queues ? calloc(1, sizeof(*info) + length + 1) : NULL;

        if (info)
                memcpy(info->queues, node->queues, length);
        return info;
}

/* A worker that was asked to exit runs its tasks, and sends no heartbeat. The last heartbeat is repeated as
 * long as sqmgr asks for it, which is while the process lives. */
static void ask_heartbeat(struct live *live, struct live_ask *ask)
{
        struct answer_heartbeat *answer = &ask->answer->heartbeat;
        usec_t now = clock_now(CLOCK_MONOTONIC);

        check_subscription(live);
        struct celery_node *node = celery_nodes_find(&live->nodes, query_text(ask->query, 0));
        if (!node || node->counted_at == 0 || usec_sub(now, node->heard_at) > CELERY_FORGET_USEC) {
                ask->done(ask);
                return;
        }
        bool quiet = celery_node_is_quiet(node), stopping = celery_node_is_stopping(node, now);
        if (stopping)
                node->heard_at = now;
        else if (node->queues_at == 0 ||
                 usec_sub(now, node->queues_at) >=
                         (quiet || node->is_to_quiet ? QUIET_QUEUES_USEC : QUEUES_USEC))
                want(live, node, WANT_QUEUES);
        answer->found = true;
        answer->heartbeat = (struct heartbeat){
                .sent_usec = MIN(node->sent_usec + (stopping ? usec_sub(now, node->offline_at) : 0),
                                 ANSWER_CLOCK_MAX_USEC),
                .busy = (unsigned)MIN(node->active, (uint64_t)COUNT_MAX),
                .concurrency = (unsigned)MIN(celery_nodes_peak(&live->nodes, node), (uint64_t)COUNT_MAX),
                .quiet = stopping ||
                         (quiet && node->was_quiet && !celery_node_is_shared(&live->nodes, node, now)),
                .stopping = stopping,
                .processed_known = true,
                .processed = MIN(node->processed, PROCESSED_MAX),
        };
        if (ask->query->numbers[0] != 0)
                answer->info = info_of(node);
        ask->done(ask);
}

/* Only a reply that is as new as the last heartbeat counts. If there is none yet, the next poll finds it.
 * Idle workers are polled four times a second: they are asked once for each heartbeat. */
static void ask_work_list(struct live *live, struct live_ask *ask)
{
        struct answer_work_list *answer = &ask->answer->work_list;
        struct celery_node *node = celery_nodes_find(&live->nodes, query_text(ask->query, 0));

        if (is_refused(live, ask))
                return;
        if (node) {
                answer->known = node->counted_at != 0 && node->reserved_at >= node->counted_at &&
                                node->active_at >= node->counted_at;
                if (!answer->known)
                        want(live, node, WANT_TASKS);
                answer->empty = answer->known && node->n_reserved == 0 && node->n_active == 0;
        }
        ask->done(ask);
}

static void ask_scan(struct live *live, struct live_ask *ask)
{
        int r = 0;

        celery_nodes_expire(&live->nodes, clock_now(CLOCK_MONOTONIC));
        CELERY_NODES_FOREACH(&live->nodes, node)
        r = r < 0 ? r : live_scan_add(ask, node->identity, node->host_len, node->pid);
        if (r < 0)
                live_ask_fail(ask, ANSWER_LOST, "out of memory");
        else
                ask->done(ask);
}

static void ask_jobs(struct live *live, struct live_ask *ask)
{
        if (ask->query->n_texts == 0) {
                live_ask_fail(ask, ANSWER_REFUSED, "no worker is named");
                return;
        }
        if (is_refused(live, ask))
                return;
        for (size_t i = 0; i < ask->query->n_texts; i++) {
                struct celery_node *node = celery_nodes_find(&live->nodes, query_text(ask->query, i));

                if (node)
                        want(live, node, WANT_JOBS);
        }
        ask->number = live->round + 1;
        live_ask_add(&live->asks, ask);
        gather(live);
}

/* Reads the named queues, or all that are consumed. For these, workers are asked first, unless their queues
 * are known from lately. */
static void ask_queues(struct live *live, struct live_ask *ask)
{
        usec_t now = clock_now(CLOCK_MONOTONIC);

        check_subscription(live);
        if (ask->query->n_texts > 0) {
                answer_queues(live, ask);
                return;
        }
        CELERY_NODES_FOREACH(&live->nodes, node)
        if (node->queues_at == 0 || usec_sub(now, node->queues_at) >= QUEUES_USEC)
                want(live, node, WANT_QUEUES);
        ask->number = live->round + 1;
        live_ask_add(&live->asks, ask);
        gather(live);
}

static void ask_quiet(struct live *live, struct live_ask *ask)
{
        struct celery_node *node = celery_nodes_find(&live->nodes, query_text(ask->query, 0));

        if (is_refused(live, ask))
                return;
        if (!node) {
                live_ask_fail(ask, ANSWER_REFUSED, "the worker sends no events");
        } else if (celery_node_is_shared(&live->nodes, node, clock_now(CLOCK_MONOTONIC))) {
                live_ask_fail(ask, ANSWER_REFUSED, "several workers have the same name");
        } else if (node->waits_since != 0 &&
                   usec_sub(clock_now(CLOCK_MONOTONIC), node->waits_since) >= NO_REPLY_USEC) {
                live_ask_fail(ask, ANSWER_REFUSED, "the worker does not reply");
        } else {
                node->is_to_quiet = true;
                want(live, node, WANT_QUEUES);
                ask->done(ask);
        }
}

static void live_end(struct live *live)
{
        live_asks_end(&live->asks);
        live_asks_end(&live->queue_asks);
        celery_queues_free(live->queues);
        pidbox_free(live->pidbox);
        sd_event_source_disable_unref(live->gather);
        celery_nodes_clear(&live->nodes);
        free(live);
}

static int live_begin(const struct live_server *server, struct live **ret)
{
        static const struct pidbox_ops ops = {.on_reply = on_reply, .on_end = on_end};
        struct live *live = calloc(1, sizeof(*live));

        if (!live)
                return -ENOMEM;
        live->server = server;
        live->waits.nodes = &live->nodes;
        names_of(server->namespace, server->database, &live->names);
        /* Kombu does not put the number into the name if it was given Sentinels. */
        if (server->sentinels)
                live->names.fanout_prefix = "/{db}.";
        _cleanup_free_ char *pattern = celery_event_pattern(&live->names);
        int r = pattern ? redis_subscribe(server->subscriber, pattern, on_event, live) : -ENOMEM;
        if (r >= 0)
                r = pidbox_new(server->event, server->redis, &live->names, &ops, live, &live->pidbox);
        if (r >= 0)
                r = sd_event_add_time(server->event, &live->gather, CLOCK_MONOTONIC, 0, 1, on_gather, live);
        if (r >= 0)
                r = sd_event_source_set_enabled(live->gather, SD_EVENT_OFF);
        if (r < 0)
                live_end(live);
        else
                *ret = live;
        return r;
}

const struct live_format celery_live_format = {
        .subscribes = true,
        .probe_key = probe_key,
        .begin = live_begin,
        .end = live_end,
        .asks =
                {
                        [QUERY_HEARTBEAT] = ask_heartbeat,
                        [QUERY_WORK_LIST] = ask_work_list,
                        [QUERY_SCAN] = ask_scan,
                        [QUERY_JOBS] = ask_jobs,
                        [QUERY_QUEUES] = ask_queues,
                        [QUERY_SIGNAL] = ask_quiet,
                },
};
