/* SPDX-License-Identifier: MIT */
/* Are the heartbeats of our own workers found and read, at a cost that others do not raise? Run against a
 * real redis-server. */
/* promises: P5 */
#include "heartbeats_bench.h"

TEST(finds_a_worker_at_its_first_heartbeat)
{
        spawn(0);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].identities, 0);
        ck_assert_ptr_null(slots[0]->identity);
        heartbeat_as(0, 1, "1795238801.5", 2, false);
        poll_until_found(1);
        ck_assert_int_eq(reported[0].heartbeat_pid, workers[0].process.pid);
        ck_assert_uint_eq(reported[0].heartbeats, 1);
        ck_assert_uint_eq(reported[0].heartbeat.sent_usec, 1795238801500000);
        ck_assert_uint_eq(reported[0].heartbeat.busy, 2);
        ck_assert_uint_eq(reported[0].heartbeat.concurrency, 5);
        ck_assert(!reported[0].heartbeat.quiet);
        ck_assert(!reported[0].heartbeat.work_list_known);
        ck_assert_uint_eq(((const struct heartbeat_info *)slots[0]->info)->concurrency, 5);
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000001");

        heartbeat_as(0, 1, "1795238806.5", 0, true);
        server_do("HSET " IDENTITY " concurrency 7 rss 29604", workers[0].process.pid, 1U);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].identities, 1);
        ck_assert_uint_eq(reported[0].heartbeats, 2);
        ck_assert_uint_eq(reported[0].heartbeat.sent_usec, 1795238806500000);
        ck_assert_uint_eq(reported[0].heartbeat.concurrency, 7);
        ck_assert_uint_eq(reported[0].heartbeat.rss_bytes, (uint64_t)29604 * 1024);
        ck_assert(reported[0].heartbeat.quiet);
}

TEST(waits_for_an_old_identity_to_change)
{
        spawn(0);
        heartbeat_as(0, 1, "1795238801.5", 2, false);
        for (int i = 0; i < 5; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].identities, 0);
        heartbeat_as(0, 1, "1795238806.5", 2, false);
        poll_until_found(1);
        ck_assert_uint_eq(reported[0].heartbeat.sent_usec, 1795238806500000);
}

/* Finds the first n workers. */
static void find_all(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                spawn(i);
        /* Among many a walk has its time. */
        while (heartbeats_scanned_at(slots[n - 1]) < workers[n - 1].spawned_at)
                (void)look(n, POLL_HEARTBEAT);
        for (unsigned i = 0; i < n; i++)
                heartbeat_as(i, 1, "1795238801.5", 0, true);
        poll_until_found(n);
}

TEST(reads_a_known_identity_at_once)
{
        spawn(0);
        heartbeat_as(0, 1, "1795238801.5", 2, false);
        ck_assert_int_eq(heartbeats_know(slots[0], HOST ":5000000:000000000001"), 0);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].identities, 0);
        ck_assert_uint_eq(reported[0].heartbeats, 1);
        ck_assert_uint_eq(reported[0].heartbeat.sent_usec, 1795238801500000);
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000001");
}

TEST_LOOP(reads_the_work_list_behind_the_heartbeat, 2)
{
        find_all(1);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT | POLL_WORK_LIST), HEARTBEATS_POLLING);
        ck_assert(reported[0].heartbeat.work_list_known);
        ck_assert(reported[0].heartbeat.work_list_empty);
        server_do("HSET " IDENTITY ":%s b8c {}", workers[0].process.pid, 1U, _i == 0 ? "work" : "workers");
        ck_assert_int_eq(look(1, POLL_WORK_LIST), HEARTBEATS_POLLING);
        ck_assert(reported[0].heartbeat.work_list_known);
        ck_assert(!reported[0].heartbeat.work_list_empty);
        ck_assert_uint_eq(reported[0].heartbeats, 3);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert(!reported[0].heartbeat.work_list_known);
}

static void add_foreign(void)
{
        redisContext *context = redisConnectUnix(server_socket);
        redisReply *reply;

        for (unsigned i = 0; i < FOREIGN; i++)
                redisAppendCommand(context, "SADD processes other-%u:%u:%012x", i % 100, i + 1, i);
        for (unsigned i = 0; i < FOREIGN; i++) {
                ck_assert_int_eq(redisGetReply(context, (void **)&reply), REDIS_OK);
                freeReplyObject(reply);
        }
        redisFree(context);
}

TEST(costs_no_more_for_ten_thousand_foreign_identities)
{
        add_foreign();
        find_all(WORKERS);

        server_do("CONFIG RESETSTAT");
        for (unsigned i = 0; i < 5; i++)
                ck_assert_int_eq(look(WORKERS, POLL_HEARTBEAT | POLL_WORK_LIST), HEARTBEATS_POLLING);
        ck_assert_uint_eq(calls_of("hmget"), 5 * WORKERS);
        ck_assert_uint_eq(calls_of("exists"), 5 * WORKERS);
        ck_assert_uint_eq(calls_of("sscan"), 0);
        ck_assert_uint_eq(calls_of("smembers"), 0);

        /* One that is not found yet costs a walk now and then, and nothing else. */
        heartbeats_remove(slots[0]);
        spawn(0);
        workers[0].process.pid = 6000000;
        server_do("CONFIG RESETSTAT");
        ck_assert_int_eq(look(WORKERS, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_le(calls_of("hmget"), WORKERS - 1);
        ck_assert_uint_le(calls_of("sscan"), FOREIGN / 1000 + 10);
        ck_assert_uint_eq(n_asked, 0);
}

TEST(asks_at_most_twice_for_a_worker_with_many_identities)
{
        spawn(0);
        for (unsigned nonce = 1; nonce <= 50; nonce++)
                server_do("SADD processes " IDENTITY, workers[0].process.pid, nonce);
        (void)look(1, POLL_HEARTBEAT);
        heartbeat_as(0, 77, "1795238801.5", 0, false);
        server_do("CONFIG RESETSTAT");
        unsigned poll_items = 0;
        while (reported[0].identities == 0)
                if (look(1, POLL_HEARTBEAT) == HEARTBEATS_POLLING)
                        poll_items++;
        ck_assert_uint_le(calls_of("hmget"), 2 * poll_items);
}

/* Nobody can tell whether a walk is due: where none was it is tried again. */
TEST(a_worker_may_be_removed_during_a_walk)
{
        for (unsigned nonce = 1, second = 0, scans = 0; scans == 0; nonce++) {
                reported[0].identities = 0;
                spawn(0);
                for (; reported[0].identities == 0; (void)look(1, POLL_HEARTBEAT))
                        heartbeat_at(0, nonce, second++ % 1000, 0);
                unsigned before = calls_of("sscan"), done = n_done;
                heartbeats_want(slots[0], POLL_HEARTBEAT | POLL_SIBLINGS);
                ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_POLLING);
                heartbeats_remove(slots[0]);
                run_until(n_done > done);
                scans = calls_of("sscan") - before;
        }
}

static const struct {
        const char *field, *value; /* NULL: all fields; the field is missing */
} malformed[] = {
        {NULL, NULL}, {"beat", NULL}, {"beat", "yesterday"}, {"busy", "-1"}, {"quiet", "maybe"},
};

TEST_LOOP(takes_no_heartbeat_from_what_is_malformed, ELEMENTSOF(malformed))
{
        static const char identity[] = HOST ":5000000:000000000001";
        const char *name = malformed[_i].field, *value = malformed[_i].value;

        find_all(2);
        unsigned before = reported[0].heartbeats;
        if (!name)
                server_do("DEL %s", identity);
        else if (!value)
                server_do("HDEL %s %s", identity, name);
        else
                server_do("HSET %s %s %s", identity, name, value);
        ck_assert_int_eq(look(2, POLL_HEARTBEAT | POLL_WORK_LIST), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].heartbeats, before);
        ck_assert_uint_eq(reported[1].heartbeats, 2);

        heartbeat_as(0, 1, "1795238811.5", 0, true);
        ck_assert_int_eq(look(2, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].heartbeats, before + 1);
}

TEST(takes_no_heartbeat_from_keys_of_another_kind)
{
        find_all(1);
        server_do("DEL " IDENTITY, workers[0].process.pid, 1U);
        server_do("SET " IDENTITY " x", workers[0].process.pid, 1U);
        server_do("DEL processes");
        server_do("SET processes x");
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].heartbeats, 1);
        ck_assert(is_up());
}

/* The first worker beats until it is found. */
static void heartbeat_on(unsigned nonce, unsigned n)
{
        char heartbeat[32];

        /* After a slow scan, the next one may be thousands of looks away. */
        for (unsigned second = 1795238905; reported[0].identities == 0; second++) {
                snprintf(heartbeat, sizeof(heartbeat), "%u.5", second);
                heartbeat_as(0, nonce, heartbeat, 3, false);
                (void)look(n, POLL_HEARTBEAT);
        }
}

static void heartbeat_below(unsigned second)
{
        server_do("SADD processes " HOST ":%d:00000000000b", (int)descendant);
        server_do("HSET " HOST ":%d:00000000000b busy 3 beat 1795238%u.5 quiet false", (int)descendant,
                  second);
}

TEST(follows_a_sidekiq_that_was_restarted_inside_its_worker)
{
        char identity[64];

        descendant = getpid();
        find_all(1);
        heartbeat_below(900);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].identities, 1); /* what is known still beats */
        server_do("DEL " IDENTITY, workers[0].process.pid, 1U);
        for (int i = 0; i < 10; i++)
                ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].identities, 1); /* it has not changed yet */
        for (unsigned second = 905; reported[0].identities < 2; second++) {
                heartbeat_below(second);
                ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        }
        snprintf(identity, sizeof(identity), HOST ":%d:00000000000b", (int)descendant);
        ck_assert_str_eq(slots[0]->identity, identity);
        ck_assert_uint_eq(reported[0].heartbeat.busy, 3);
}

/* A process has one identity: where its beat stops, another of its pid is another host's. */
TEST(keeps_the_identity_of_one_that_is_silent)
{
        find_all(2);
        server_do("DEL " IDENTITY, workers[0].process.pid, 1U);
        for (unsigned second = 905; calls_of("sscan") < 10 && second < 990; second++) {
                heartbeat_at(0, 2, second, 3);
                (void)look(2, POLL_HEARTBEAT);
        }
        ck_assert_uint_eq(reported[0].identities, 1);
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000001");
}

/* Two containers of one host name and one pid: what was there while ours booted is the other's, and of two
 * that came at once none is taken while both beat. */
TEST(takes_no_heartbeat_of_another_host_of_this_name)
{
        unsigned second = 100;

        boots = 0;
        spawn(0);
        for (; n_boots_asked == 0; second++) {
                heartbeat_at(0, 1, second, 3);
                (void)look(1, POLL_HEARTBEAT);
        }
        boots = 1;
        for (; reported[0].identities == 0; second++) {
                heartbeat_at(0, 1, second, 3);
                heartbeat_at(0, 2, second, 0);
                (void)look(1, POLL_HEARTBEAT);
        }
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000002");
        ck_assert(!workers[0].heartbeat.ambiguous);

        spawn(1);
        (void)look(2, POLL_HEARTBEAT);
        for (; !workers[1].heartbeat.ambiguous; second++) {
                heartbeat_at(1, 1, second, 0);
                heartbeat_at(1, 2, second, 0);
                (void)look(2, POLL_HEARTBEAT);
        }
        ck_assert_uint_eq(reported[1].identities, 0);
        server_do("SREM processes " IDENTITY, workers[1].process.pid, 1U);
        poll_until_found(2);
        ck_assert(!workers[1].heartbeat.ambiguous);
        ck_assert_str_eq(slots[1]->identity, HOST ":5000001:000000000002");
}

/* The process that was started at 1795238800 cannot have registered the first record. */
TEST(takes_of_two_that_came_at_once_the_one_that_is_not_older_than_its_process)
{
        pid_t pid;

        spawn(0);
        pid = workers[0].process.pid;
        foreign_before = UINT64_C(1795238800000000);
        (void)look(1, POLL_HEARTBEAT);
        for (unsigned second = 805; reported[0].identities == 0; second++) {
                heartbeat_at(0, 1, second, 3);
                heartbeat_at(0, 2, second, 0);
                server_do("HSET " IDENTITY " info %s", pid, 1U, "{\"started_at\":1795238799.5}");
                server_do("HSET " IDENTITY " info %s", pid, 2U, "{\"started_at\":1795238800.5}");
                (void)look(1, POLL_HEARTBEAT);
                ck_assert(!workers[0].heartbeat.ambiguous);
        }
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000002");
}

TEST(looks_for_the_successor_of_one_that_is_forgotten)
{
        find_all(1);
        heartbeats_forget(slots[0]);
        heartbeats_forget(slots[0]);
        ck_assert_ptr_null(slots[0]->identity);
        reported[0].identities = 0;
        for (int i = 0; i < 5; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].identities, 0); /* the dead one's heartbeat is still there */
        heartbeat_on(2, 1);
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000002");
}

TEST(reads_a_namespace)
{
        end_heartbeats();
        settings.namespace = (char *)"app";
        make_heartbeats(&sidekiq_framework);
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        server_do("SADD app:processes " IDENTITY, workers[0].process.pid, 1U);
        server_do("HSET app:" IDENTITY " busy 1 beat 1795238801.5 quiet true", workers[0].process.pid, 1U);
        server_do("HSET app:" IDENTITY ":work a b", workers[0].process.pid, 1U);
        poll_until_found(1);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT | POLL_WORK_LIST), HEARTBEATS_POLLING);
        ck_assert(reported[0].heartbeat.work_list_known && !reported[0].heartbeat.work_list_empty);
}

TEST(keeps_to_identities_of_this_host)
{
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        server_do(
                "SADD processes vmX1:5000000:00000000000a vm*1:x:5000000:00000000000b vm*1:5000000:nonsense");
        server_do("HSET vmX1:5000000:00000000000a busy 0 beat 1795238801.5 quiet false");
        server_do("HSET vm*1:x:5000000:00000000000b busy 0 beat 1795238801.5 quiet false");
        for (int i = 0; i < 20; i++)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].identities, 0);
}

/* Those that run beat under the name of before, new ones under that of now. */
TEST(follows_the_name_of_its_host)
{
        find_all(1);
        spawn(1);
        host = NULL;
        (void)look(2, POLL_HEARTBEAT);
        host = "new";
        while (calls_of("sscan") < 4)
                (void)look(2, POLL_HEARTBEAT);
        server_do("SADD processes new:5000001:00000000000a");
        server_do("HSET new:5000001:00000000000a busy 0 beat 1795238801.5 quiet false");
        poll_until_found(2);
        ck_assert_str_eq(slots[1]->identity, "new:5000001:00000000000a");

        /* The old one is started again inside its worker, by a command that had the name handed down. */
        heartbeats_forget(slots[0]);
        reported[0].identities = 0;
        heartbeat_on(2, 2);
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000002");
}

/* Known from before sqmgr began, and lost: it is looked for under the name that it has. */
TEST(looks_for_a_known_worker_under_its_own_name)
{
        host = "new";
        spawn(0);
        heartbeat_as(0, 1, "1795238801.5", 2, false);
        ck_assert_int_eq(heartbeats_know(slots[0], HOST ":5000000:000000000001"), 0);
        ck_assert_int_eq(look(1, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].heartbeats, 1);
        heartbeats_forget(slots[0]);
        server_do("DEL " IDENTITY, workers[0].process.pid, 1U);
        /* A first scan that listed both records would not take the new one before 45 s had passed. */
        usec_t lost_at = clock_now(CLOCK_MONOTONIC);
        while (heartbeats_scanned_at(slots[0]) < lost_at)
                (void)look(1, POLL_HEARTBEAT);
        heartbeat_on(2, 1);
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:000000000002");
}

TEST(a_look_that_is_wanted_during_another_follows_it)
{
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_NOTHING);
        find_all(2);
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_NOTHING);
        heartbeats_want(slots[0], POLL_MEMORY);
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_NOTHING);
        unsigned before = reported[0].heartbeats, others = reported[1].heartbeats;
        n_done = 0;
        heartbeats_want(slots[0], POLL_HEARTBEAT);
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_POLLING);
        for (unsigned i = 0; i < 3; i++) {
                heartbeats_want(slots[1], POLL_HEARTBEAT);
                ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_BUSY);
        }
        run_until(n_done == 1);
        ck_assert_uint_eq(reported[0].heartbeats, before + 1);
        run_until(n_done == 2);
        ck_assert_uint_eq(reported[0].heartbeats, before + 1);
        ck_assert_uint_eq(reported[1].heartbeats, others + 1);
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_NOTHING); /* one look is enough for them */
}

TEST(fails_a_look_when_the_server_dies_and_goes_on_after_that)
{
        find_all(2);
        unsigned before = reported[0].heartbeats;
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        heartbeats_want(slots[0], POLL_HEARTBEAT);
        heartbeats_want(slots[1], POLL_HEARTBEAT | POLL_WORK_LIST);
        n_done = 0;
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_POLLING);
        server_kill();
        run_until(n_done == 1);
        ck_assert_uint_eq(reported[0].heartbeats, before);
        ck_assert_int_eq(look(2, POLL_HEARTBEAT), -ENOTCONN);

        server_start(0, NULL, NULL);
        run_until(is_up());
        heartbeat_as(0, 1, "1795239999.5", 1, true);
        ck_assert_int_eq(look(2, POLL_HEARTBEAT), HEARTBEATS_POLLING);
        ck_assert_uint_eq(reported[0].heartbeats, before + 1);
        ck_assert_uint_eq(reported[1].heartbeats, 1); /* its heartbeat went with the server */
}

TEST_LOOP(can_be_freed_in_every_callback, 3)
{
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        heartbeat_as(0, 1, "1795238801.5", 2, false);
        free_at = FREE_AT_IDENTITY + (unsigned)_i;
        while (heartbeats) {
                heartbeats_want(slots[0], POLL_HEARTBEAT | POLL_WORK_LIST);
                (void)heartbeats_poll(heartbeats);
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        ck_assert_uint_eq(reported[0].heartbeats, free_at == FREE_AT_IDENTITY ? 0 : 1);
}

TEST_LOOP(can_be_freed_during_a_look, 2)
{
        find_all(2);
        heartbeats_want(slots[0], POLL_HEARTBEAT | POLL_WORK_LIST);
        heartbeats_want(slots[1], POLL_HEARTBEAT);
        n_done = 0;
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_POLLING);
        heartbeats = heartbeats_free(heartbeats);
        if (_i == 0)
                reader = reader_free(reader);
        else
                for (int i = 0; i < 20; i++)
                        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        ck_assert_uint_eq(n_done, 0);
        ck_assert_uint_eq(reported[0].heartbeats, 1);
}

TEST(says_nothing_of_a_removed_worker)
{
        find_all(3);
        for (unsigned i = 0; i < 3; i++)
                heartbeats_want(slots[i], POLL_HEARTBEAT | POLL_WORK_LIST);
        n_done = 0;
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_POLLING);
        heartbeats_remove(slots[1]);
        remove_at_heartbeat = true;
        run_until(n_done == 1);
        ck_assert_uint_eq(reported[0].heartbeats, 2);
        ck_assert_uint_eq(reported[1].heartbeats, 1);
        ck_assert_uint_eq(reported[2].heartbeats, 2);
        ck_assert_int_eq(heartbeats_poll(heartbeats), HEARTBEATS_NOTHING);
}

TEST(one_that_heartbeat_in_the_background_is_found_once_it_is_the_worker)
{
        spawn(0);
        pid_t script = workers[0].process.pid;
        while (calls_of("sscan") == 0)
                (void)look(1, POLL_HEARTBEAT);
        workers[0].process.pid = 6000000;
        heartbeat_as(0, 1, "1000.5", 0, false);
        workers[0].process.pid = script;
        for (unsigned scans = calls_of("sscan"); calls_of("sscan") < scans + 2;)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].identities, 0);
        workers[0].process.pid = 6000000;
        heartbeats_moved(slots[0]);
        poll_until_found(1);
        ck_assert_int_eq(reported[0].heartbeat_pid, 6000000);
}

#define RQ_KEY "rq:worker:6f0f"

static void rq_spawn(void)
{
        end_heartbeats();
        make_heartbeats(&rq_framework);
        spawn(0);
        server_do("SADD rq:workers " RQ_KEY);
        server_do("HSET " RQ_KEY " hostname " HOST " pid %d birth %s last_heartbeat %s state idle",
                  (int)workers[0].process.pid, "2026-11-22T10:45:09.5Z", "2026-11-22T10:45:10.5Z");
}

/* No scan has seen the time before it, and an idle one beats once in 405 s. */
TEST(takes_what_its_own_process_registered_though_no_look_came_before_it)
{
        births = 1;
        rq_spawn();
        poll_until_found(1);
        ck_assert_str_eq(slots[0]->identity, HOST ":5000000:" RQ_KEY);
        ck_assert_uint_eq(born_asked, 1795344309500000);
}

/* Of another process, of one that is gone, of one that has not booted, or nothing can be told. */
TEST_LOOP(takes_nothing_that_another_may_have_registered, 2)
{
        births = _i == 0 ? 0 : -ESRCH;
        rq_spawn();
        while (calls_of("sort") < 4)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(born_asked, 1795344309500000);
        ck_assert_uint_eq(reported[0].identities, 0);
        births = 1;
        server_do("HDEL " RQ_KEY " birth"); /* as after a loss of data */
        for (unsigned n = calls_of("sort"); calls_of("sort") < n + 3;)
                (void)look(1, POLL_HEARTBEAT);
        ck_assert_uint_eq(reported[0].identities, 0);
}

TEST_MAIN("beats", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
