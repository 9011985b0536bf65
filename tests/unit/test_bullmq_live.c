/* SPDX-License-Identifier: MIT */
/* Does a reader answer about BullMQ's workers? Run against a real redis-server. */
/* promises: P1 P5 */
#include "frameworks/bullmq/bullmq.h"
#include "io/clock.h"
#include "local_reader.h"
#include "redis_server.h"
#include "settings/traits.h"

#define SEC USEC_PER_SEC

static struct redis_settings settings;
static struct reader *reader;
static struct answer answered; /* cleared by the next one */
static unsigned answers;
static redisContext *clients[100];
static size_t n_clients;

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
        settings = (struct redis_settings){
                .url = server_url, .connect_timeout = SERVER_PATIENCE, .command_timeout = SERVER_PATIENCE};
        answers = 0;
        answered = (struct answer){.kind = QUERY_PING};
        n_clients = 0;
        reader = local_reader_up(&settings, bullmq_traits.id);
}

static void teardown(void)
{
        answer_clear(&answered);
        reader = reader_free(reader);
        while (n_clients > 0)
                redisFree(clients[--n_clients]);
        server_kill();
        loop_end();
}

static void take(struct answer *answer, void *userdata _unused_)
{
        answer_clear(&answered);
        answered = *answer;
        *answer = (struct answer){.kind = answer->kind};
        answers++;
}

static void send_query(enum query_kind kind, const char *text, unsigned number)
{
        const struct field texts[] = {{.text = text, .len = text ? strlen(text) : 0}};
        const struct query query = {
                .kind = kind, .texts = texts, .n_texts = text ? 1 : 0, .numbers = {number}};

        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
}

static void ask(enum query_kind kind, const char *text, unsigned number)
{
        unsigned before = answers;

        send_query(kind, text, number);
        run_until(answers > before);
}

/* A worker's connection, which waits for a job if so wanted. */
static void connect_worker(const char *name, bool waits)
{
        redisContext *client = redisConnectUnix(server_socket);
        redisReply *reply = redisCommand(client, "CLIENT SETNAME %s", name);

        ck_assert_int_eq(reply->type, REDIS_REPLY_STATUS);
        freeReplyObject(reply);
        clients[n_clients++] = client;
        if (!waits)
                return;
        int done = 0;
        ck_assert_int_eq(redisAppendCommand(client, "BZPOPMIN bull:mails:marker 0"), REDIS_OK);
        while (!done)
                ck_assert_int_eq(redisBufferWrite(client, &done), REDIS_OK);
        for (bool blocked = false; !blocked;) {
                redisReply *info = server_ask("INFO clients");

                blocked = !strstr(info->str, "blocked_clients:0");
                freeReplyObject(info);
        }
}

static void add_active(const char *queue, const char *id, const char *worker)
{
        server_do("LPUSH bull:%s:active %s", queue, id);
        server_do("HSET bull:%s:%s name deliver data {} timestamp 1 processedOn 5000 pb %s", queue, id,
                  worker);
}

TEST(reads_a_heartbeat)
{
        connect_worker("bull:bWFpbHM=:w:vm:7", true);
        add_active("mails", "1", "vm:7");
        add_active("mails", "2", "vm:8");
        ask(QUERY_HEARTBEAT, "vm:7", 1);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.heartbeat.found && !answered.heartbeat.heartbeat.quiet);
        ck_assert_uint_eq(answered.heartbeat.heartbeat.busy, 1);
        ck_assert_uint_gt(answered.heartbeat.heartbeat.sent_usec, 0);
        ask(QUERY_WORK_LIST, "vm:7", 0);
        ck_assert(answered.work_list.known && !answered.work_list.empty);
        ask(QUERY_HEARTBEAT, "vm:8", 0);
        ck_assert(answered.status == ANSWER_OK && !answered.heartbeat.found);
        ask(QUERY_WORK_LIST, "vm:8", 0);
        ck_assert(answered.status == ANSWER_OK && !answered.work_list.known);
}

TEST(lists_processes_and_jobs)
{
        connect_worker("bull:bWFpbHM=:w:vm:7", false);
        connect_worker("bull:bWFpbHM=:w:vm:8", false);
        connect_worker("bull:bW9yZQ==:w:vm:8", false);
        connect_worker("bull:bWFpbHM=", false);
        add_active("mails", "1", "vm:7");
        ask(QUERY_SCAN, "", 0);
        ck_assert_uint_eq(answered.scan.n, 2);
        ck_assert_str_eq(answered.scan.list[1].identity, "vm:8");
        ask(QUERY_JOBS, "vm:7", 0);
        ck_assert_uint_eq(answered.jobs.n, 1);
        ck_assert_uint_eq(answered.jobs.lists[0].n_jobs, 1);
        ck_assert_str_eq(answered.jobs.lists[0].jobs[0].class, "deliver");
        ck_assert_uint_eq(answered.jobs.lists[0].jobs[0].started_usec, 5 * SEC);
        ask(QUERY_DIAGNOSIS, NULL, 0);
        ck_assert_uint_eq(answered.diagnosis.redis.nameless, 1);
}

/* The cost of a poll does not grow with the number of workers. The queries arrive while a round is under way,
 * so there may be a second one. */
TEST(one_list_answers_all_queries_of_a_poll)
{
        char name[64];

        for (unsigned i = 1; i <= 100; i++) {
                snprintf(name, sizeof(name), "bull:bWFpbHM=:w:vm:%u", i);
                connect_worker(name, false);
        }
        for (unsigned i = 1; i <= 100; i++) {
                snprintf(name, sizeof(name), "vm:%u", i);
                send_query(QUERY_HEARTBEAT, name, 0);
                send_query(QUERY_WORK_LIST, name, 0);
        }
        run_until(answers == 200);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert(answered.work_list.known);
        ck_assert_int_le(server_calls("client|list"), 2);
        ck_assert_int_le(server_calls("sort"), 2);
        ck_assert_int_eq(server_calls("pttl"), 0);
        /* A list of jobs is handed out once. */
        send_query(QUERY_JOBS, "vm:7", 0);
        send_query(QUERY_JOBS, "vm:7", 0);
        run_until(answers == 202);
        ck_assert_int_eq(answered.status, ANSWER_OK);
}

TEST(a_list_of_another_type_shows_no_heartbeat)
{
        connect_worker("bull:bWFpbHM=:w:vm:7", false);
        server_do("SET bull:mails:active x");
        ask(QUERY_HEARTBEAT, "vm:7", 0);
        ck_assert(answered.status == ANSWER_OK && !answered.heartbeat.found);
        ask(QUERY_WORK_LIST, "vm:7", 0);
        ck_assert(!answered.work_list.known);
        server_do("DEL bull:mails:active");
        ask(QUERY_HEARTBEAT, "vm:7", 0);
        ck_assert(answered.heartbeat.found);
}

/* A list that was made long by force: its queue is not read, and the connection stays. */
TEST(an_endless_list_shows_no_heartbeat)
{
        static const char script[] = "for i = 1, 140000 do redis.call('RPUSH', 'bull:mails:active', 'x') end";

        connect_worker("bull:bWFpbHM=:w:vm:7", false);
        server_do("EVAL %s 0", script);
        ask(QUERY_HEARTBEAT, "vm:7", 0);
        ck_assert(answered.status == ANSWER_OK && !answered.heartbeat.found);
        server_do("DEL bull:mails:active");
        ask(QUERY_HEARTBEAT, "vm:7", 0);
        ck_assert(answered.status == ANSWER_OK && answered.heartbeat.found);
}

TEST(queues_are_those_of_the_workers)
{
        connect_worker("bull:bWFpbHM=:w:vm:7", false);
        connect_worker("bull:bW9yZQ==:w:vm:7", false);
        server_do("LPUSH bull:mails:wait 3 2");
        server_do("LPUSH bull:mails:wait 1");
        server_do("HSET bull:mails:3 timestamp 1000 opts {\"delay\":60000}");
        server_do("ZADD bull:mails:prioritized 5 9");
        server_do("ZADD bull:mails:delayed 5 8");
        server_do("ZADD bull:more:failed 5 8");
        server_do("HSET bull:more:meta paused 1");
        ask(QUERY_QUEUES, NULL, 0);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        const struct queues *queues = answered.queues.queues;
        ck_assert_uint_eq(queues->n, 2);
        ck_assert_str_eq(queues->list[0].name, "mails");
        ck_assert_uint_eq(queues->list[0].size, 4);
        ck_assert_uint_eq(queues->schedule, 1);
        ck_assert_uint_eq(queues->dead, 1);
        ck_assert(!queues->list[0].paused && queues->list[1].paused);
        ck_assert(queues->list[0].latency_known && queues->list[1].latency_known);
        ck_assert_uint_eq(queues->list[1].latency, 0);
        /* Since its creation, less the delay that the application asked for: since 61 s after 1970. */
        usec_t expected = usec_sub(clock_now(CLOCK_REALTIME), 61 * SEC);
        ck_assert_uint_le(queues->list[0].latency, expected);
        ck_assert_uint_gt(queues->list[0].latency, usec_sub(expected, 60 * SEC));
        /* Since when a job waits that was begun before is not known. */
        server_do("HSET bull:mails:3 ats 1");
        ask(QUERY_QUEUES, NULL, 0);
        ck_assert(!answered.queues.queues->list[0].latency_known);
}

TEST(no_named_queue_is_an_empty_reading)
{
        static const char names[] = "mails";
        const struct field texts[] = {{.text = names, .len = sizeof(names)}};
        const struct query query = {.kind = QUERY_QUEUES, .texts = texts, .n_texts = 1};

        ask(QUERY_QUEUES, "", 0);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert_uint_eq(answered.queues.queues->n, 0);
        unsigned before = answers;
        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
        run_until(answers > before);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        ck_assert_uint_eq(answered.queues.queues->n, 1);
}

TEST(a_lost_connection_ends_all_queries)
{
        connect_worker("bull:bWFpbHM=:w:vm:7", false);
        ask(QUERY_HEARTBEAT, "vm:7", 0);
        send_query(QUERY_HEARTBEAT, "vm:7", 0);
        server_kill();
        send_query(QUERY_JOBS, "vm:7", 0);
        run_until(answers == 3);
        ck_assert_int_eq(answered.status, ANSWER_LOST);
}

/* Without this command nothing is known of any worker, so the connection counts as down. */
TEST(a_server_that_forbids_the_list_counts_as_down)
{
        server_do("ACL SETUSER default -client|list");
        ask(QUERY_HEARTBEAT, "vm:7", 0);
        ck_assert_int_eq(answered.status, ANSWER_LOST);
        run_until(reader_state(reader) == READER_STATE_DOWN);
        ck_assert_ptr_nonnull(strstr(quoted_reveal(&reader_error(reader)->quoted), "client|list"));
}

TEST_MAIN("bullmq_live", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
