/* SPDX-License-Identifier: MIT */
/* The queries that a Redis answers; see the header. frameworks/heartbeat_asks.c and frameworks/scan_asks.c
 * have those for heartbeats and scans. */
#include "frameworks/redis_ask.h"
#include "base/printable.h"
#include "frameworks/decode.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_running_jobs.h"
#include "frameworks/requeue.h"
#include "io/clock.h"
#include "redis/redis_batch.h"
#include "redis/redis_info.h"
#include "servers/server.h"
#include "settings/traits.h"
#include <hiredis/hiredis.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

bool ask_failed(struct ask *ask, const redisReply *reply)
{
        if (reply && reply->type != REDIS_REPLY_ERROR)
                return false;
        struct error_report error;
        if (reply)
                error_report_quote(&error, reply->str, "command refused");
        else
                error_report_set(&error, "connection lost");
        ask_fail_as(ask, reply ? ANSWER_REFUSED : ANSWER_LOST, &error);
        return true;
}

void ask_done_unless_failed(struct ask *ask, const redisReply *reply)
{
        struct answer answer = {0};

        if (!ask_failed(ask, reply))
                ask_done(ask, &answer);
}

bool ask_command(struct ask *ask, redis_reply_fn callback, struct redis_command *command, bool forbiddable)
{
        struct redis *redis = ask_redis(ask);
        int r = forbiddable
                        ? redis_command_forbiddable(redis, callback, ask, command->argc, command->argv, NULL)
                        : redis_command(redis, callback, ask, command->argc, command->argv, NULL);

        command_clear(command);
        if (r < 0)
                ask_fail_errno(ask, r);
        return r >= 0;
}

static struct redis_link *link_of(const struct ask *ask)
{
        return ask_backend(ask);
}

struct redis *ask_redis(const struct ask *ask)
{
        return link_of(ask)->redis;
}

const struct redis_format *ask_format(const struct ask *ask)
{
        return link_of(ask)->format;
}

const char *ask_namespace(const struct ask *ask)
{
        return link_of(ask)->namespace;
}

static void on_jobs(struct job_list *lists, const struct error_report *error, void *userdata)
{
        struct ask *ask = userdata;
        const struct query *query = ask_query(ask);

        struct answer answer = {
                .jobs = {.lists = lists, .n = query->n_texts, .with_entries = query->numbers[0] != 0}};

        if (error)
                answer.error = *error;
        ask_done(ask, &answer);
}

static void cancel_jobs(struct ask *ask)
{
        redis_running_jobs_free(ask->work);
}

void ask_jobs(struct ask *ask)
{
        const struct running_jobs_format *format = ask_format(ask)->running_jobs;
        const struct query *query = ask_query(ask);
        _cleanup_free_ const char **identities = calloc(query->n_texts + 1, sizeof(*identities));
        struct redis_running_jobs *running_jobs;

        if (!format || query->n_texts == 0) {
                ask_fail(ask, ANSWER_REFUSED, "the framework has no lists of jobs");
                return;
        }
        for (size_t i = 0; identities && i < query->n_texts; i++)
                identities[i] = query_text(query, i);
        const struct running_jobs_request request = {
                .event = reader_event(ask->reader),
                .reader = ask->reader,
                .redis = ask_redis(ask),
                .namespace = ask_namespace(ask),
                .identities = identities,
                .n = query->n_texts,
                .with_entries = query->numbers[0] != 0,
        };
        int r = identities ? redis_running_jobs_read(format, &request, on_jobs, ask, &running_jobs) : -ENOMEM;
        if (r < 0) {
                ask_fail_errno(ask, r);
                return;
        }
        ask->work = running_jobs;
        ask->cancel = cancel_jobs;
}

static void on_queues(struct queues_reading *queues, const struct error_report *error, void *userdata)
{
        struct queue_reading *reading = userdata;
        struct ask *ask = TAKE_PTR(reading->ask);

        if (error) {
                ask_fail_as(ask, ANSWER_REFUSED, error);
                return;
        }
        struct answer answer = {.queues = *queues};
        queues->queues = NULL;
        ask_done(ask, &answer);
}

void ask_queues(struct ask *ask)
{
        const struct queues_format *format = ask_format(ask)->queues;
        bool named = ask_query(ask)->n_texts > 0;
        struct queue_reading *reading = &link_of(ask)->queue_readings[named];
        struct answer empty = {0};
        int r = 0;

        /* Queues that no list names are read by name for autoscaling, and for a client at the same time. */
        if (named && reading->ask && format && !format->take_service)
                reading = &link_of(ask)->queue_readings[false];

        /* sqmgr names queues only for workers that report theirs. */
        if (format && named && !ask_format(ask)->traits->reports_queues)
                format = NULL;
        if (!format || reading->ask) {
                ask_fail(ask, ANSWER_REFUSED,
                         format ? "the queues are being read already"
                                : "the framework does not report its queues");
                return;
        }
        if (!reading->queue_reader)
                r = queue_reader_new(ask_redis(ask), format, ask_namespace(ask), on_queues, reading,
                                     &reading->queue_reader);
        if (r >= 0)
                r = queue_reader_read(reading->queue_reader, named ? query_text(ask_query(ask), 0) : NULL,
                                      ask_query(ask)->numbers[0] != 0, clock_now(CLOCK_REALTIME));
        if (r == -ENODATA && (empty.queues.queues = calloc(1, sizeof(struct queues))))
                ask_done(ask, &empty);
        else if (r < 0)
                ask_fail_errno(ask, r);
        else
                reading->ask = ask;
}

static void on_requeued(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer answer = {0};

        if (ask_failed(ask, reply))
                return;
        if (ask_format(ask)->requeue->take(reply, &answer.requeue.outcome, &answer.requeue.times))
                ask_done(ask, &answer);
        else
                ask_fail(ask, ANSWER_LOST, "Redis sent an invalid reply");
}

void ask_requeue(struct ask *ask)
{
        const struct redis_format *format = ask_format(ask);
        const struct query *query = ask_query(ask);
        struct job_list list = {0};
        size_t bytes = SIZE_MAX;

        if (!format->requeue || query->n_texts != 4) {
                ask_fail(ask, ANSWER_REFUSED, "the framework does not support re-enqueuing");
                return;
        }
        int r = job_list_add(&list, query->numbers[0] != 0, &query->texts[1], &query->texts[2]);
        if (r == 0)
                r = job_list_decode(&list, format->running_jobs->decode, &bytes);
        if (r == 0 && list.n_jobs == 1) {
                const struct requeue_request request = {
                        .namespace = ask_namespace(ask),
                        .identity = query_text(query, 0),
                        .job = &list.jobs[0],
                        .puts_back = query->numbers[1] != 0,
                        .limit = (unsigned)MIN(query->numbers[2], (uint64_t)UINT_MAX),
                        .why = query_text(query, 3),
                        .realtime = query->numbers[3],
                };

                r = format->requeue->send(ask_redis(ask), &request, on_requeued, ask);
        } else if (r == 0) {
                r = -EINVAL;
        }
        job_list_clear(&list);
        if (r == -EINVAL)
                ask_fail(ask, ANSWER_REFUSED, "the entry is not a job");
        else if (r < 0)
                ask_fail_errno(ask, r);
}

/* As Sidekiq's own API writes a signal (Sidekiq::Process#signal): LPUSH IDENTITY-signals NAME, EXPIRE 60, as
 * one step. One command, since a MULTI that memory cuts short would leave the connection within it. */
#define EXPIRE_SECONDS "60"
static const char script[] = "redis.call('LPUSH', KEYS[1], ARGV[1])\n"
                             "return redis.call('EXPIRE', KEYS[1], ARGV[2])\n";

static void on_signal(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        ask_done_unless_failed(userdata, reply);
}

void ask_signal(struct ask *ask)
{
        const struct query *query = ask_query(ask);
        const char *suffix = ask_format(ask)->signals_suffix;
        const char *name = query->numbers[0] < NSIG ? sigabbrev_np((int)query->numbers[0]) : NULL;
        _cleanup_free_ char *list = NULL;

        if (!suffix || !name || query->n_texts != 1) {
                ask_fail(ask, ANSWER_REFUSED, "the framework reads no such signal from its server");
                return;
        }
        if (asprintf(&list, "%s%s", query_text(query, 0), suffix) < 0)
                list = NULL;
        _cleanup_free_ char *key = list ? decode_key(ask_namespace(ask), list, NULL) : NULL;
        const char *argv[] = {"EVAL", script, "1", key, name, EXPIRE_SECONDS};
        int r = key ? redis_command_forbiddable(ask_redis(ask), on_signal, ask, ELEMENTSOF(argv), argv, NULL)
                    : -ENOMEM;
        if (r < 0)
                ask_fail_errno(ask, r);
}

/* The questions of doctor to a server, in one round trip. */
enum question { QUESTION_INFO, QUESTION_SAVE, QUESTIONS };
static const struct {
        int argc;
        const char *argv[3];
} questions[] = {
        [QUESTION_INFO] = {1, {"INFO"}},
        [QUESTION_SAVE] = {3, {"CONFIG", "GET", "save"}},
};

/* Returns the value from a reply to CONFIG GET, or NULL: an error, or an older Redis without the setting. */
static const char *setting_of(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                               reply->element[1]->type == REDIS_REPLY_STRING
                       ? reply->element[1]->str
                       : NULL;
}

#define SET(array, text) snprintf((array), sizeof(array), "%s", (text))

/* A question of doctor: the answer is kept until all replies are there. */
struct diagnosis {
        struct ask *ask;
        struct redis_batch *batch;
        struct answer answer;
};

static void diagnosis_free(struct diagnosis *diagnosis)
{
        redis_batch_free(diagnosis->batch);
        free(diagnosis);
}

static void on_reply(const redisReply *reply, size_t question, void *userdata)
{
        struct diagnosis *diagnosis = userdata;
        struct redis_facts *facts = &diagnosis->answer.diagnosis.redis;
        const char *error = reply && reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;
        const char *setting = reply ? setting_of(reply) : NULL;

        if (!reply) {
                diagnosis->answer.status = ANSWER_LOST;
        } else if (question == QUESTION_INFO) {
                if (reply->type == REDIS_REPLY_STRING)
                        redis_info_take(reply->str, facts);
                else
                        quoted_set(&facts->info_error, error ?: "the reply has no text");
        } else {
                facts->has_save = setting;
                SET(facts->save, setting ?: "");
                printable_replace(facts->save, strlen(facts->save), false);
                quoted_set(&facts->config_error, setting ? "" : error ?: "no such setting");
        }
}

static void on_replies(void *userdata)
{
        struct diagnosis *diagnosis = userdata;
        struct answer answer = diagnosis->answer;
        struct ask *ask = diagnosis->ask;

        diagnosis_free(diagnosis);
        if (answer.status == ANSWER_LOST) {
                ask_fail(ask, ANSWER_LOST, "connection lost, or no reply in time");
                return;
        }
        ask_done(ask, &answer);
}

void ask_diagnosis(struct ask *ask)
{
        static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_replies};
        struct diagnosis *diagnosis = calloc(1, sizeof(*diagnosis));
        int r = diagnosis ? redis_batch_new(&ops, diagnosis, &diagnosis->batch) : -ENOMEM;

        if (r < 0) {
                free(diagnosis);
                ask_fail_errno(ask, r);
                return;
        }
        diagnosis->ask = ask;
        for (size_t i = 0; i < QUESTIONS && r == 0; i++)
                r = redis_batch_add(diagnosis->batch, ask_redis(ask), i, questions[i].argc, questions[i].argv,
                                    NULL);
        if (r < 0)
                on_reply(NULL, 0, diagnosis);
        if (redis_batch_pending(diagnosis->batch) == 0) {
                diagnosis_free(diagnosis);
                ask_fail_errno(ask, r);
        }
}
