/* SPDX-License-Identifier: MIT */
/* Tests of redis/redis_batch.h with a real redis-server. */
#include "redis/redis_batch.h"
#include "redis_server.h"

static struct redis *redis;
static struct redis_batch *redis_batch;
static unsigned replies, failures, done;
static char texts[4][32]; /* by tag */

static void on_reply(const redisReply *reply, size_t tag, void *userdata)
{
        ck_assert_ptr_eq(userdata, texts);
        ck_assert_uint_eq(done, 0);
        replies++;
        failures += !reply;
        if (reply)
                snprintf(texts[tag], sizeof(texts[tag]), "%s", reply->str);
}

static void on_done(void *userdata)
{
        ck_assert_ptr_eq(userdata, texts);
        done++;
}

static const struct redis_batch_ops ops = {.reply = on_reply, .done = on_done};

static int ask(size_t tag, const char *text)
{
        return redis_batch_add(redis_batch, redis, tag, 2, (const char *const[]){"ECHO", text}, NULL);
}

static void setup(void)
{
        replies = failures = done = 0;
        memset(texts, 0, sizeof(texts));
        loop_start();
        server_start(0, NULL, NULL);
        server_wait();
        redis = server_connect(SERVER_PATIENCE);
        ck_assert_int_eq(redis_batch_new(&ops, texts, &redis_batch), 0);
}

static void teardown(void)
{
        redis_batch = redis_batch_free(redis_batch);
        redis = redis_free(redis);
        loop_end();
}

TEST(it_is_done_once_when_the_last_reply_is_in)
{
        ck_assert_int_eq(ask(2, "two"), 0);
        ck_assert_int_eq(ask(0, "zero"), 0);
        ck_assert_uint_eq(redis_batch_pending(redis_batch), 2);
        ck_assert_uint_eq(replies, 0);
        run_until(done > 0);
        ck_assert_uint_eq(done, 1);
        ck_assert_uint_eq(replies, 2);
        ck_assert_uint_eq(redis_batch_pending(redis_batch), 0);
        ck_assert_str_eq(texts[0], "zero");
        ck_assert_str_eq(texts[2], "two");
}

static void on_first_round(void *userdata _unused_)
{
        ck_assert_uint_eq(redis_batch_pending(redis_batch), 0);
        if (++done == 1)
                ck_assert_int_eq(ask(1, "second"), 0);
}

static void on_any(const redisReply *reply _unused_, size_t tag _unused_, void *userdata _unused_)
{
        replies++;
}

TEST(where_more_is_asked_when_it_is_done_it_is_done_again)
{
        static const struct redis_batch_ops rounds = {.reply = on_any, .done = on_first_round};

        redis_batch_free(redis_batch);
        ck_assert_int_eq(redis_batch_new(&rounds, texts, &redis_batch), 0);
        ck_assert_int_eq(ask(0, "first"), 0);
        run_until(done > 0);
        ck_assert_uint_eq(replies, 1);
        ck_assert_uint_eq(redis_batch_pending(redis_batch), 1);
        run_until(done > 1);
        ck_assert_uint_eq(replies, 2);
}

TEST(a_word_has_the_length_that_is_given)
{
        static const char *const argv[] = {"ECHO", "abcdef"};
        static const size_t lengths[] = {4, 3};

        ck_assert_int_eq(redis_batch_add(redis_batch, redis, 0, 2, argv, lengths), 0);
        run_until(done > 0);
        ck_assert_str_eq(texts[0], "abc");
}

TEST(an_error_of_the_server_is_a_reply)
{
        ck_assert_int_eq(redis_batch_add(redis_batch, redis, 1, 1, (const char *const[]){"NOTHING"}, NULL),
                         0);
        run_until(done > 0);
        ck_assert_uint_eq(failures, 0);
        ck_assert_ptr_nonnull(strstr(texts[1], "unknown command"));
}

TEST(where_the_connection_ends_it_is_done_too)
{
        ck_assert_int_eq(ask(0, "a"), 0);
        ck_assert_int_eq(ask(1, "b"), 0);
        redis = redis_free(redis);
        ck_assert_uint_eq(failures, 2);
        ck_assert_uint_eq(done, 1);
}

TEST(what_was_given_up_calls_nobody)
{
        struct redis_batch *other;

        ck_assert_int_eq(ask(0, "a"), 0);
        redis_batch = redis_batch_free(redis_batch);
        /* Replies come in the order of the questions. */
        ck_assert_int_eq(redis_batch_new(&ops, texts, &other), 0);
        ck_assert_int_eq(redis_batch_add(other, redis, 1, 2, (const char *const[]){"ECHO", "b"}, NULL), 0);
        run_until(done > 0);
        ck_assert_uint_eq(replies, 1);
        ck_assert_str_eq(texts[0], "");
        redis_batch_free(other);
}

static void on_first(const redisReply *reply _unused_, size_t tag _unused_, void *userdata _unused_)
{
        replies++;
        redis_batch = redis_batch_free(redis_batch);
}

TEST(it_may_be_given_up_while_a_reply_is_taken)
{
        static const struct redis_batch_ops once = {.reply = on_first, .done = on_done};

        redis_batch_free(redis_batch);
        ck_assert_int_eq(redis_batch_new(&once, texts, &redis_batch), 0);
        ck_assert_int_eq(ask(0, "a"), 0);
        ck_assert_int_eq(ask(1, "b"), 0);
        run_until(replies > 0);
        redis = redis_free(redis);
        ck_assert_uint_eq(replies, 1);
        ck_assert_uint_eq(done, 0);
}

TEST(what_cannot_be_asked_is_not_waited_for)
{
        server_kill();
        run_until(redis_state(redis) != READER_STATE_CONNECTED);
        ck_assert_int_eq(ask(0, "a"), -ENOTCONN);
        ck_assert_uint_eq(redis_batch_pending(redis_batch), 0);
}

TEST_MAIN("asks", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
