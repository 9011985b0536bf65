/* SPDX-License-Identifier: MIT */
/* Are queries answered by a reader, and what if it does not keep to the protocol? Run against a real
 * redis-server. */
/* promises: P5 */
#include "frameworks/sidekiq/format.h"
#include "local_reader.h"
#include "redis_server.h"

#define IDENTITY "host:77:0123456789ab"

static struct redis_settings settings;
static struct reader *reader;
static struct answer answered;
static unsigned answers;

static void take(struct answer *answer, void *userdata _unused_)
{
        answer_clear(&answered);
        answered = *answer;
        answer->heartbeat.info = NULL;
        answers++;
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
        reader = local_reader_up(&settings, sidekiq_traits.id);
}

static void teardown(void)
{
        reader = reader_free(reader);
        answer_clear(&answered);
        ck_assert_uint_eq(local_readers, 0);
        server_kill();
        loop_end();
}

static void ask_heartbeat_of(const char *identity, bool with_info)
{
        const struct field texts[] = {QUERY_TEXT(identity)};
        const struct query query = {
                .kind = QUERY_HEARTBEAT, .numbers = {with_info}, .texts = texts, .n_texts = 1};
        unsigned before = answers;

        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
        run_until(answers > before);
}

TEST(a_heartbeat_is_read_with_what_its_process_reported)
{
        server_do("HSET " IDENTITY " info %s busy 2 beat 1795238801.5 quiet false rss 29604",
                  "{\"concurrency\":5,\"queues\":[\"mail\",\"low\"],\"capsules\":{\"default\":{}}}");
        ask_heartbeat_of(IDENTITY, true);
        ck_assert(answered.heartbeat.found);
        ck_assert_uint_eq(answered.heartbeat.heartbeat.busy, 2);
        ck_assert_uint_eq(answered.heartbeat.heartbeat.sent_usec, 1795238801500000);
        ck_assert_uint_eq(answered.heartbeat.heartbeat.rss_bytes, (uint64_t)29604 * 1024);
        ck_assert_uint_gt(reader_rtt_usec(reader), 0);
}

TEST(an_identity_without_a_heartbeat_is_not_found)
{
        ask_heartbeat_of(IDENTITY, true);
        ck_assert(!answered.heartbeat.found);
        server_do("SET " IDENTITY " text");
        ask_heartbeat_of(IDENTITY, true);
        ck_assert(!answered.heartbeat.found);
        ck_assert_int_eq(answered.status, ANSWER_OK);
}

static void take_and_refuse(struct answer *answer, void *userdata)
{
        take(answer, userdata);
        if (answers == 1)
                reader_refuse(reader);
}

TEST(a_reader_is_replaced_if_its_answer_is_refused)
{
        const struct field texts[] = {QUERY_TEXT(IDENTITY)};
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = texts, .n_texts = 1};
        uint64_t before = reader_connection_count(reader);

        for (unsigned i = 0; i < 3; i++)
                ck_assert_int_eq(reader_ask(reader, &query, take_and_refuse, NULL), 0);
        run_until(answers == 3);
        ck_assert_int_eq(answered.status, ANSWER_LOST);
        ck_assert_uint_eq(reader_refusals(reader), 1);
        ck_assert_int_eq(reader_state(reader), READER_STATE_DOWN);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        ck_assert_uint_gt(reader_connection_count(reader), before);
}

TEST_MAIN("reader", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
