/* SPDX-License-Identifier: MIT */
/* A Redis as a framework uses it: its connection, and the queries that it answers. */
#include "base/printable.h"
#include "base/text.h"
#include "frameworks/backends.h"
#include "frameworks/decode.h"
#include "frameworks/heartbeat_check.h"
#include "frameworks/queue_reader.h"
#include "frameworks/redis_format.h"
#include "frameworks/redis_running_jobs.h"
#include "frameworks/table.h"
#include "io/clock.h"
#include "redis/redis_command.h"
#include "redis/redis_info.h"
#include "redis/tls.h"
#include <signal.h>

/* A reading of queues, whose reader keeps measures between queries. */
struct queue_reading {
        struct queue_reader *queue_reader; /* NULL: none yet; the backend frees it */
        struct ask *ask;                   /* in progress; NULL: none */
};

struct redis_backend {
        struct reader *reader;
        struct redis *redis;
        const struct redis_format *format;
        char *namespace;                        /* owned; NULL: none */
        struct queue_reading queue_readings[2]; /* of all queues; of named ones */
};

static struct redis *ask_redis(const struct ask *ask)
{
        return ((const struct redis_backend *)ask_backend(ask))->redis;
}

static const struct redis_format *ask_format(const struct ask *ask)
{
        return ((const struct redis_backend *)ask_backend(ask))->format;
}

/* NULL: none. */
static const char *ask_namespace(const struct ask *ask)
{
        return ((const struct redis_backend *)ask_backend(ask))->namespace;
}

/* Returns true, after ending the ask, if reply is NULL (connection lost) or an error of the server. */
static bool ask_failed(struct ask *ask, const redisReply *reply)
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

/* Ends an ask whose answer is its status alone. */
static void on_status(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer answer = {0};

        if (!ask_failed(ask, reply))
                ask_done(ask, &answer);
}

/* Sends a command and clears it. callback gets the ask as its userdata, later. If the command cannot be sent,
 * the ask ends within this call, which returns false. forbiddable: see redis_command_forbiddable(). */
static bool ask_command(struct ask *ask, redis_reply_fn callback, struct redis_command *command,
                        bool forbiddable)
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

/* COUNT of one SSCAN step. */
#define PAGE_OF_HOST "1000"
#define PAGE_OF_ALL  "100"

/* All texts must outlive the command. pattern: NULL scans all hosts, in smaller pages because the caller
 * sends a command for each identity found. cursor: "0" for the first step. */
static void identity_scan_ask(const struct heartbeat_format *format, const char *set_key, const char *pattern,
                              const char *cursor, struct redis_command *ret)
{
        *ret = (struct redis_command){
                .argv = {"SSCAN", set_key, cursor, "COUNT", pattern ? PAGE_OF_HOST : PAGE_OF_ALL, "MATCH",
                         pattern},
                .argc = pattern ? 7 : 5,
        };
        if (format->ask_list)
                format->ask_list(set_key, ret);
}

/* Calls found for each identity. Returns 0, or -errno: the error of found, or -EBADMSG for an unexpected
 * reply. *ret_cursor: the cursor of the next step, which points into the reply; NULL: this step was the
 * last. */
static int identity_scan_take(const struct heartbeat_format *format, const redisReply *reply,
                              identity_fn found, void *userdata, const char **ret_cursor)
{
        int r = 0;

        *ret_cursor = NULL;
        if (format->take_list)
                return format->take_list(reply, found, userdata);
        const struct field cursor = reply_element(reply, 0);
        const redisReply *page = cursor.text && reply->elements == 2 ? reply->element[1] : NULL;
        if (!page || page->type != REDIS_REPLY_ARRAY)
                return -EBADMSG;
        for (size_t i = 0; i < page->elements && r >= 0; i++) {
                const struct field member = reply_element(page, i);
                struct match_found one = {.identity = member.text, .len = member.len};

                if (member.text && format->identity_parse(member.text, member.len, &one.host_len, &one.pid))
                        r = found(&one, userdata);
        }
        if (r >= 0 && strcmp(cursor.text, "0") != 0)
                *ret_cursor = cursor.text;
        return r < 0 ? r : 0;
}

/* A command that reads outcomes, sent before that for the heartbeat. The last of the two to end frees it. */
struct outcomes_ask {
        const struct heartbeat_format *format;
        struct worker_outcomes outcomes;
        bool ended; /* the other one */
};

static void outcomes_end(struct outcomes_ask *outcomes)
{
        if (outcomes->ended)
                free(outcomes);
        else
                outcomes->ended = true;
}

static void on_outcomes(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct outcomes_ask *outcomes = userdata;

        /* The heartbeat counts without them. */
        if (reply)
                outcomes->outcomes = outcomes->format->take_outcomes(reply);
        outcomes_end(outcomes);
}

/* Returns NULL if the outcomes cannot be read: they are unknown then. */
static struct outcomes_ask *ask_outcomes(const struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct outcomes_ask *outcomes = NULL;
        struct redis_command command;

        if (ask_query(ask)->numbers[2] == 0 || !heartbeats->ask_outcomes ||
            heartbeats->ask_outcomes(ask_namespace(ask), query_text(ask_query(ask), 0), &command) < 0)
                return NULL;
        outcomes = calloc(1, sizeof(*outcomes));
        if (outcomes && redis_command_forbiddable(ask_redis(ask), on_outcomes, outcomes, command.argc,
                                                  command.argv, NULL) < 0)
                free(TAKE_PTR(outcomes));
        command_clear(&command);
        if (outcomes)
                outcomes->format = heartbeats;
        return outcomes;
}

static void on_heartbeat(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct outcomes_ask *outcomes = ask->work;
        struct answer answer = {0};
        struct worker_outcomes read = {0};

        if (outcomes) {
                read = outcomes->outcomes;
                outcomes_end(outcomes);
        }
        /* A key of another type holds no heartbeat. */
        if (!(reply && reply->type == REDIS_REPLY_ERROR && reply_is_wrong_type(reply)) &&
            ask_failed(ask, reply))
                return;
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct answer_heartbeat *heartbeat = &answer.heartbeat;
        heartbeat->found = heartbeats->take_heartbeat(reply, &heartbeat->heartbeat, &heartbeat->info);
        if (heartbeats->take_outcomes)
                heartbeat->heartbeat.outcomes = read;
        if (!heartbeat_check(framework_of(ask_format(ask)->traits), &heartbeat->heartbeat, heartbeat->info)) {
                heartbeat->found = false;
                free(TAKE_PTR(heartbeat->info));
        }
        ask_done(ask, &answer);
}

static void ask_heartbeat(struct ask *ask)
{
        const struct query *query = ask_query(ask);
        struct redis_command command;

        if (ask_format(ask)->heartbeats->ask_heartbeat(ask_namespace(ask), query_text(query, 0),
                                                       query->numbers[0] != 0, &command) < 0) {
                ask_fail_errno(ask, -ENOMEM);
                return;
        }
        struct outcomes_ask *outcomes = ask_outcomes(ask);
        ask->work = outcomes;
        if (!ask_command(ask, on_heartbeat, &command, query->numbers[1] != 0) && outcomes)
                outcomes_end(outcomes);
}

static void on_work_list(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer answer = {0};

        if (ask_failed(ask, reply))
                return;
        answer.work_list.known = reply->type == REDIS_REPLY_INTEGER;
        answer.work_list.empty = answer.work_list.known && reply->integer == 0;
        ask_done(ask, &answer);
}

static void ask_work_list(struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct redis_command command;

        if (!heartbeats->ask_work_list)
                ask_fail(ask, ANSWER_REFUSED, "the framework has no work list");
        else if (heartbeats->ask_work_list(ask_namespace(ask), query_text(ask_query(ask), 0), &command) < 0)
                ask_fail_errno(ask, -ENOMEM);
        else
                ask_command(ask, on_work_list, &command, false);
}

static bool is_wanted(const struct query *query, const struct match_found *found)
{
        const struct field host = {.text = found->identity, .len = found->host_len};

        /* Skip an identity that sqmgr would reject as too long: no worker has one. */
        return found->len <= ANSWER_IDENTITY_MAX && found->host_len <= ANSWER_HOST_MAX &&
               (query->n_texts < 2 || decode_field_is(&host, query_text(query, 1)));
}

/* The context of found(). */
struct page {
        const struct query *query;
        struct answer_scan *scan;
};

static int found(const struct match_found *found, void *userdata)
{
        const struct page *page = userdata;
        struct answer_scan *scan = page->scan;

        if (!is_wanted(page->query, found))
                return 0;
        if (scan->n == ANSWER_IDENTITIES_MAX)
                return -E2BIG;
        struct answer_identity *list = scan->list;
        /* The list is full at each power of two. */
        if ((scan->n & (scan->n - 1)) == 0)
                list = reallocarray(list, MAX(2 * scan->n, (size_t)1), sizeof(*list));
        if (!list)
                return -ENOMEM;
        scan->list = list;
        list[scan->n] = (struct answer_identity){
                .identity = strndup(found->identity, found->len),
                .host_len = found->host_len,
                .pid = found->pid,
        };
        return list[scan->n].identity ? (scan->n++, 0) : -ENOMEM;
}

static void on_scan(struct redis *redis _unused_, const redisReply *reply, void *userdata)
{
        struct ask *ask = userdata;
        struct answer answer = {.kind = QUERY_SCAN};
        struct page page = {.query = ask_query(ask), .scan = &answer.scan};
        const char *cursor;

        if (ask_failed(ask, reply))
                return;
        int r = identity_scan_take(ask_format(ask)->heartbeats, reply, found, &page, &cursor);
        if (r >= 0 && cursor && strlen(cursor) >= sizeof(answer.scan.cursor))
                r = -EBADMSG;
        if (r < 0) {
                answer_clear(&answer);
                ask_fail(ask, ANSWER_REFUSED, "the list of processes is invalid");
                return;
        }
        snprintf(answer.scan.cursor, sizeof(answer.scan.cursor), "%s", cursor ?: "");
        ask_done(ask, &answer);
}

static void ask_scan(struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        const struct query *query = ask_query(ask);
        _cleanup_free_ char *set_key = heartbeats->key(ask_namespace(ask), heartbeats->set, NULL);
        _cleanup_free_ char *pattern = NULL;
        struct redis_command command;

        if (query->n_texts > 1)
                pattern = decode_host_pattern(query_text(query, 1));
        if (!set_key || (query->n_texts > 1 && !pattern)) {
                ask_fail_errno(ask, -ENOMEM);
                return;
        }
        const char *cursor = query_text(query, 0);
        identity_scan_ask(heartbeats, set_key, pattern, cursor[0] != '\0' ? cursor : "0", &command);
        ask_command(ask, on_scan, &command, query->numbers[0] != 0);
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

static void ask_jobs(struct ask *ask)
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

static void ask_queues(struct ask *ask)
{
        const struct queues_format *format = ask_format(ask)->queues;
        bool named = ask_query(ask)->n_texts > 0;
        struct redis_backend *backend = ask_backend(ask);
        struct queue_reading *reading = &backend->queue_readings[named];
        struct answer empty = {0};
        int r = 0;

        /* Queues that no list names are read by name for autoscaling, and for a client at the same time. */
        if (named && reading->ask && format && !format->take_service)
                reading = &backend->queue_readings[false];

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

static void ask_requeue(struct ask *ask)
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

static void ask_signal(struct ask *ask)
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
        int r = key ? redis_command_forbiddable(ask_redis(ask), on_status, ask, ELEMENTSOF(argv), argv, NULL)
                    : -ENOMEM;
        if (r < 0)
                ask_fail_errno(ask, r);
}

/* An answer that is gathered from the replies to several commands, sent together. */
struct gathering {
        struct ask *ask;
        struct redis_batch *batch;
        struct answer answer;
        void (*take)(const redisReply *reply, size_t which, struct answer *answer);
};

static void on_part(const redisReply *reply, size_t which, void *userdata)
{
        struct gathering *gathering = userdata;

        if (reply)
                gathering->take(reply, which, &gathering->answer);
        else
                gathering->answer.status = ANSWER_LOST;
}

static void gathering_free(struct gathering *gathering)
{
        redis_batch_free(gathering->batch);
        free(gathering);
}

static void on_parts(void *userdata)
{
        struct gathering *gathering = userdata;
        struct answer answer = gathering->answer;
        struct ask *ask = gathering->ask;

        gathering_free(gathering);
        if (answer.status == ANSWER_LOST)
                ask_fail(ask, ANSWER_LOST, "connection lost, or no reply in time");
        else
                ask_done(ask, &answer);
}

/* Sends the commands, of which those without words are left out. */
static void gather(struct ask *ask, const struct redis_command *commands, size_t n,
                   void (*take)(const redisReply *reply, size_t which, struct answer *answer))
{
        static const struct redis_batch_ops ops = {.reply = on_part, .done = on_parts};
        struct gathering *gathering = calloc(1, sizeof(*gathering));
        int r = gathering ? redis_batch_new(&ops, gathering, &gathering->batch) : -ENOMEM;

        if (!gathering || r < 0) {
                free(gathering);
                ask_fail_errno(ask, r);
                return;
        }
        gathering->ask = ask;
        gathering->take = take;
        for (size_t i = 0; i < n && r == 0; i++)
                if (commands[i].argc > 0)
                        r = redis_batch_add(gathering->batch, ask_redis(ask), i, &commands[i]);
        if (r < 0)
                on_part(NULL, 0, gathering);
        if (redis_batch_pending(gathering->batch) == 0) {
                gathering_free(gathering);
                ask_fail_errno(ask, r);
        }
}

/* A host that scans is counted while its connection has CLIENT TRACKING on, with OPTIN: no key is tracked
 * that way, but Redis counts the clients that have tracking on. Nothing is written, and a host that dies is
 * not counted any more. A Redis before 6, or one whose ACL forbids these commands, gives no count. */

/* NOPERM and ERR are permanent; other errors, such as BUSY, may pass. */
static bool is_refused(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ERROR &&
               (strncmp(reply->str, "NOPERM", 6) == 0 || strncmp(reply->str, "ERR", 3) == 0);
}

/* Returns 0 if Redis does not report the count. */
static uint64_t count_scanners(const redisReply *reply)
{
        uint64_t n =
                reply->type == REDIS_REPLY_STRING ? redis_info_number(reply->str, "tracking_clients") : 0;

        return n <= UINT32_MAX ? n : 0;
}

enum { SCANNERS_JOIN, SCANNERS_MEMBERS, SCANNERS_COUNT, _SCANNERS_MAX };

static void take_scanners(const redisReply *reply, size_t which, struct answer *answer)
{
        struct answer_scanners *scanners = &answer->scanners;

        scanners->blind |= is_refused(reply);
        if (which == SCANNERS_MEMBERS) {
                scanners->members_known = reply->type == REDIS_REPLY_INTEGER && reply->integer >= 0;
                if (scanners->members_known)
                        scanners->members = (uint64_t)MIN(reply->integer, (long long)UINT32_MAX);
        } else if (which == SCANNERS_COUNT) {
                scanners->scanners = count_scanners(reply);
                scanners->blind |= reply->type == REDIS_REPLY_STRING && scanners->scanners == 0;
        }
}

static void ask_scanners(struct ask *ask)
{
        const struct heartbeat_format *heartbeats = ask_format(ask)->heartbeats;
        struct redis_command commands[_SCANNERS_MAX] = {
                [SCANNERS_COUNT] = {.argv = {"INFO", "clients"}, .argc = 2},
        };
        int r = command_make(&commands[SCANNERS_MEMBERS],
                             heartbeats->key(ask_namespace(ask), heartbeats->set, NULL), WORDS("SCARD"));

        if (r < 0) {
                ask_fail_errno(ask, r);
                return;
        }
        if (ask_query(ask)->numbers[0] != 0)
                commands[SCANNERS_JOIN] =
                        (struct redis_command){.argv = {"CLIENT", "TRACKING", "ON", "OPTIN"}, .argc = 4};
        gather(ask, commands, ELEMENTSOF(commands), take_scanners);
        command_clear(&commands[SCANNERS_MEMBERS]);
}

static void ask_scan_leave(struct ask *ask)
{
        struct redis_command leave = {.argv = {"CLIENT", "TRACKING", "OFF"}, .argc = 3};

        ask_command(ask, on_status, &leave, true);
}

enum { DIAGNOSIS_INFO, DIAGNOSIS_SAVE, _DIAGNOSIS_MAX };

/* Returns the value from a reply to CONFIG GET, or NULL: an error, or an older Redis without the setting. */
static const char *setting_of(const redisReply *reply)
{
        return reply->type == REDIS_REPLY_ARRAY && reply->elements == 2 &&
                               reply->element[1]->type == REDIS_REPLY_STRING
                       ? reply->element[1]->str
                       : NULL;
}

static void take_diagnosis(const redisReply *reply, size_t which, struct answer *answer)
{
        struct redis_facts *facts = &answer->diagnosis.redis;
        const char *error = reply->type == REDIS_REPLY_ERROR ? reply->str : NULL;
        const char *setting = setting_of(reply);

        if (which == DIAGNOSIS_INFO) {
                if (reply->type == REDIS_REPLY_STRING)
                        redis_info_take(reply->str, facts);
                else
                        quoted_set(&facts->info_error, error ?: "the reply has no text");
        } else {
                facts->has_save = setting;
                snprintf(facts->save, sizeof(facts->save), "%s", setting ?: "");
                printable_replace(facts->save, strlen(facts->save), false);
                quoted_set(&facts->config_error, setting ? "" : error ?: "no such setting");
        }
}

/* The questions of doctor. */
static void ask_diagnosis(struct ask *ask)
{
        static const struct redis_command commands[_DIAGNOSIS_MAX] = {
                [DIAGNOSIS_INFO] = {.argv = {"INFO"}, .argc = 1},
                [DIAGNOSIS_SAVE] = {.argv = {"CONFIG", "GET", "save"}, .argc = 3},
        };

        gather(ask, commands, ELEMENTSOF(commands), take_diagnosis);
}

/* Returns the key that is read first: for records, the set of identities. Where only queues are read, any key
 * of the application. */
static char *probe_key(const struct redis_format *format, const char *namespace)
{
        const struct heartbeat_format *heartbeats = format->heartbeats;

        return heartbeats ? heartbeats->key(namespace, heartbeats->set, NULL)
                          : format->queues->key(namespace, "", "sqmgr");
}

static int probe(struct redis *redis, const struct redis_format *format, const char *namespace)
{
        _cleanup_free_ char *key = probe_key(format, namespace);

        return key ? redis_probe(redis, key) : -ENOMEM;
}

int redis_judge_tls(const struct redis_settings *settings, struct settings_tls_refusal *ret)
{
        struct tls *tls;
        int r = tls_new(settings, &tls, ret);

        if (r >= 0)
                tls_free(tls);
        return r;
}

static void on_redis_state(struct redis *redis, enum reader_state state, const struct error_report *error,
                           void *userdata)
{
        const struct redis_backend *backend = userdata;
        struct reader_report report = {.state = state, .connections = redis_connection_count(redis)};

        if (error)
                report.error = *error;
        snprintf(report.server, sizeof(report.server), "%s", redis_server_text(redis) ?: "");
        reader_report_state(backend->reader, &report);
}

static void on_decoding(bool begins, void *userdata)
{
        reader_decoding(userdata, begins);
}

/* Returns the settings for the server of these options. */
static struct redis_settings settings_of(const struct reader_options *options)
{
        struct redis_settings settings = *options->settings;

        if (options->url) {
                settings.url = (char *)options->url;
                settings.sentinels = NULL;
        }
        if (settings.timeout == 0)
                settings.timeout = SERVER_TIMEOUT_USEC;
        return settings;
}

static char *backend_url_text(const struct reader_options *options)
{
        const struct redis_settings settings = settings_of(options);
        _cleanup_redis_url_ struct redis_url url = {0};
        char *text;

        if (!settings.sentinels)
                return redis_url_redact(settings.url);
        return redis_url_parse(settings.url, &url, NULL) >= 0 &&
                               asprintf(&text, "redis%s://%s/%u", url.tls ? "s" : "", settings.master_name,
                                        url.db) >= 0
                       ? text
                       : NULL;
}

static void backend_end(void *userdata)
{
        struct redis_backend *backend = userdata;

        redis_free(backend->redis);
        FOREACH_ELEMENT(reading, backend->queue_readings)
                queue_reader_free(reading->queue_reader);
        free(backend->namespace);
        free(backend);
}

static int begin(struct redis_backend *backend, const struct reader_options *options,
                 struct settings_tls_refusal *refusal)
{
        const struct redis_settings settings = settings_of(options);

        backend->format = redis_format_of(options->framework);
        if (!backend->format)
                return -ENOTSUP;
        int r = text_copy(settings.namespace, &backend->namespace);
        if (r >= 0)
                r = redis_new(reader_event(backend->reader), &settings, refusal, on_redis_state, backend,
                              &backend->redis);
        if (r < 0)
                return r;
        redis_on_decoding(backend->redis, on_decoding, backend->reader);
        return probe(backend->redis, backend->format, backend->namespace);
}

static int backend_begin(struct reader *reader, const struct reader_options *options,
                         struct error_report *error, void **ret)
{
        struct settings_tls_refusal refusal = {.file = _SETTINGS_TLS_MAX};
        struct redis_backend *backend = calloc(1, sizeof(*backend));

        if (!backend)
                return -ENOMEM;
        backend->reader = reader;
        int r = begin(backend, options, &refusal);
        if (r >= 0) {
                *ret = backend;
                return 0;
        }
        backend_end(backend);
        if (refusal.file != _SETTINGS_TLS_MAX)
                error_report_set(error, "%s", refusal.why);
        else if (r != -ENOMEM)
                error_report_set(error, "cannot connect: %s", strerror(-r));
        return r;
}

static void backend_ask(_unused_ void *userdata, struct ask *ask)
{
        static void (*const asks[_QUERY_KIND_MAX])(struct ask * ask) = {
                [QUERY_HEARTBEAT] = ask_heartbeat,
                [QUERY_WORK_LIST] = ask_work_list,
                [QUERY_SCAN] = ask_scan,
                [QUERY_SCANNERS] = ask_scanners,
                [QUERY_SCAN_LEAVE] = ask_scan_leave,
                [QUERY_REQUEUE] = ask_requeue,
                [QUERY_SIGNAL] = ask_signal,
                [QUERY_QUEUES] = ask_queues,
                [QUERY_JOBS] = ask_jobs,
                [QUERY_DIAGNOSIS] = ask_diagnosis,
        };
        enum query_kind kind = ask_query(ask)->kind;
        bool of_heartbeats = kind == QUERY_HEARTBEAT || kind == QUERY_WORK_LIST || kind == QUERY_SCAN ||
                             kind == QUERY_SCANNERS;
        void (*ask_kind)(struct ask * ask) = asks[kind];

        if (ask_kind && (!of_heartbeats || ask_format(ask)->heartbeats))
                ask_kind(ask);
        else
                ask_fail_unknown(ask);
}

static usec_t backend_rtt_usec(const void *userdata)
{
        const struct redis_backend *backend = userdata;

        return redis_rtt_usec(backend->redis);
}

const struct reader_backend redis_backend = {
        .url_text = backend_url_text,
        .begin = backend_begin,
        .end = backend_end,
        .ask = backend_ask,
        .rtt_usec = backend_rtt_usec,
};
