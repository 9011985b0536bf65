/* SPDX-License-Identifier: MIT */
/* Does a reader see Celery workers by their events and replies, and quiet them? Run against a real
 * redis-server, with workers of the test that speak as Celery does. */
/* promises: P1 P5 */
#include "frameworks/celery/celery.h"
#include "frameworks/celery/message.h"
#include "frameworks/framework.h"
#include "local_reader.h"
#include "redis_server.h"
#include <jansson.h>
#include <resolv.h>

#define ONE "vm:7:one@vm"
#define TWO "vm:8:two@vm"

/* A worker of the test. */
struct fake {
        const char *name;
        pid_t pid;
        unsigned active, reserved;
        unsigned n_queues; /* of queue-1, queue-2, ... that it consumes */
        bool ignores_cancel, silent;
        unsigned n_cancelled, n_asked;
};

static struct redis_settings settings;
static struct reader *reader;
static struct redis *mailbox; /* on which the workers hear requests */
static struct fake fakes[100];
static long long n_published; /* events, by the workers of the test */
static long long n_heard;     /* requests, by those workers together */
static double clock_seconds;
static unsigned answers;
static enum answer_status status;
static struct heartbeat heartbeat;
static bool found, known, empty;
static char queues[64], jobs[128], refused[512], served[64];
static size_t n_identities;

static void fake_reply(const struct fake *fake, const json_t *body)
{
        const char *method = json_string_value(json_object_get(body, "method"));
        const char *list =
                json_string_value(json_object_get(json_object_get(body, "reply_to"), "routing_key"));
        json_t *items = json_array();

        if (strcmp(method, "active_queues") == 0)
                for (unsigned i = 1; i <= fake->n_queues; i++)
                        json_array_append_new(items, json_pack("{s:o}", "name", json_sprintf("queue-%u", i)));
        for (unsigned i = 0; i < (strcmp(method, "active") == 0 ? fake->active : 0); i++)
                json_array_append_new(items,
                                      json_pack("{s:o, s:s, s:s, s:f, s:i, s:{s:s}, s:b}", "id",
                                                json_sprintf("id-%u", i), "name", "app.task", "args",
                                                "secret", "time_start", 1000.5, "worker_pid", 70 + (int)i,
                                                "delivery_info", "routing_key", "low", "acknowledged", 1));
        for (unsigned i = 0; i < (strcmp(method, "reserved") == 0 ? fake->reserved : 0); i++)
                json_array_append_new(
                        items, json_pack("{s:s, s:s, s:n}", "id", "x", "name", "app.task", "time_start"));
        json_t *said = json_pack("{s:o}", fake->name, items);
        char *text = json_dumps(said, 0);
        json_t *message = json_pack("{s:s, s:s, s:s, s:{s:O, s:i}, s:{}}", "body", text, "content-encoding",
                                    "utf-8", "content-type", "application/json", "headers", "ticket",
                                    json_object_get(body, "ticket"), "clock", 3, "properties");
        char *whole = json_dumps(message, 0);
        server_do("LPUSH %s %s", list, whole);
        json_decref(said);
        json_decref(message);
        free(text);
        free(whole);
}

static bool is_addressed(const struct fake *fake, const json_t *body)
{
        json_t *nodes = json_object_get(body, "destination"), *node;
        size_t i;

        if (fake->silent || !fake->name)
                return false;
        json_array_foreach(nodes, i, node)
        {
                if (strcmp(json_string_value(node), fake->name) == 0)
                        return true;
        }
        return !json_is_array(nodes);
}

static void on_request(struct redis *redis _unused_, const struct field *channel, const struct field *text,
                       void *userdata _unused_)
{
        char bytes[4096];

        ck_assert(channel->len > 0);
        n_heard++;
        json_t *message = json_loadb(text->text, text->len, 0, NULL);
        int n = b64_pton(json_string_value(json_object_get(message, "body")), (unsigned char *)bytes,
                         sizeof(bytes));
        ck_assert_int_gt(n, 0);
        json_t *body = json_loadb(bytes, (size_t)n, 0, NULL);
        FOREACH_ELEMENT(fake, fakes) {
                if (!is_addressed(fake, body))
                        continue;
                if (strcmp(json_string_value(json_object_get(body, "method")), "cancel_consumer") == 0) {
                        fake->n_cancelled++;
                        fake->n_queues -= !fake->ignores_cancel;
                        continue;
                }
                fake->n_asked++;
                fake_reply(fake, body);
        }
        json_decref(body);
        json_decref(message);
}

static void publish(const struct fake *fake, const char *type)
{
        json_t *said = json_pack("{s:s, s:i, s:i, s:i, s:f, s:f, s:i, s:s, s:o}", "hostname", fake->name,
                                 "pid", (int)fake->pid, "active", (int)fake->active, "processed", 5,
                                 "timestamp", clock_seconds += 2, "freq", 2.0, "clock", 1, "sw_ver", "5.2.6",
                                 "type", json_sprintf("worker-%s", type));
        char *text = json_dumps(said, 0);
        json_t *message = json_pack("{s:s, s:s, s:s, s:{}, s:{}}", "body", text, "content-encoding", "utf-8",
                                    "content-type", "application/json", "headers", "properties");
        char *whole = json_dumps(message, 0);
        server_do("PUBLISH /0.celeryev/worker.%s %s", type, whole);
        n_published++;
        json_decref(said);
        json_decref(message);
        free(text);
        free(whole);
}

static void take(struct answer *answer, void *userdata _unused_)
{
        status = answer->status;
        snprintf(refused, sizeof(refused), "%s", answer->error.text);
        if (answer->status == ANSWER_OK && answer->kind == QUERY_HEARTBEAT) {
                found = answer->heartbeat.found;
                heartbeat = answer->heartbeat.heartbeat;
                const char *names = celery_framework.queue_names(answer->heartbeat.info);
                served[0] = '\0';
                for (; names && *names != '\0'; names += strlen(names) + 1)
                        snprintf(served + strlen(served), sizeof(served) - strlen(served), "%s ", names);
        } else if (answer->status == ANSWER_OK && answer->kind == QUERY_WORK_LIST) {
                known = answer->work_list.known;
                empty = answer->work_list.empty;
        } else if (answer->status == ANSWER_OK && answer->kind == QUERY_SCAN) {
                n_identities = answer->scan.n;
        } else if (answer->status == ANSWER_OK && answer->kind == QUERY_QUEUES) {
                const struct queues *list = answer->queues.queues;

                queues[0] = '\0';
                for (size_t i = 0; i < list->n; i++)
                        snprintf(queues + strlen(queues), sizeof(queues) - strlen(queues), "%s %ju%s ",
                                 list->list[i].name, (uintmax_t)list->list[i].size,
                                 list->list[i].latency_known ? "" : " ?");
        } else if (answer->status == ANSWER_OK && answer->kind == QUERY_JOBS) {
                const struct job_list *list = &answer->jobs.lists[0];

                jobs[0] = '\0';
                if (list->n_jobs > 0)
                        snprintf(jobs, sizeof(jobs), "%zu: %s %s %s %s %ju", list->n_jobs, list->jobs[0].jid,
                                 list->jobs[0].class, list->jobs[0].queue, list->jobs[0].thread,
                                 (uintmax_t)list->jobs[0].started_usec);
        }
        answers++;
}

static void ask(enum query_kind kind, const char *first, const char *second, bool with_info)
{
        const struct field texts[] = {{first, first ? strlen(first) : 0},
                                      {second, second ? strlen(second) : 0}};
        const struct query query = {.kind = kind,
                                    .numbers = {with_info},
                                    .texts = texts,
                                    .n_texts = second  ? 2
                                               : first ? 1
                                                       : 0};
        unsigned before = answers;

        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
        run_until(answers > before);
}

static bool hears(const char *identity)
{
        ask(QUERY_HEARTBEAT, identity, NULL, true);
        return found;
}

/* Another heartbeat has arrived. */
static void beat(const struct fake *fake, const char *identity)
{
        publish(fake, "heartbeat");
        run_until(hears(identity) && heartbeat.sent_usec == (uint64_t)(clock_seconds * USEC_PER_SEC));
}

static bool work_list_known(const char *identity)
{
        ask(QUERY_WORK_LIST, identity, NULL, false);
        return status == ANSWER_OK && known;
}

/* All requests that were published have been replied to, and the replies were read. */
static bool rests(void)
{
        ask(QUERY_QUEUES, NULL, NULL, false);
        return status == ANSWER_OK;
}

static void start_reader(void)
{
        reader = local_reader_up(&settings, celery_traits.id);
}

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
        settings = (struct redis_settings){
                .url = server_url,
                .connect_timeout = SERVER_PATIENCE,
                .command_timeout = SERVER_PATIENCE,
        };
        clock_seconds = 1000;
        answers = 0;
        n_published = n_heard = 0;
        memset(fakes, 0, sizeof(fakes));
        fakes[0] = (struct fake){.name = "one@vm", .pid = 7, .n_queues = 2};
        ck_assert_int_eq(redis_new(event, &settings, NULL, NULL, NULL, &mailbox), 0);
        ck_assert_int_eq(redis_subscribe(mailbox, "/0.celery.pidbox", on_request, NULL), 0);
        run_until(redis_state(mailbox) == READER_STATE_CONNECTED);
        start_reader();
}

static void teardown(void)
{
        reader = reader_free(reader);
        mailbox = redis_free(mailbox);
        ck_assert_uint_eq(local_readers, 0);
        server_kill();
        loop_end();
}

TEST(a_worker_is_found_by_its_heartbeats)
{
        ck_assert(!hears(ONE));
        ask(QUERY_SCAN, "", "vm", false);
        ck_assert_uint_eq(n_identities, 0);
        publish(&fakes[0], "online");
        ck_assert(!hears(ONE));
        fakes[0].active = 3;
        beat(&fakes[0], ONE);
        ck_assert_uint_eq(heartbeat.busy, 3);
        ck_assert(!heartbeat.quiet);
        ask(QUERY_SCAN, "", "vm", false);
        ck_assert_uint_eq(n_identities, 1);
        ask(QUERY_SCAN, "", "other", false);
        ck_assert_uint_eq(n_identities, 0);
        ask(QUERY_SCANNERS, "", NULL, false);
        ck_assert_int_eq(status, ANSWER_OK);
}

TEST(what_is_no_event_is_ignored)
{
        server_do("PUBLISH /0.celeryev/worker.heartbeat garbage");
        server_do("PUBLISH /0.celeryev/worker.heartbeat \xff\xfe");
        server_do("PUBLISH /1.celeryev/worker.heartbeat x");
        beat(&fakes[0], ONE);
        ck_assert_int_eq(reader_state(reader), READER_STATE_CONNECTED);
}

static bool is_quiet(void)
{
        beat(&fakes[0], ONE);
        return heartbeat.quiet;
}

TEST(a_worker_is_quieted_queue_by_queue_and_says_so_itself)
{
        beat(&fakes[0], ONE);
        ask(QUERY_SIGNAL, ONE, NULL, false);
        ck_assert_int_eq(status, ANSWER_OK);
        run_until(is_quiet());
        ck_assert_uint_eq(fakes[0].n_cancelled, 2);
        /* The worker connects again and consumes. */
        fakes[0].n_queues = 1;
        publish(&fakes[0], "offline");
        publish(&fakes[0], "online");
        beat(&fakes[0], ONE);
        ck_assert(!heartbeat.quiet);
        ask(QUERY_SIGNAL, ONE, NULL, false);
        run_until(is_quiet());
        ck_assert_uint_eq(fakes[0].n_cancelled, 3);
}

TEST(a_worker_that_does_not_comply_is_not_quiet)
{
        fakes[0].ignores_cancel = true;
        beat(&fakes[0], ONE);
        ask(QUERY_SIGNAL, ONE, NULL, false);
        run_until(fakes[0].n_cancelled == 2);
        unsigned asked = fakes[0].n_asked;
        run_until(hears(ONE) && fakes[0].n_asked > asked);
        ck_assert(!is_quiet());
}

TEST(a_worker_that_does_not_reply_is_not_quiet)
{
        fakes[0].silent = true;
        beat(&fakes[0], ONE);
        ask(QUERY_SIGNAL, ONE, NULL, false);
        ck_assert(!is_quiet());
        ck_assert(!work_list_known(ONE));
        ask(QUERY_JOBS, ONE, NULL, false);
        ck_assert_int_eq(status, ANSWER_OK);
        ck_assert_str_eq(refused, "a worker did not reply; Celery's task_serializer must be 'json'");
}

TEST(a_work_list_is_as_new_as_the_heartbeat)
{
        fakes[0].reserved = 1;
        beat(&fakes[0], ONE);
        ck_assert(!work_list_known(ONE));
        run_until(work_list_known(ONE));
        ck_assert(!empty);
        fakes[0].reserved = 0;
        fakes[0].active = 1;
        beat(&fakes[0], ONE);
        ck_assert(!work_list_known(ONE));
        run_until(work_list_known(ONE));
        ck_assert(!empty);
        fakes[0].active = 0;
        beat(&fakes[0], ONE);
        run_until(work_list_known(ONE));
        ck_assert(empty);
}

TEST(running_tasks_are_listed_without_their_arguments)
{
        fakes[0].active = 2;
        beat(&fakes[0], ONE);
        ask(QUERY_JOBS, ONE, NULL, false);
        ck_assert_str_eq(refused, "");
        ck_assert_str_eq(jobs, "2: id-0 app.task low 70 1000500000");
        ask(QUERY_JOBS, "vm:9:nine@vm", NULL, false);
        ck_assert_str_eq(refused, "a worker did not reply; Celery's task_serializer must be 'json'");
}

/* The lengths of all priorities are added. A key that is no list counts as empty. */
TEST(the_queues_that_workers_consume_are_read)
{
        fakes[1] = (struct fake){.name = "two@vm", .pid = 8, .n_queues = 3};
        beat(&fakes[0], ONE);
        beat(&fakes[1], TWO);
        server_do("LPUSH queue-1 a b c");
        server_do("LPUSH queue-1\x06\x16"
                  "9 d");
        server_do("LPUSH queue-4 a");
        server_do("SET queue-3 text");
        ask(QUERY_QUEUES, NULL, NULL, false);
        ck_assert_int_eq(status, ANSWER_OK);
        ck_assert_str_eq(queues, "queue-1 4 ? queue-2 0 queue-3 0 ");
}

/* For the rule that finds deaf workers: queues that were consumed once. */
TEST(named_queues_are_read_beside_all)
{
        static const char names[] = "queue-4\0queue-5";
        const struct field text = {names, sizeof(names)};
        const struct query named = {.kind = QUERY_QUEUES, .texts = &text, .n_texts = 1},
                           all = {.kind = QUERY_QUEUES};

        beat(&fakes[0], ONE);
        run_until(hears(ONE) && served[0] != '\0');
        ck_assert_str_eq(served, "queue-1 queue-2 ");
        ck_assert(heartbeat.processed_known);
        ck_assert_uint_eq(heartbeat.processed, 5);
        server_do("LPUSH queue-4\x06\x16"
                  "3 d");
        unsigned before = answers;
        ck_assert_int_eq(reader_ask(reader, &all, take, NULL), 0);
        ck_assert_int_eq(reader_ask(reader, &named, take, NULL), 0);
        ck_assert_int_eq(reader_ask(reader, &named, take, NULL), 0);
        run_until(answers == before + 3);
        ck_assert_int_eq(status, ANSWER_OK);
        ck_assert(strcmp(queues, "queue-4 1 ? queue-5 0 ") == 0 ||
                  strcmp(queues, "queue-1 0 queue-2 0 ") == 0);
        ask(QUERY_QUEUES, "", NULL, false);
        ck_assert_int_eq(status, ANSWER_OK);
        ck_assert_str_eq(queues, "");
}

static bool is_stopping(void)
{
        return hears(ONE) && heartbeat.stopping;
}

TEST(a_worker_that_was_asked_to_exit_is_stopping_until_it_is_heard_again)
{
        fakes[0].active = 2;
        beat(&fakes[0], ONE);
        uint64_t last = heartbeat.sent_usec;
        publish(&fakes[0], "offline");
        run_until(is_stopping());
        ck_assert(heartbeat.quiet);
        ck_assert_uint_eq(heartbeat.busy, 2);
        ck_assert_uint_gt(heartbeat.sent_usec, last);
        last = heartbeat.sent_usec;
        ck_assert(is_stopping());
        ck_assert_uint_gt(heartbeat.sent_usec, last);
        ck_assert(!work_list_known(ONE));
        /* The event was forged. */
        clock_seconds += 60;
        beat(&fakes[0], ONE);
        ck_assert(!heartbeat.stopping && !heartbeat.quiet);
}

TEST(without_workers_no_queue_is_known)
{
        ask(QUERY_QUEUES, NULL, NULL, false);
        ck_assert_int_eq(status, ANSWER_OK);
        ck_assert_str_eq(queues, "");
}

/* The queries for all workers share one round. */
TEST(all_workers_are_asked_by_one_request)
{
        fakes[1] = (struct fake){.name = "two@vm", .pid = 8, .n_queues = 1};
        beat(&fakes[0], ONE);
        beat(&fakes[1], TWO);
        run_until(hears(ONE) && hears(TWO) && fakes[0].n_asked > 0 && fakes[1].n_asked > 0 && rests());
        long long before = server_calls("publish");
        const struct field one[] = {QUERY_TEXT(ONE)}, two[] = {QUERY_TEXT(TWO)};
        const struct query queries[] = {{.kind = QUERY_WORK_LIST, .texts = one, .n_texts = 1},
                                        {.kind = QUERY_WORK_LIST, .texts = two, .n_texts = 1}};
        unsigned asked = fakes[0].n_asked + fakes[1].n_asked;

        for (size_t i = 0; i < ELEMENTSOF(queries); i++)
                ck_assert_int_eq(reader_ask(reader, &queries[i], take, NULL), 0);
        run_until(fakes[0].n_asked + fakes[1].n_asked == asked + 6);
        ck_assert_int_eq(server_calls("publish") - before, 3);
}

/* Returns how many commands the server has run because of sqmgr: its own, and the replies of the workers. */
static long long cost(void)
{
        static const char *const commands[] = {"publish", "lpush",  "rpush", "expire", "rename",
                                               "lrange",  "del",    "llen",  "exists", "ping",
                                               "select",  "lindex", "ltrim"};
        long long n = -n_published;

        FOREACH_ELEMENT(command, commands)
                n += server_calls(*command);
        return n;
}

static char identities[ELEMENTSOF(fakes)][32];

static unsigned n_replies(void)
{
        unsigned n = 0;

        FOREACH_ELEMENT(fake, fakes)
                n += fake->n_asked;
        return n;
}

/* The workers of the test have replied to all requests. */
static bool all_replied(void)
{
        return n_heard == server_calls("publish") - n_published;
}

static void reader_ask_about(enum query_kind kind, const char *identity)
{
        const struct field text = {identity, strlen(identity)};
        const struct query query = {.kind = kind, .texts = &text, .n_texts = 1, .numbers = {true}};

        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
}

/* Commands of a round, however many workers it asks: at most 2 and 3 requests, and 5 for each reading of the
 * list within the second that a round takes at most. On an idle machine the first reading finds all replies.
 */
#define ROUND_COMMANDS 65

static bool all_cancelled(void)
{
        FOREACH_ELEMENT(fake, fakes)
                if (fake->n_cancelled == 0)
                        return false;
        return true;
}

struct tick_cost {
        unsigned replies; /* per worker */
        long long others; /* all commands but the replies */
};

/* Queries all workers as a tick does: their heartbeats, and `kind` besides, unless that is QUERY_HEARTBEAT.
 * Returns once each request has been replied to. */
static struct tick_cost tick(enum query_kind kind)
{
        long long before = cost();
        unsigned replies = n_replies(), awaited = answers;

        FOREACH_ELEMENT(identity, identities) {
                reader_ask_about(QUERY_HEARTBEAT, *identity);
                awaited++;
                if (kind == QUERY_HEARTBEAT)
                        continue;
                reader_ask_about(kind, *identity);
                awaited++;
        }
        run_until(answers == awaited);
        ck_assert_int_eq(status, ANSWER_OK);
        /* The lengths of the queues are read after the round. */
        long long lengths = server_calls("llen");
        ck_assert(rests());
        run_until(all_replied());
        replies = n_replies() - replies;
        const struct tick_cost result = {
                .replies = replies / ELEMENTSOF(fakes),
                .others = cost() - before - (server_calls("llen") - lengths) - replies,
        };
        return result;
}

/* Until a tick asks each worker for that many lists: the last ones are old enough by then. */
static void tick_asks(enum query_kind kind, unsigned lists)
{
        struct tick_cost result;

        do {
                result = tick(kind);
                ck_assert_uint_le(result.replies, lists);
                ck_assert_int_le(result.others, 2 * ROUND_COMMANDS);
        } while (result.replies < lists);
        printf("query %d: %u replies of each worker, %lld other commands\n", (int)kind, result.replies,
               result.others);
}

/* Two commands per worker and tick: the replies of those that run tasks while they are being replaced. */
TEST(a_tick_of_100_workers_costs_few_commands)
{
        static char names[ELEMENTSOF(fakes)][16];

        for (unsigned i = 0; i < ELEMENTSOF(fakes); i++) {
                snprintf(names[i], sizeof(names[i]), "w%u@vm", i);
                snprintf(identities[i], sizeof(identities[i]), "vm:%u:w%u@vm", 100 + i, i);
                fakes[i] =
                        (struct fake){.name = names[i], .pid = (pid_t)(100 + i), .n_queues = 1, .active = 1};
                publish(&fakes[i], "heartbeat");
        }
        FOREACH_ELEMENT(identity, identities)
                run_until(hears(*identity));
        ck_assert(rests());
        /* Active workers: their heartbeats are in memory, and their queues are known for 30 s. */
        struct tick_cost active = tick(QUERY_HEARTBEAT);
        ck_assert_uint_eq(active.replies, 0);
        ck_assert_int_eq(active.others, 0);
        /* Once: what they consume is listed, canceled, and listed again. */
        long long before = cost();
        unsigned replies = n_replies();
        (void)tick(QUERY_SIGNAL);
        run_until(all_cancelled());
        ck_assert(rests());
        FOREACH_ELEMENT(fake, fakes)
                ck_assert_uint_eq(fake->n_cancelled, 1);
        printf("quieted: %u replies, %lld commands in all\n", n_replies() - replies, cost() - before);
        ck_assert_uint_le(n_replies() - replies, 2 * ELEMENTSOF(fakes));
        /* They run tasks: those, and the queues. */
        tick_asks(QUERY_JOBS, 2);
        /* They are idle. */
        FOREACH_ELEMENT(fake, fakes) {
                fake->active = 0;
                publish(fake, "heartbeat");
        }
        FOREACH_ELEMENT(identity, identities)
                run_until(hears(*identity) && heartbeat.busy == 0);
        tick_asks(QUERY_WORK_LIST, 3);
        /* All three lists are known until the next heartbeat. Only the queues are asked for again, once a
         * second. */
        struct tick_cost again = tick(QUERY_WORK_LIST);
        ck_assert_uint_le(again.replies, 1);
        ck_assert_int_le(again.others, ROUND_COMMANDS);
}

TEST(two_workers_of_one_name_are_not_quieted)
{
        fakes[1] = (struct fake){.name = "one@vm", .pid = 8, .n_queues = 1};
        beat(&fakes[0], ONE);
        beat(&fakes[1], "vm:8:one@vm");
        ask(QUERY_SIGNAL, ONE, NULL, false);
        ck_assert_int_eq(status, ANSWER_REFUSED);
        ck_assert_str_eq(refused, "several workers have the same name");
        ask(QUERY_SIGNAL, "vm:9:nine@vm", NULL, false);
        ck_assert_int_eq(status, ANSWER_REFUSED);
}

static long long list_ttl(void)
{
        redisReply *keys = server_ask("KEYS sqmgr.*");
        long long ttl = -3;

        if (keys->elements == 1) {
                redisReply *reply = server_ask("TTL %s", keys->element[0]->str);
                ttl = reply->integer;
                freeReplyObject(reply);
        }
        freeReplyObject(keys);
        return ttl;
}

/* Nothing remains in Redis if the reader is killed. */
TEST(the_list_of_replies_expires)
{
        beat(&fakes[0], ONE);
        run_until(hears(ONE) && fakes[0].n_asked > 0 && rests());
        run_until(list_ttl() > 0);
        ck_assert_int_le(list_ttl(), 60);
}

TEST(strangers_in_the_list_of_replies_do_no_harm)
{
        beat(&fakes[0], ONE);
        run_until(hears(ONE) && fakes[0].n_asked > 0 && rests());
        redisReply *keys = server_ask("KEYS sqmgr.*");
        ck_assert_uint_eq(keys->elements, 1);
        server_do("LPUSH %s garbage {} [] \xff\xfe", keys->element[0]->str);
        freeReplyObject(keys);
        run_until(work_list_known(ONE));
        ck_assert(empty);
}

/* A question during a round that asks nobody is answered, though nothing else begins a round. */
TEST(a_question_about_nobody_is_answered)
{
        const struct field one[] = {QUERY_TEXT(ONE)}, nine[] = {QUERY_TEXT("vm:9:nine@vm")};
        const struct query queries[] = {{.kind = QUERY_JOBS, .texts = one, .n_texts = 1},
                                        {.kind = QUERY_JOBS, .texts = nine, .n_texts = 1}};

        beat(&fakes[0], ONE);
        run_until(fakes[0].n_asked > 0 && rests());
        fakes[0].silent = true;
        long long before = server_calls("publish");
        unsigned answered = answers;
        ck_assert_int_eq(reader_ask(reader, &queries[0], take, NULL), 0);
        run_until(server_calls("publish") > before);
        ck_assert_int_eq(reader_ask(reader, &queries[1], take, NULL), 0);
        run_until(answers == answered + 2);
}

TEST(what_the_server_refuses_is_reported)
{
        server_do("ACL SETUSER default -publish");
        server_do("ACL SETUSER admin on nopass ~* &* +@all");
        fakes[0].silent = true;
        ck_assert(!hears(ONE));
        /* The event must come from a user who may publish. */
        server_do("ACL SETUSER default +publish");
        beat(&fakes[0], ONE);
        server_do("ACL SETUSER default -publish");
        ask(QUERY_JOBS, ONE, NULL, false);
        ask(QUERY_WORK_LIST, ONE, NULL, false);
        ck_assert_int_eq(status, ANSWER_REFUSED);
        ck_assert_str_eq(refused, "command refused");
        ck_assert(hears(ONE));
}

TEST(a_reader_without_events_is_not_connected)
{
        server_do("ACL SETUSER default -psubscribe");
        redisReply *killed = server_ask("CLIENT KILL TYPE pubsub");
        freeReplyObject(killed);
        run_until(reader_state(reader) == READER_STATE_DOWN);
        server_do("ACL SETUSER default +psubscribe");
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        run_until(redis_state(mailbox) == READER_STATE_CONNECTED);
        beat(&fakes[0], ONE);
}

TEST(a_reader_that_ends_while_jobs_are_awaited_leaves_nothing)
{
        const struct field one[] = {QUERY_TEXT(ONE)};
        const struct query query = {.kind = QUERY_JOBS, .texts = one, .n_texts = 1};

        fakes[0].silent = true;
        beat(&fakes[0], ONE);
        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
        ck_assert_int_ge(sd_event_run(event, 20 * USEC_PER_MSEC), 0);
        reader = reader_free(reader);
}

TEST_MAIN("celery_live", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
