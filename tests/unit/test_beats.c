/* SPDX-License-Identifier: MIT */
/* Are the heartbeats of our own workers found and read, at a cost that others do not raise? Run against a
 * real redis-server. */
/* promises: P5 */
#include "frameworks/sidekiq/beats.h"
#include "frameworks/sidekiq/format.h"
#include "io/clock.h"
#include "model/world.h"
#include "redis_server.h"

#define HOST     "vm*1"
#define WORKERS  20
#define FOREIGN  10000
#define IDENTITY HOST ":%d:%012x"

static struct redis_settings settings;
static struct redis *redis;
static struct beats *beats;

static const struct settings world_settings = {.check_interval = 5 * USEC_PER_SEC};
static const struct fleet_settings fleet_settings = {.traits = &sidekiq_traits};
static struct world world = {.settings = &world_settings};
static struct fleet fleet = {.world = &world, .settings = &fleet_settings};
static struct worker workers[WORKERS];
static struct beats_slot *slots[WORKERS];
static struct told {
        unsigned identities, heartbeats;
        pid_t beat_pid;
        struct heartbeat beat;
} told[WORKERS];
static unsigned n_done, n_asked;
static pid_t descendant;
static unsigned short_of_descriptors; /* so many answers more */
static enum { FREE_NEVER, FREE_AT_IDENTITY, FREE_AT_HEARTBEAT, FREE_AT_DONE } free_at;
static bool remove_at_heartbeat;

static int is_descendant(pid_t pid, const struct worker *worker, _unused_ void *userdata)
{
        n_asked++;
        if (short_of_descriptors > 0) {
                short_of_descriptors--;
                return -EMFILE;
        }
        return pid == descendant && worker == &workers[0];
}

static void on_identity(struct worker *worker, pid_t beat_pid, _unused_ void *userdata)
{
        struct told *to = &told[worker - workers];

        to->identities++;
        to->beat_pid = beat_pid;
        if (free_at == FREE_AT_IDENTITY)
                beats = beats_free(beats);
}

static void on_heartbeat(struct worker *worker, const struct heartbeat *beat, void *userdata)
{
        struct told *to = &told[worker - workers];

        ck_assert_ptr_eq(userdata, told);
        to->heartbeats++;
        to->beat = *beat;
        if (remove_at_heartbeat)
                beats_remove(slots[worker - workers]);
        if (free_at == FREE_AT_HEARTBEAT)
                beats = beats_free(beats);
}

static void on_done(_unused_ struct beats *b, _unused_ void *userdata)
{
        n_done++;
        if (free_at == FREE_AT_DONE)
                beats = beats_free(beats);
}

static const struct beats_ops ops = {
        .is_descendant = is_descendant,
        .on_identity = on_identity,
        .on_heartbeat = on_heartbeat,
        .on_done = on_done,
};

static int make_beats(const char *namespace)
{
        const struct beats_source source = {
                .redis = redis, .format = &sidekiq_beats, .namespace = namespace, .hostname = HOST};

        return beats_new(&source, &ops, told, &beats);
}

static bool is_up(void)
{
        return redis_state(redis) == REDIS_STATE_CONNECTED;
}

static void setup(void)
{
        loop_start();
        server_start(0, NULL, NULL);
        settings = (struct redis_settings){
                .url = server_url,
                .connect_timeout = SERVER_PATIENCE,
                .command_timeout = SERVER_PATIENCE,
        };
        ck_assert_int_eq(redis_new(event, NULL, &settings, NULL, NULL, &redis), 0);
        ck_assert_int_eq(make_beats(NULL), 0);
        run_until(is_up());
}

static void teardown(void)
{
        beats = beats_free(beats);
        redis = redis_free(redis);
        loop_end();
}

/* A worker of a pid that no process has: the kernel gives none beyond 4194304. */
static void spawn(unsigned i)
{
        workers[i] = (struct worker){
                .fleet = &fleet, .pid = 5000000 + (pid_t)i, .spawned_at = clock_now(CLOCK_MONOTONIC)};
        ck_assert_int_eq(beats_add(beats, &workers[i], &slots[i]), 0);
}

static void beat_as(unsigned i, unsigned nonce, const char *beat, unsigned busy, bool quiet)
{
        pid_t pid = workers[i].pid;

        server_do("SADD processes " IDENTITY, pid, nonce);
        server_do("HSET " IDENTITY " info %s busy %u beat %s quiet %s", pid, nonce,
                  "{\"concurrency\":5,\"version\":\"7.0.2\"}", busy, beat, quiet ? "true" : "false");
}

static int look(unsigned n, unsigned looks)
{
        unsigned before = n_done;

        for (unsigned i = 0; i < n; i++)
                beats_want(slots[i], looks);
        int r = beats_look(beats);
        if (r == BEATS_LOOKING)
                run_until(n_done > before);
        return r;
}

/* A walk through the set is not due until ten times the duration of the last has passed. */
static void look_until_found(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                while (told[i].identities == 0)
                        (void)look(n, LOOK_BEAT);
}

static unsigned calls_of(const char *command)
{
        char key[64];
        unsigned calls = 0;

        redisReply *reply = server_ask("INFO commandstats");
        snprintf(key, sizeof(key), "cmdstat_%s:calls=", command);
        const char *at = strstr(reply->str, key);
        if (at)
                calls = (unsigned)strtoul(at + strlen(key), NULL, 10);
        freeReplyObject(reply);
        return calls;
}

START_TEST(finds_a_worker_at_its_first_beat)
{
        spawn(0);
        ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].identities, 0);
        ck_assert_ptr_null(beats_identity(slots[0]));
        beat_as(0, 1, "1795238801.5", 2, false);
        look_until_found(1);
        ck_assert_int_eq(told[0].beat_pid, workers[0].pid);
        ck_assert_uint_eq(told[0].heartbeats, 1);
        ck_assert_uint_eq(told[0].beat.beat_usec, 1795238801500000);
        ck_assert_uint_eq(told[0].beat.busy, 2);
        ck_assert_uint_eq(told[0].beat.concurrency, 5);
        ck_assert(!told[0].beat.quiet);
        ck_assert(!told[0].beat.work_list_known);
        ck_assert_str_eq(((const struct sidekiq_info *)beats_info(slots[0]))->version, "7.0.2");
        ck_assert_str_eq(beats_identity(slots[0]), HOST ":5000000:000000000001");

        beat_as(0, 1, "1795238806.5", 0, true);
        server_do("HSET " IDENTITY " concurrency 7 rss 29604", workers[0].pid, 1U);
        ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].identities, 1);
        ck_assert_uint_eq(told[0].heartbeats, 2);
        ck_assert_uint_eq(told[0].beat.beat_usec, 1795238806500000);
        ck_assert_uint_eq(told[0].beat.concurrency, 7);
        ck_assert_uint_eq(told[0].beat.rss_bytes, (uint64_t)29604 * 1024);
        ck_assert(told[0].beat.quiet);
}
END_TEST

START_TEST(waits_for_an_old_identity_to_change)
{
        spawn(0);
        beat_as(0, 1, "1795238801.5", 2, false);
        for (int i = 0; i < 5; i++)
                (void)look(1, LOOK_BEAT);
        ck_assert_uint_eq(told[0].identities, 0);
        beat_as(0, 1, "1795238806.5", 2, false);
        look_until_found(1);
        ck_assert_uint_eq(told[0].beat.beat_usec, 1795238806500000);
}
END_TEST

/* Finds the first n workers. */
static void find_all(unsigned n)
{
        for (unsigned i = 0; i < n; i++)
                spawn(i);
        (void)look(n, LOOK_BEAT);
        for (unsigned i = 0; i < n; i++)
                beat_as(i, 1, "1795238801.5", 0, true);
        look_until_found(n);
}

START_TEST(reads_a_known_identity_at_once)
{
        spawn(0);
        beat_as(0, 1, "1795238801.5", 2, false);
        ck_assert_int_eq(beats_know(slots[0], HOST ":5000000:000000000001"), 0);
        ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].identities, 0);
        ck_assert_uint_eq(told[0].heartbeats, 1);
        ck_assert_uint_eq(told[0].beat.beat_usec, 1795238801500000);
        ck_assert_str_eq(beats_identity(slots[0]), HOST ":5000000:000000000001");
}
END_TEST

START_TEST(reads_the_work_list_behind_the_beat)
{
        find_all(1);
        ck_assert_int_eq(look(1, LOOK_BEAT | LOOK_WORK_LIST), BEATS_LOOKING);
        ck_assert(told[0].beat.work_list_known);
        ck_assert(told[0].beat.work_list_empty);
        server_do("HSET " IDENTITY ":%s b8c {}", workers[0].pid, 1U, _i == 0 ? "work" : "workers");
        ck_assert_int_eq(look(1, LOOK_WORK_LIST), BEATS_LOOKING);
        ck_assert(told[0].beat.work_list_known);
        ck_assert(!told[0].beat.work_list_empty);
        ck_assert_uint_eq(told[0].heartbeats, 3);
        ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        ck_assert(!told[0].beat.work_list_known);
}
END_TEST

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

START_TEST(costs_no_more_for_ten_thousand_foreign_identities)
{
        add_foreign();
        find_all(WORKERS);

        server_do("CONFIG RESETSTAT");
        for (unsigned i = 0; i < 5; i++)
                ck_assert_int_eq(look(WORKERS, LOOK_BEAT | LOOK_WORK_LIST), BEATS_LOOKING);
        ck_assert_uint_eq(calls_of("hmget"), 5 * WORKERS);
        ck_assert_uint_eq(calls_of("exists"), 5 * WORKERS);
        ck_assert_uint_eq(calls_of("sscan"), 0);
        ck_assert_uint_eq(calls_of("smembers"), 0);

        /* One that is not found yet costs a walk now and then, and nothing else. */
        beats_remove(slots[0]);
        spawn(0);
        workers[0].pid = 6000000;
        server_do("CONFIG RESETSTAT");
        ck_assert_int_eq(look(WORKERS, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_le(calls_of("hmget"), WORKERS - 1);
        ck_assert_uint_le(calls_of("sscan"), FOREIGN / 1000 + 10);
        ck_assert_uint_eq(n_asked, 0);
}
END_TEST

START_TEST(asks_at_most_twice_for_a_worker_with_many_identities)
{
        spawn(0);
        (void)look(1, LOOK_BEAT);
        for (unsigned nonce = 1; nonce <= 50; nonce++)
                server_do("SADD processes " IDENTITY, workers[0].pid, nonce);
        beat_as(0, 77, "1795238801.5", 0, false);
        server_do("CONFIG RESETSTAT");
        unsigned looks = 0;
        while (told[0].identities == 0)
                if (look(1, LOOK_BEAT) == BEATS_LOOKING)
                        looks++;
        ck_assert_uint_le(calls_of("hmget"), 2 * looks);
}
END_TEST

static void find_a_descendant(void)
{
        spawn(0);
        spawn(1);
        descendant = getpid();
        (void)look(2, LOOK_BEAT);
        server_do("SADD processes " HOST ":%d:aaaaaaaaaaaa", (int)descendant);
        server_do("HSET " HOST ":%d:aaaaaaaaaaaa busy 0 beat 1795238801.5 quiet false", (int)descendant);
        look_until_found(1);
        ck_assert_int_eq(told[0].beat_pid, descendant);
        ck_assert_uint_eq(told[1].identities, 0);
        ck_assert_ptr_null(beats_info(slots[0]));
}

START_TEST(finds_a_worker_that_beats_as_a_descendant)
{
        find_a_descendant();
}
END_TEST

/* What was no answer is asked for again. */
START_TEST(finds_a_descendant_once_there_are_descriptors_to_ask_with)
{
        short_of_descriptors = 3;
        find_a_descendant();
        ck_assert_uint_eq(short_of_descriptors, 0);
}
END_TEST

static const struct {
        const char *field, *value; /* NULL: all fields; the field is missing */
} malformed[] = {
        {NULL, NULL}, {"beat", NULL}, {"beat", "yesterday"}, {"busy", "-1"}, {"quiet", "maybe"},
};

START_TEST(takes_no_heartbeat_from_what_is_malformed)
{
        static const char identity[] = HOST ":5000000:000000000001";
        const char *name = malformed[_i].field, *value = malformed[_i].value;

        find_all(2);
        unsigned before = told[0].heartbeats;
        if (!name)
                server_do("DEL %s", identity);
        else if (!value)
                server_do("HDEL %s %s", identity, name);
        else
                server_do("HSET %s %s %s", identity, name, value);
        ck_assert_int_eq(look(2, LOOK_BEAT | LOOK_WORK_LIST), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].heartbeats, before);
        ck_assert_uint_eq(told[1].heartbeats, 2);

        beat_as(0, 1, "1795238811.5", 0, true);
        ck_assert_int_eq(look(2, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].heartbeats, before + 1);
}
END_TEST

START_TEST(takes_no_heartbeat_from_keys_of_another_kind)
{
        find_all(1);
        server_do("DEL " IDENTITY, workers[0].pid, 1U);
        server_do("SET " IDENTITY " x", workers[0].pid, 1U);
        server_do("DEL processes");
        server_do("SET processes x");
        for (int i = 0; i < 3; i++)
                ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].heartbeats, 1);
        ck_assert(is_up());
}
END_TEST

START_TEST(follows_a_sidekiq_that_was_restarted_inside_its_worker)
{
        find_all(1);
        beat_as(0, 2, "1795238900.5", 0, false);
        ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].identities, 1); /* what is known still beats */
        server_do("DEL " IDENTITY, workers[0].pid, 1U);
        for (int i = 0; i < 10; i++)
                ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].identities, 1); /* it has not changed yet */
        for (unsigned second = 905; told[0].identities < 2; second++) {
                char beat[32];
                snprintf(beat, sizeof(beat), "1795238%u.5", second);
                beat_as(0, 2, beat, 3, false);
                ck_assert_int_eq(look(1, LOOK_BEAT), BEATS_LOOKING);
        }
        ck_assert_str_eq(beats_identity(slots[0]), HOST ":5000000:000000000002");
        ck_assert_uint_eq(told[0].beat.busy, 3);
}
END_TEST

START_TEST(looks_for_the_successor_of_one_that_is_forgotten)
{
        find_all(1);
        beats_forget(slots[0]);
        beats_forget(slots[0]);
        ck_assert_ptr_null(beats_identity(slots[0]));
        told[0].identities = 0;
        for (int i = 0; i < 5; i++)
                (void)look(1, LOOK_BEAT);
        ck_assert_uint_eq(told[0].identities, 0); /* the dead one's heartbeat is still there */
        beat_as(0, 2, "1795238900.5", 0, false);
        look_until_found(1);
        ck_assert_str_eq(beats_identity(slots[0]), HOST ":5000000:000000000002");
}
END_TEST

START_TEST(reads_a_namespace)
{
        beats = beats_free(beats);
        ck_assert_int_eq(make_beats("app"), 0);
        spawn(0);
        (void)look(1, LOOK_BEAT);
        server_do("SADD app:processes " IDENTITY, workers[0].pid, 1U);
        server_do("HSET app:" IDENTITY " busy 1 beat 1795238801.5 quiet true", workers[0].pid, 1U);
        server_do("HSET app:" IDENTITY ":work a b", workers[0].pid, 1U);
        look_until_found(1);
        ck_assert_int_eq(look(1, LOOK_BEAT | LOOK_WORK_LIST), BEATS_LOOKING);
        ck_assert(told[0].beat.work_list_known && !told[0].beat.work_list_empty);
}
END_TEST

START_TEST(keeps_to_identities_of_this_host)
{
        spawn(0);
        (void)look(1, LOOK_BEAT);
        server_do(
                "SADD processes vmX1:5000000:00000000000a vm*1:x:5000000:00000000000b vm*1:5000000:nonsense");
        server_do("HSET vmX1:5000000:00000000000a busy 0 beat 1795238801.5 quiet false");
        server_do("HSET vm*1:x:5000000:00000000000b busy 0 beat 1795238801.5 quiet false");
        for (int i = 0; i < 20; i++)
                (void)look(1, LOOK_BEAT);
        ck_assert_uint_eq(told[0].identities, 0);
}
END_TEST

START_TEST(does_not_double_a_look)
{
        ck_assert_int_eq(beats_look(beats), BEATS_NOTHING);
        spawn(0);
        ck_assert_int_eq(beats_look(beats), BEATS_NOTHING);
        beats_want(slots[0], LOOK_MEMORY);
        ck_assert_int_eq(beats_look(beats), BEATS_NOTHING);
        beats_want(slots[0], LOOK_BEAT);
        ck_assert_int_eq(beats_look(beats), BEATS_LOOKING);
        beats_want(slots[0], LOOK_BEAT);
        ck_assert_int_eq(beats_look(beats), BEATS_BUSY);
        run_until(n_done == 1);
        ck_assert_int_eq(beats_look(beats), BEATS_NOTHING); /* the wish is not kept */
}
END_TEST

START_TEST(fails_a_look_when_the_server_dies_and_goes_on_after_that)
{
        find_all(2);
        unsigned before = told[0].heartbeats;
        ck_assert_int_eq(kill(server_pid, SIGSTOP), 0);
        beats_want(slots[0], LOOK_BEAT);
        beats_want(slots[1], LOOK_BEAT | LOOK_WORK_LIST);
        n_done = 0;
        ck_assert_int_eq(beats_look(beats), BEATS_LOOKING);
        server_kill();
        run_until(n_done == 1);
        ck_assert_uint_eq(told[0].heartbeats, before);
        ck_assert_int_eq(look(2, LOOK_BEAT), -ENOTCONN);

        server_start(0, NULL, NULL);
        run_until(is_up());
        beat_as(0, 1, "1795239999.5", 1, true);
        ck_assert_int_eq(look(2, LOOK_BEAT), BEATS_LOOKING);
        ck_assert_uint_eq(told[0].heartbeats, before + 1);
        ck_assert_uint_eq(told[1].heartbeats, 1); /* its heartbeat went with the server */
}
END_TEST

START_TEST(can_be_freed_in_every_callback)
{
        spawn(0);
        (void)look(1, LOOK_BEAT);
        beat_as(0, 1, "1795238801.5", 2, false);
        free_at = FREE_AT_IDENTITY + (unsigned)_i;
        while (beats) {
                beats_want(slots[0], LOOK_BEAT | LOOK_WORK_LIST);
                (void)beats_look(beats);
                ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        }
        ck_assert_uint_eq(told[0].heartbeats, free_at == FREE_AT_IDENTITY ? 0 : 1);
}
END_TEST

START_TEST(can_be_freed_during_a_look)
{
        find_all(2);
        beats_want(slots[0], LOOK_BEAT | LOOK_WORK_LIST);
        beats_want(slots[1], LOOK_BEAT);
        n_done = 0;
        ck_assert_int_eq(beats_look(beats), BEATS_LOOKING);
        beats = beats_free(beats);
        if (_i == 0)
                redis = redis_free(redis);
        else
                for (int i = 0; i < 20; i++)
                        ck_assert_int_ge(sd_event_run(event, 10 * USEC_PER_MSEC), 0);
        ck_assert_uint_eq(n_done, 0);
        ck_assert_uint_eq(told[0].heartbeats, 1);
}
END_TEST

START_TEST(says_nothing_of_a_removed_worker)
{
        find_all(3);
        for (unsigned i = 0; i < 3; i++)
                beats_want(slots[i], LOOK_BEAT | LOOK_WORK_LIST);
        n_done = 0;
        ck_assert_int_eq(beats_look(beats), BEATS_LOOKING);
        beats_remove(slots[1]);
        remove_at_heartbeat = true;
        run_until(n_done == 1);
        ck_assert_uint_eq(told[0].heartbeats, 2);
        ck_assert_uint_eq(told[1].heartbeats, 1);
        ck_assert_uint_eq(told[2].heartbeats, 2);
        ck_assert_int_eq(beats_look(beats), BEATS_NOTHING);
}
END_TEST

int main(void)
{
        if (server_is_missing())
                return 77;
        Suite *suite = suite_create("beats");
        TCase *tcase = tcase_create("beats");

        tcase_set_timeout(tcase, 60);
        tcase_add_unchecked_fixture(tcase, server_directory_make, server_directory_remove);
        tcase_add_checked_fixture(tcase, setup, teardown);
        tcase_add_test(tcase, finds_a_worker_at_its_first_beat);
        tcase_add_test(tcase, waits_for_an_old_identity_to_change);
        tcase_add_test(tcase, reads_a_known_identity_at_once);
        tcase_add_loop_test(tcase, reads_the_work_list_behind_the_beat, 0, 2);
        tcase_add_test(tcase, costs_no_more_for_ten_thousand_foreign_identities);
        tcase_add_test(tcase, asks_at_most_twice_for_a_worker_with_many_identities);
        tcase_add_test(tcase, finds_a_worker_that_beats_as_a_descendant);
        tcase_add_test(tcase, finds_a_descendant_once_there_are_descriptors_to_ask_with);
        tcase_add_loop_test(tcase, takes_no_heartbeat_from_what_is_malformed, 0, ELEMENTSOF(malformed));
        tcase_add_test(tcase, takes_no_heartbeat_from_keys_of_another_kind);
        tcase_add_test(tcase, follows_a_sidekiq_that_was_restarted_inside_its_worker);
        tcase_add_test(tcase, looks_for_the_successor_of_one_that_is_forgotten);
        tcase_add_test(tcase, reads_a_namespace);
        tcase_add_test(tcase, keeps_to_identities_of_this_host);
        tcase_add_test(tcase, does_not_double_a_look);
        tcase_add_test(tcase, fails_a_look_when_the_server_dies_and_goes_on_after_that);
        tcase_add_loop_test(tcase, can_be_freed_in_every_callback, 0, 3);
        tcase_add_loop_test(tcase, can_be_freed_during_a_look, 0, 2);
        tcase_add_test(tcase, says_nothing_of_a_removed_worker);
        suite_add_tcase(suite, tcase);
        return unit_main(suite);
}
