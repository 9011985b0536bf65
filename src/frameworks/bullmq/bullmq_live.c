/* SPDX-License-Identifier: MIT */
/* Observes the processes that run workers of BullMQ (view.h). All queries of a poll share one round of
 * commands:
 *
 * 1. CLIENT LIST: which processes are connected, for which queues, and whether they wait for a job.
 * 2. SORT for each queue that these processes serve: which process runs which active job.
 * 3. PTTL, for processes that show no other sign of life: of the lock of a job, or of the rate limit. */
#include "frameworks/bullmq/view.h"
#include "frameworks/decode.h"
#include "frameworks/live_format.h"
#include "io/clock.h"
#include "model/heartbeat_info.h"
#include "redis/redis.h"
#include "redis/redis_command.h"
#include <string.h>

/* A lock or a rate limit is read only if the last sign of life is older. */
#define SILENT_USEC (5 * USEC_PER_SEC)
/* A queue with more active jobs is not read: a writer to Redis can make the list of any length. LIMIT keeps
 * Redis from reading more, and the reply within the limit of elements. */
#define ACTIVE_MAX      65000
#define ACTIVE_MAX_TEXT "65000"
/* Lower than the socket of queries: all queries of a poll have arrived before the round begins. */
#define PRIORITY (SD_EVENT_PRIORITY_NORMAL + 5)

enum step { STEP_NONE, STEP_CLIENTS, STEP_ACTIVE, STEP_TIMES };

struct live {
        const struct live_server *server;
        struct bullmq_view view;
        sd_event_source *begin; /* starts a round */

        enum step step;
        struct live_ask *asks;    /* of the current round */
        struct live_ask *waiting; /* for the next one: the current one may have been read before they came */
        bool with_jobs;           /* the round lists jobs */
        bool lost;                /* the round has failed */
        unsigned pending;         /* commands */
        usec_t began_at;
};

/* A command of a round. */
struct request {
        struct live *live;
        void (*take)(struct live *live, size_t index, const redisReply *reply);
        size_t index; /* of the process or queue */
};

static void advance(struct live *live);

static void on_reply(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct request request = *(struct request *)userdata;

        free(userdata);
        request.live->pending--;
        if (reply)
                request.take(request.live, request.index, reply);
        else
                request.live->lost = true;
        if (request.live->pending == 0)
                advance(request.live);
}

/* The round has failed if a command cannot be sent. An ACL that forbids the command ends the connection:
 * without it nothing is known of any process. */
static void send_command(struct live *live, void (*take)(struct live *, size_t, const redisReply *),
                         size_t index, int argc, const char *const argv[])
{
        struct request *request = malloc(sizeof(*request));

        if (request)
                *request = (struct request){.live = live, .take = take, .index = index};
        if (!request || redis_command(live->server->redis, on_reply, request, argc, argv, NULL) < 0) {
                free(request);
                live->lost = true;
                return;
        }
        live->pending++;
}

/* key: NULL: memory is short. */
static void ask_time(struct live *live, void (*take)(struct live *, size_t, const redisReply *), size_t index,
                     const char *key)
{
        const char *const argv[] = {"PTTL", key};

        if (key)
                send_command(live, take, index, ELEMENTSOF(argv), argv);
        else
                live->lost = true;
}

static void take_clients(struct live *live, size_t index _unused_, const redisReply *reply)
{
        const struct field text = reply_text(reply);
        struct live_ask *ask;

        while (reply->type == REDIS_REPLY_ERROR && (ask = live->asks)) {
                live->asks = ask->next;
                (void)live_ask_failed(ask, reply);
        }
        if (bullmq_view_take_clients(&live->view, &text, live->began_at, clock_now(CLOCK_MONOTONIC)) < 0)
                live->lost = true;
}

static void take_active(struct live *live, size_t index, const redisReply *reply)
{
        const size_t each = live->with_jobs ? _BULLMQ_JOB_MAX : BULLMQ_NAME;

        if (reply->type != REDIS_REPLY_ARRAY || reply->elements % each != 0 ||
            reply->elements / each == ACTIVE_MAX) {
                live->view.queues[index].failed = true;
                return;
        }
        for (size_t i = 0; i < reply->elements; i += each) {
                struct field job[_BULLMQ_JOB_MAX] = {0};

                for (size_t field = 0; field < each; field++)
                        job[field] = reply_element(reply, i + field);
                if (bullmq_view_take_job(&live->view, index, live->with_jobs, job) < 0)
                        live->view.queues[index].failed = true;
        }
}

static void ask_jobs_of(struct live *live, size_t index)
{
        const char *prefix = live->view.prefix, *queue = live->view.queues[index].name;
        _cleanup_free_ char *key = bullmq_key(prefix, "active", queue);
        _cleanup_free_ char *worker = bullmq_key(prefix, "*->pb", queue);
        _cleanup_free_ char *name = bullmq_key(prefix, "*->name", queue);
        _cleanup_free_ char *start = bullmq_key(prefix, "*->processedOn", queue);
        const char *const argv[] = {"SORT", key, "BY",  "nosort", "LIMIT", "0",  ACTIVE_MAX_TEXT,
                                    "GET",  "#", "GET", worker,   "GET",   name, "GET",
                                    start};

        if (!key || !worker || !name || !start)
                live->lost = true;
        else
                send_command(live, take_active, index, live->with_jobs ? ELEMENTSOF(argv) : 11, argv);
}

static void ask_active(struct live *live)
{
        for (const struct live_ask *ask = live->asks; ask; ask = ask->next)
                for (size_t i = 0; i < ask->query->n_texts && ask->answer->kind != QUERY_SCAN; i++)
                        bullmq_view_ask(&live->view, query_text(ask->query, i));
        for (size_t i = 0; i < live->view.n_queues && !live->lost; i++)
                if (live->view.queues[i].asked)
                        ask_jobs_of(live, i);
}

static void take_lock(struct live *live, size_t index, const redisReply *reply)
{
        if (reply->type == REDIS_REPLY_INTEGER && reply->integer > 0)
                bullmq_process_take_lock(&live->view.processes[index],
                                         (usec_t)MIN(reply->integer, (long long)UINT32_MAX) * USEC_PER_MSEC,
                                         live->began_at);
}

static void take_limit(struct live *live, size_t index, const redisReply *reply)
{
        live->view.queues[index].limited = reply->type == REDIS_REPLY_INTEGER && reply->integer > 0;
}

static void ask_limits(struct live *live, const struct bullmq_process *process)
{
        for (size_t i = 0; i < process->n_queues; i++) {
                struct bullmq_queue *queue = bullmq_view_find_queue(&live->view, process->queues[i]);

                if (!queue || queue->limit_asked)
                        continue;
                _cleanup_free_ char *key = bullmq_key(live->view.prefix, "limiter", queue->name);
                queue->limit_asked = true;
                ask_time(live, take_limit, (size_t)(queue - live->view.queues), key);
        }
}

static void ask_times(struct live *live)
{
        for (size_t i = 0; i < live->view.n_processes; i++) {
                struct bullmq_process *process = &live->view.processes[i];

                if (!process->asked)
                        continue;
                bullmq_view_judge_jobs(&live->view, process, live->began_at);
                if (process->unread || usec_sub(live->began_at, process->sent) <= SILENT_USEC)
                        continue;
                if (process->lock)
                        ask_time(live, take_lock, i, process->lock);
                else if (!process->waits)
                        ask_limits(live, process);
        }
}

static struct bullmq_process *process_of(const struct live *live, const struct live_ask *ask, size_t i)
{
        return bullmq_view_find(&live->view, query_text(ask->query, i));
}

static int answer_heartbeat(const struct live *live, struct live_ask *ask)
{
        const struct bullmq_process *process = process_of(live, ask, 0);
        struct answer_heartbeat *answer = &ask->answer->heartbeat;

        answer->found = process && !process->unread;
        if (!answer->found)
                return 0;
        answer->heartbeat = (struct heartbeat){
                .sent_usec = process->sent,
                .busy = process->busy,
                .concurrency = bullmq_view_concurrency(&live->view, process),
                .quiet = bullmq_process_may_be_quiet(process),
        };
        if (ask->query->numbers[0] != 0)
                answer->info = bullmq_process_info(process);
        return 0;
}

static int answer_work_list(const struct live *live, struct live_ask *ask)
{
        const struct bullmq_process *process = process_of(live, ask, 0);

        ask->answer->work_list.known = process && !process->unread;
        ask->answer->work_list.empty = ask->answer->work_list.known && process->busy == 0;
        return 0;
}

static int answer_scan(const struct live *live, struct live_ask *ask)
{
        int r = 0;

        for (size_t i = 0; i < live->view.n_processes && r >= 0; i++) {
                const struct bullmq_connection *connection = live->view.processes[i].connections;

                r = live_scan_add(ask, connection->identity, connection->host_len, connection->pid);
        }
        return r;
}

static int answer_jobs(const struct live *live, struct live_ask *ask)
{
        struct answer_jobs *answer = &ask->answer->jobs;
        int r = 0;

        answer->lists = calloc(ask->query->n_texts + 1, sizeof(*answer->lists));
        if (!answer->lists)
                return -ENOMEM;
        answer->n = ask->query->n_texts;
        for (size_t i = 0; i < answer->n && r >= 0; i++) {
                struct bullmq_process *process = process_of(live, ask, i);
                size_t bytes = SIZE_MAX;

                if (!process)
                        continue;
                if (process->unread)
                        error_report_set(&ask->answer->error, "the active jobs of a queue could not be read");
                answer->lists[i] = process->list;
                process->list = (struct job_list){0};
                r = job_list_decode(&answer->lists[i], bullmq_job_decode, &bytes);
        }
        return r;
}

typedef int (*answer_fn)(const struct live *live, struct live_ask *ask);

static const answer_fn answers[_QUERY_KIND_MAX] = {
        [QUERY_HEARTBEAT] = answer_heartbeat,
        [QUERY_WORK_LIST] = answer_work_list,
        [QUERY_SCAN] = answer_scan,
        [QUERY_JOBS] = answer_jobs,
};

static void end_round(struct live *live)
{
        struct live_ask *ask;

        live->step = STEP_NONE;
        for (size_t i = 0; i < live->view.n_processes; i++)
                if (live->view.processes[i].asked)
                        bullmq_view_judge_limits(&live->view, &live->view.processes[i], live->began_at);
        while ((ask = live->asks)) {
                live->asks = ask->next;
                if (answers[ask->answer->kind](live, ask) < 0)
                        live_ask_fail(ask, ANSWER_LOST, "out of memory");
                else
                        ask->done(ask);
        }
        if (live->waiting && sd_event_source_set_enabled(live->begin, SD_EVENT_ONESHOT) < 0)
                live_asks_end(&live->waiting);
}

/* Continues the round once no command is pending. */
static void advance(struct live *live)
{
        if (!live->lost && live->step == STEP_CLIENTS) {
                live->step = STEP_ACTIVE;
                ask_active(live);
        }
        if (!live->lost && live->step == STEP_ACTIVE && live->pending == 0) {
                live->step = STEP_TIMES;
                ask_times(live);
        }
        if (live->pending > 0)
                return;
        if (!live->lost) {
                end_round(live);
                return;
        }
        live->step = STEP_NONE;
        live_asks_end(&live->asks);
        live_asks_end(&live->waiting);
}

/* Takes the asks of the round. A list of jobs is handed out once, so a second query for jobs waits. */
static void take_asks(struct live *live)
{
        struct live_ask *ask, *later = NULL;

        live->with_jobs = false;
        while ((ask = live->waiting)) {
                bool jobs = ask->answer->kind == QUERY_JOBS;

                live->waiting = ask->next;
                live_ask_add(jobs && live->with_jobs ? &later : &live->asks, ask);
                live->with_jobs |= jobs;
        }
        live->waiting = later;
}

static int on_begin(sd_event_source *source _unused_, void *userdata)
{
        static const char *const argv[] = {"CLIENT", "LIST", "TYPE", "normal"};
        struct live *live = userdata;

        if (live->step != STEP_NONE || !live->waiting)
                return 0;
        take_asks(live);
        live->lost = false;
        live->step = STEP_CLIENTS;
        live->began_at = clock_now(CLOCK_MONOTONIC);
        send_command(live, take_clients, 0, ELEMENTSOF(argv), argv);
        if (live->pending == 0)
                advance(live);
        return 0;
}

static void ask(struct live *live, struct live_ask *ask)
{
        if (sd_event_source_set_enabled(live->begin, SD_EVENT_ONESHOT) < 0)
                live_ask_fail(ask, ANSWER_LOST, "out of memory");
        else
                live_ask_add(&live->waiting, ask);
}

static char *probe_key(const char *namespace)
{
        return decode_key(bullmq_prefix(namespace), "sqmgr", NULL);
}

static void live_end(struct live *live)
{
        live_asks_end(&live->asks);
        live_asks_end(&live->waiting);
        sd_event_source_disable_unref(live->begin);
        bullmq_view_clear(&live->view);
        free(live);
}

static int live_begin(const struct live_server *server, struct live **ret)
{
        struct live *live = calloc(1, sizeof(*live));

        if (!live)
                return -ENOMEM;
        *live = (struct live){
                .server = server,
                .view = {.prefix = bullmq_prefix(server->namespace), .database = server->database},
        };
        int r = sd_event_add_defer(server->event, &live->begin, on_begin, live);
        if (r >= 0)
                r = sd_event_source_set_enabled(live->begin, SD_EVENT_OFF);
        if (r >= 0)
                r = sd_event_source_set_priority(live->begin, PRIORITY);
        if (r < 0) {
                live_end(live);
                return r;
        }
        *ret = live;
        return 0;
}

const struct live_format bullmq_live_format = {
        .probe_key = probe_key,
        .begin = live_begin,
        .end = live_end,
        .asks =
                {
                        [QUERY_HEARTBEAT] = ask,
                        [QUERY_WORK_LIST] = ask,
                        [QUERY_SCAN] = ask,
                        [QUERY_JOBS] = ask,
                },
};
