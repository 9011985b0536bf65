/* SPDX-License-Identifier: MIT */
/* Tests of how hosts tell each other what they take of a need (autoscaling/scaling_exchange.h), with a real
 * redis-server. */
#include "autoscaling/scaling_exchange.h"
#include "autoscaling/scaling_peer_rules.h"
#include "frameworks/sidekiq/format.h"
#include "io/clock.h"
#include "local_reader.h"
#include "quoting.h"
#include "redis_server.h"

#define KEY "sqmgr:rollout:g"

static struct redis_settings settings;
static struct reader *reader;
static struct scaling_exchange *here;

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
        ck_assert_int_eq(scaling_exchange_new(reader, "g", &here), 0);
}

static void teardown(void)
{
        here = scaling_exchange_free(here);
        reader = reader_free(reader);
        loop_end();
}

static void poll_as(struct scaling_exchange *scaling_exchange, const char *host,
                    const struct peer_share *share)
{
        scaling_exchange_poll(scaling_exchange, host, share, 60, clock_now(CLOCK_MONOTONIC));
}

static const struct peer_share mine = {.weight = 8, .busy = 1, .threads = 2, .queues = "default\0"};

/* Has all hosts of the group read until the condition holds. */
#define poll_until(condition)                                                                                \
        do {                                                                                                 \
                while (!(condition)) {                                                                       \
                        poll_as(here, "here", &mine);                                                        \
                        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);                        \
                }                                                                                            \
        } while (0)

static const struct peer *find(const char *host)
{
        return peers_find(&here->peers, host);
}

static void be_there(const char *host)
{
        server_do("ZADD " KEY ":seen 1 %s", host);
}

static void put(const char *host, const char *text, size_t len)
{
        char key[128];

        be_there(host);
        snprintf(key, sizeof(key), KEY ":threads:%s", host);
        server_set(key, text, len);
}
#define PUT(host, text) put(host, text, sizeof(text) - 1)

static long long number(const char *question)
{
        redisContext *context = redisConnectUnix(server_socket);
        redisReply *reply = redisCommand(context, question);

        ck_assert_ptr_nonnull(reply);
        long long n = reply->integer;
        freeReplyObject(reply);
        redisFree(context);
        return n;
}

TEST(each_reads_what_the_others_report)
{
        struct scaling_exchange *there;

        be_there("here");
        be_there("there");
        ck_assert_int_eq(scaling_exchange_new(reader, "g", &there), 0);
        ck_assert(!here->known);
        poll_as(there, "there", &(struct peer_share){.weight = 3, .threads = 15, .queues = "mail\0"});
        poll_until(find("there"));
        ck_assert_str_eq(error_shown(&here->error), "");
        ck_assert_uint_eq(here->peers.n, 1);
        ck_assert_uint_eq(find("there")->share.weight, 3);
        ck_assert_uint_eq(find("there")->share.threads, 15);
        ck_assert_str_eq(find("there")->share.queues, "mail");
        while (!peers_find(&there->peers, "here")) {
                poll_as(there, "there", NULL);
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        /* All of it expires by itself. */
        long long left = number("TTL " KEY ":threads:here");
        ck_assert_int_gt(left, 0);
        ck_assert_int_le(left, 60);
        scaling_exchange_free(there);
}

TEST(one_alone_and_one_without_a_name_of_its_own_write_no_more_than_they_may)
{
        ck_assert(!here->known);
        poll_as(here, "here", NULL);
        run_until(here->known);
        ck_assert_uint_eq(here->peers.n, 0);
        ck_assert_int_eq(number("DBSIZE"), 0);
        be_there("here");
        poll_until(number("EXISTS " KEY ":threads:here") == 1);
        ck_assert_uint_eq(here->peers.n, 0);
}

TEST(a_namespace_stands_in_front)
{
        static char namespace[] = "space";
        struct scaling_exchange *named;

        settings.namespace = namespace;
        struct reader *other = local_reader_up(&settings, sidekiq_traits.id);
        ck_assert_int_eq(scaling_exchange_new(other, "g", &named), 0);
        poll_as(named, "here", &mine);
        run_until(named->known);
        ck_assert_int_eq(number("EXISTS space:" KEY ":threads:here"), 1);
        ck_assert_int_eq(number("DBSIZE"), 1);
        scaling_exchange_free(named);
        reader_free(other);
}

TEST(garbage_beside_a_share_hides_nothing)
{
        static char large[PEER_TEXT_MAX + 100];

        memset(large, 'a', sizeof(large));
        PUT("binary", "\xff\0\n\x1b[31m");
        PUT("empty", "");
        PUT("negative", "1 -8 1 2 0\0default\0");
        PUT("newer", "3 8 1 2 0\0default\0");
        put("large", large, sizeof(large));
        be_there("hash");
        server_do("HSET " KEY ":threads:hash a b");
        be_there("silent");
        server_do("EVAL %s 0", "redis.call('ZADD', '" KEY ":seen', 1, 'a\\0b', 1, '', 1, ('a'):rep(300))");
        PUT("there", "1 8 1 2 0\0default\0");
        poll_until(find("there"));
        ck_assert_uint_eq(here->peers.n, 1);
        ck_assert_str_eq(error_shown(&here->error), "");
}

TEST(of_a_flood_of_hosts_so_many_are_read_and_rarely)
{
        server_do("EVAL %s 0", "for i = 1, 3000 do redis.call('ZADD', '" KEY ":seen', i, 'h' .. i) end "
                               "for i = 1, 3000 do redis.call('SET', '" KEY ":threads:h' .. i, "
                               "'1 8 1 2 0\\0default\\0') end");
        poll_until(find("h1"));
        ck_assert_uint_eq(here->peers.n, 1024);
        /* A tenth of a second for each. */
        server_do("DEL " KEY ":threads:h1");
        usec_t now = clock_now(CLOCK_MONOTONIC);
        for (unsigned i = 0; i < 10; i++) {
                scaling_exchange_poll(here, "here", NULL, 60, now + i * 10 * USEC_PER_SEC);
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        ck_assert_ptr_nonnull(find("h1"));
        scaling_exchange_poll(here, "here", NULL, 60, now + 104 * USEC_PER_SEC);
        run_until(!find("h1"));
        ck_assert_uint_eq(here->peers.n, 1023);
}

TEST(what_redis_refuses_is_reported_and_known)
{
        PUT("there", "1 8 1 2 0\0default\0");
        poll_until(find("there"));
        server_do("DEL " KEY ":seen");
        server_do("SET " KEY ":seen x");
        poll_until(!find("there"));
        ck_assert_ptr_nonnull(strstr(error_shown(&here->error), "WRONGTYPE"));
        ck_assert(here->known);
        server_do("DEL " KEY ":seen");
        be_there("there");
        poll_until(find("there"));
        ck_assert_str_eq(error_shown(&here->error), "");
}

/* Heartbeats can be read from it: so it stays connected. */
TEST(a_replica_that_was_named_is_reported_of_and_kept)
{
        PUT("there", "1 8 1 2 0\0default\0");
        server_do("REPLICAOF 127.0.0.1 1");
        uint64_t before = reader_connection_count(reader);
        poll_until(find("there") && here->error.text[0] != '\0');
        ck_assert_ptr_nonnull(strstr(error_shown(&here->error), "READONLY"));
        ck_assert_uint_eq(reader_connection_count(reader), before);
        ck_assert_int_eq(reader_state(reader), READER_STATE_CONNECTED);
}

TEST(the_rights_that_a_rollout_needs_are_enough)
{
        static const char *const keys[] = {"~queue:*", "~sqmgr:rollout:*"};
        char url[128];

        PUT("there", "1 8 1 2 0\0default\0");
        for (unsigned i = 0; i < 2; i++) {
                struct scaling_exchange *scaling_exchange;

                server_do("ACL SETUSER worker%u on nopass ~processes %s +@read +@write +ping +role +select",
                          i, keys[i]);
                snprintf(url, sizeof(url), "unix://worker%u:x@%s", i, server_socket);
                settings.url = url;
                struct reader *other = local_reader_up(&settings, sidekiq_traits.id);
                ck_assert_int_eq(scaling_exchange_new(other, "g", &scaling_exchange), 0);
                poll_as(scaling_exchange, "here", &mine);
                run_until(scaling_exchange->known);
                ck_assert_uint_eq(scaling_exchange->peers.n, i);
                if (i == 0)
                        ck_assert_ptr_nonnull(strstr(error_shown(&scaling_exchange->error), "| NOPERM"));
                else
                        ck_assert_str_eq(error_shown(&scaling_exchange->error), "");
                ck_assert_int_eq(number("EXISTS " KEY ":threads:here"), i);
                ck_assert_int_eq(reader_state(other), READER_STATE_CONNECTED);
                scaling_exchange_free(scaling_exchange);
                reader_free(other);
        }
}

/* Who has come back to Redis and has not told of itself yet is no host less. */
TEST(after_redis_was_away_those_that_are_silent_are_kept_for_a_while)
{
        PUT("there", "1 8 1 2 0\0default\0");
        poll_until(find("there"));
        server_kill();
        run_until(reader_state(reader) == READER_STATE_DOWN);
        poll_as(here, "here", &mine);
        ck_assert_ptr_nonnull(find("there"));
        server_start(0, NULL, NULL);
        server_wait();
        PUT("other", "1 3 1 2 0\0default\0");
        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        poll_until(find("other"));
        ck_assert_ptr_nonnull(find("there"));
        ck_assert_uint_eq(here->peers.n, 2);
        scaling_exchange_poll(here, "here", NULL, 60, clock_now(CLOCK_MONOTONIC));
        ck_assert_ptr_nonnull(find("there"));
}

TEST(freed_with_questions_under_way_it_hears_of_none)
{
        PUT("there", "1 8 1 2 0\0default\0");
        poll_as(here, "here", &mine);
        here = scaling_exchange_free(here);
        run_until(number("EXISTS " KEY ":threads:here") == 1);
        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
}

TEST_MAIN("peering", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
