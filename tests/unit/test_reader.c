/* SPDX-License-Identifier: MIT */
/* Are queries answered by a reader, and what if it does not keep to the protocol? Run against a real
 * redis-server. */
/* promises: P5 */
#include "frameworks/sidekiq/format.h"
#include "io/clock.h"
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
                .timeout = SERVER_PATIENCE,
        };
        answers = 0;
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

/* The other end is the test's own, which sends what it likes. */
struct enemy {
        int fd; /* -1: not started */
        unsigned starts, stops;
};
static struct enemy enemy;

static int enemy_start(struct reader_starter *base _unused_,
                       const struct reader_configuration *configuration _unused_,
                       void (*ended)(const char *, void *) _unused_, void *userdata _unused_,
                       struct reader_process **ret, int *ret_fd)
{
        int fds[2];

        ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds), 0);
        close_fd(enemy.fd);
        enemy.fd = fds[1];
        enemy.starts++;
        *ret = (struct reader_process *)&enemy;
        *ret_fd = fds[0];
        return 0;
}

static void enemy_stop(struct reader_process *process)
{
        ck_assert_ptr_eq(process, &enemy);
        enemy.stops++;
}

static struct reader_starter enemy_starter = {.start = enemy_start, .stop = enemy_stop};
static unsigned downs;

static void on_state(struct reader *whose _unused_, enum reader_state state,
                     const struct error_report *error _unused_, void *userdata _unused_)
{
        downs += state == READER_STATE_DOWN;
}

static void enemy_send(const struct codec_writer *message)
{
        uint8_t length[4];
        uint8_t bytes[1024];

        ck_assert_uint_le(message->size, sizeof(bytes) - sizeof(length));
        codec_put_bytes(length, sizeof(length), message->size);
        memcpy(bytes, length, sizeof(length));
        memcpy(bytes + sizeof(length), message->bytes, message->size);
        ck_assert_int_gt(send(enemy.fd, bytes, sizeof(length) + message->size, MSG_NOSIGNAL), 0);
        free(message->bytes);
}

static void enemy_says_connected(void)
{
        const struct reader_report report = {.state = READER_STATE_CONNECTED, .connections = 1};
        struct codec_writer writer = {0};

        reader_report_write(&writer, &report);
        enemy_send(&writer);
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
}

static void enemy_setup(void)
{
        struct reader_configuration configuration;

        reader = reader_free(reader);
        enemy = (struct enemy){.fd = -1};
        downs = 0;
        ck_assert_int_eq(reader_configuration_make(&settings, "redis://127.0.0.1:1", 0, &configuration), 0);
        ck_assert_int_eq(reader_new(event, &enemy_starter, &configuration, on_state, NULL, &reader), 0);
        run_until(enemy.starts == 1);
        enemy_says_connected();
}

/* Sends a message of three numbers. */
static void enemy_numbers(uint64_t first, uint64_t second, uint64_t third)
{
        struct codec_writer writer = {0};

        codec_write_number(&writer, first);
        codec_write_number(&writer, second);
        codec_write_number(&writer, third);
        enemy_send(&writer);
}

TEST_LOOP(what_cannot_be_ends_the_reader_and_another_one_is_started, 6)
{
        const struct field texts[] = {QUERY_TEXT(IDENTITY)};
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = texts, .n_texts = 1};
        struct codec_writer writer = {0};

        enemy_setup();
        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
        switch (_i) {
        case 0: /* no such message */
                enemy_numbers(_READER_MESSAGE_MAX, 0, 0);
                break;
        case 1: /* an answer that nobody waits for */
                enemy_numbers(READER_ANSWER, 77, ANSWER_OK);
                break;
        case 2: /* an answer cut short */
                enemy_numbers(READER_ANSWER, 1, ANSWER_OK);
                break;
        case 3: /* no such state */
                enemy_numbers(READER_STATE, _READER_STATE_MAX, 1);
                break;
        case 4: /* reports without end */
                for (unsigned i = 0; i < 200; i++) {
                        const struct reader_report report = {.state = i % 2 ? READER_STATE_CONNECTED
                                                                            : READER_STATE_DOWN};
                        struct codec_writer more = {0};

                        reader_report_write(&more, &report);
                        enemy_send(&more);
                        ck_assert_int_ge(sd_event_run(event, 0), 0);
                        if (enemy.stops > 0)
                                break;
                }
                downs = 1;
                break;
        default: { /* more jobs than any process has */
                struct answer answer = {.kind = QUERY_HEARTBEAT,
                                        .heartbeat = {.found = true, .heartbeat = {.busy = 1000001}}};

                answer_write(&writer, 1, &answer);
                enemy_send(&writer);
                break;
        }
        }
        run_until(enemy.starts == 2);
        ck_assert_uint_eq(enemy.stops, 1);
        ck_assert_uint_eq(downs, 1);
        ck_assert_uint_eq(reader_refusals(reader), 1);
        ck_assert_uint_eq(answers, 1);
        ck_assert_int_eq(answered.status, ANSWER_LOST);
        enemy_says_connected();
        enemy.fd = close_fd(enemy.fd);
}

TEST(readers_that_end_again_and_again_are_started_after_longer_pauses)
{
        enemy_setup();
        usec_t from = clock_now(CLOCK_MONOTONIC);
        for (unsigned starts = 2; starts <= 5; starts++) {
                enemy_numbers(_READER_MESSAGE_MAX, 0, 0);
                run_until(enemy.starts == starts);
        }
        /* 50, 100, 200 and 400 ms. */
        ck_assert_uint_ge(clock_now(CLOCK_MONOTONIC) - from, 750 * USEC_PER_MSEC);
        enemy.fd = close_fd(enemy.fd);
}

TEST(an_answer_counts_once)
{
        const struct field texts[] = {QUERY_TEXT(IDENTITY)};
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = texts, .n_texts = 1};
        const struct answer answer = {.kind = QUERY_HEARTBEAT};

        enemy_setup();
        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), 0);
        for (unsigned i = 0; i < 2; i++) {
                struct codec_writer writer = {0};

                answer_write(&writer, 1, &answer);
                enemy_send(&writer);
        }
        run_until(enemy.starts == 2);
        ck_assert_uint_eq(answers, 1);
        ck_assert_int_eq(answered.status, ANSWER_OK);
        enemy.fd = close_fd(enemy.fd);
}

TEST(a_query_that_is_too_large_is_not_sent)
{
        _cleanup_free_ char *text = calloc(1, QUERY_BYTES_MAX);
        const struct field texts[] = {{.text = text, .len = QUERY_BYTES_MAX}};
        const struct query query = {.kind = QUERY_HEARTBEAT, .texts = texts, .n_texts = 1};

        ck_assert_ptr_nonnull(text);
        ck_assert_int_eq(reader_ask(reader, &query, take, NULL), -ENOBUFS);
        ask_heartbeat_of(IDENTITY, false);
        ck_assert_int_eq(answered.status, ANSWER_OK);
}

TEST(connections_are_counted_across_processes)
{
        enemy_setup();
        ck_assert_uint_eq(reader_connection_count(reader), 1);
        enemy.fd = close_fd(enemy.fd);
        run_until(enemy.starts == 2);
        enemy_says_connected();
        ck_assert_uint_eq(reader_connection_count(reader), 2);
        enemy.fd = close_fd(enemy.fd);
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
