/* SPDX-License-Identifier: MIT */
/* Do hosts that walk take turns, as a real redis-server counts them? */
/* promises: P5 */
#include "heartbeats_bench.h"

#define OTHER_HOSTS 200

static redisContext *others[OTHER_HOSTS];

/* So many hosts wish for a walk, too, through a set that takes its time. */
static void hosts_arrive(void)
{
        redisReply *reply = server_ask("EVAL %s 0",
                                       "for i = 1, 10000 do redis.call('SADD', 'processes', 'other:' .. i .. "
                                       "':0123456789ab') end");

        freeReplyObject(reply);
        for (unsigned i = 0; i < OTHER_HOSTS; i++) {
                others[i] = redisConnectUnix(server_socket);
                reply = redisCommand(others[i], "CLIENT TRACKING ON OPTIN");
                ck_assert_ptr_nonnull(reply);
                ck_assert_str_eq(reply->str, "OK");
                freeReplyObject(reply);
        }
}

static void hosts_leave(void)
{
        for (unsigned i = 0; i < OTHER_HOSTS; i++) {
                redisFree(others[i]);
                others[i] = NULL;
        }
}

static unsigned scanners(void)
{
        redisReply *reply = server_ask("INFO clients");
        const char *at = strstr(reply->str, "\ntracking_clients:");

        ck_assert_ptr_nonnull(at);
        unsigned n = (unsigned)strtoul(at + strlen("\ntracking_clients:"), NULL, 10);
        freeReplyObject(reply);
        return n;
}

static void end(void)
{
        hosts_leave();
        teardown();
}

TEST(is_counted_while_it_wants_a_walk)
{
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(scanners(), 1);
        heartbeat_as(0, 1, "1795238801.5", 0, false);
        poll_until_found(1);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        while (scanners() != 0)
                (void)look(1, POLL_HEARTBEAT);
        /* Nor does it ask for more than its heartbeat then. */
        server_do("CONFIG RESETSTAT");
        for (unsigned i = 0; i < 5; i++)
                ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(calls_of("info"), 0);
        ck_assert_uint_eq(calls_of("hmget"), 5);
        ck_assert_uint_eq(calls_of("scard"), 0);
        ck_assert_uint_eq(calls_of("sscan"), 0);
        ck_assert_uint_eq(calls_of("client|tracking"), 0);
}

TEST(in_a_crowd_one_that_boots_costs_nothing)
{
        hosts_arrive();
        boots = 0;
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        (void)look(1, POLL_HEARTBEAT);
        run_until(scanners() == OTHER_HOSTS);
        server_do("CONFIG RESETSTAT");
        for (unsigned i = 0; i < 50; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(calls_of("sscan"), 0);
        ck_assert_uint_eq(calls_of("scard"), 0);
        ck_assert_uint_eq(scanners(), OTHER_HOSTS);
}

/* Its wait of many seconds ends with the crowd. A walk before its first beat there was none: the second one
 * shows that it beats. */
TEST(in_a_crowd_it_waits_for_its_turn)
{
        hosts_arrive();
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(scanners(), OTHER_HOSTS + 1);
        ck_assert(heartbeats_wait_for_scan(slots[0], workers[0].spawned_at));
        for (unsigned i = 0; i < 50; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(calls_of("scard"), 1);
        ck_assert_uint_eq(calls_of("sscan"), 0);

        hosts_leave();
        heartbeat_as(0, 1, "1795238801.5", 0, false);
        while (calls_of("sscan") == 0)
                (void)look(1, POLL_HEARTBEAT);
        for (unsigned second = 802; reported[0].identities == 0; second++) {
                heartbeat_at(0, 1, second, 0);
                (void)look(1, POLL_HEARTBEAT);
        }
        ck_assert(!heartbeats_wait_for_scan(slots[0], workers[0].spawned_at));
}

/* Whom an ACL forbids to ask walks as if there were no others; which commands, is written in sqmgr.ini(5). */
TEST_LOOP(who_may_not_ask_walks_nevertheless, 3)
{
        static const char *const forbidden[] = {"-info", "-client", "-scard"};

        hosts_arrive();
        server_do("ACL SETUSER default %s", forbidden[_i]);
        spawn(0);
        while (heartbeats_scanned_at(slots[0]) < workers[0].spawned_at)
                (void)look(1, POLL_HEARTBEAT);
        heartbeat_as(0, 1, "1795238801.5", 0, false);
        poll_until_found(1);
        ck_assert(is_up());
        ck_assert_uint_eq(reader_connection_count(reader), 1);
}

/* Redis refuses all requests while a script runs for too long: that gives no permission. A scan may be
 * permitted by chance from the second reading on, which so many members put off by 20 s. */
TEST(a_busy_server_opens_no_gate)
{
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        hosts_arrive();
        server_do("EVAL %s 0", "for i = 1, 500000 do redis.call('SADD', 'processes', i) end");
        server_do("CONFIG SET busy-reply-threshold 1");
        redisContext *script = redisConnectUnix(server_socket);
        redisAppendCommand(script, "EVAL %s 0", "while true do end");
        int done = 0;
        ck_assert_int_eq(redisBufferWrite(script, &done), REDIS_OK);
        ck_assert_int_eq(done, 1);
        redisReply *reply;
        while ((reply = server_ask("PING")) && reply->type != REDIS_REPLY_ERROR)
                freeReplyObject(reply);
        freeReplyObject(reply);
        for (unsigned i = 0; i < 5; i++)
                (void)look(1, POLL_HEARTBEAT);
        reply = server_ask("SCRIPT KILL");
        ck_assert_str_eq(reply->str, "OK");
        freeReplyObject(reply);
        redisFree(script);
        while ((reply = server_ask("PING")) && reply->type == REDIS_REPLY_ERROR)
                freeReplyObject(reply);
        freeReplyObject(reply);

        unsigned walked = calls_of("sscan");
        for (unsigned i = 0; i < 50; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(calls_of("sscan"), walked);
        ck_assert_uint_eq(scanners(), OTHER_HOSTS + 1);
}

TEST_MAIN("gate", .each = {setup, end}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
