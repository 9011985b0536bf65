/* SPDX-License-Identifier: MIT */
/* Tests of decoding what the script of a rollout answers (rollout_hosts/reply_rules.h). */
#include "rollout_hosts/reply_rules.h"
#include "rollout_hosts/signature_rules.h"
#include "unit.h"

static struct field words[_ROLLOUT_REPLY_MAX + 2 * ROLLOUT_HOST_WORDS];

static void set(size_t i, const char *text)
{
        words[i] = (struct field){text, strlen(text)};
}

static void setup(void)
{
        static const char *const texts[_ROLLOUT_REPLY_MAX + 2 * ROLLOUT_HOST_WORDS] = {
                [ROLLOUT_REPLY_VERDICT] = "ok",
                [ROLLOUT_REPLY_NUMBER] = "7",
                [ROLLOUT_REPLY_HIGH] = "9",
                [ROLLOUT_REPLY_ID] = "abc",
                [ROLLOUT_REPLY_STATE] = "halted",
                [ROLLOUT_REPLY_ERROR] = "h: why",
                [ROLLOUT_REPLY_MINE] = "-1",
                [ROLLOUT_REPLY_ASKED] = "10%",
                [ROLLOUT_REPLY_CANARY] = "600",
                [ROLLOUT_REPLY_FAILURES] = "1",
                [ROLLOUT_REPLY_RELEASE] = "2026",
                [ROLLOUT_REPLY_MAC] = "12",
                [ROLLOUT_REPLY_END_MAC] = "",
                [ROLLOUT_REPLY_LEFT] = " x",
                [ROLLOUT_REPLY_BY] = "one",
                [ROLLOUT_REPLY_AGE] = "90.000000",
                [ROLLOUT_REPLY_NOW] = "1800000000",
                [ROLLOUT_REPLY_SERVER] = "redis:6379",
                [_ROLLOUT_REPLY_MAX] = "one",
                "4",
                "1.500000",
                "0.000001",
                "draining",
                "8",
                "3",
                "2",
                "1",
                "two",
                "3",
                "61.000000",
                "86400.000000",
                "bad",
                "",
                "",
                "",
                "",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++)
                set(i, texts[i]);
}

TEST(decodes_what_it_says)
{
        struct rollout_reply reply;

        ck_assert_int_eq(rollout_reply_decode(words, _ROLLOUT_REPLY_MAX, &reply), 0);
        ck_assert_int_eq(reply.verdict, ROLLOUT_VERDICT_OK);
        ck_assert_uint_eq(reply.number, 7);
        ck_assert_uint_eq(reply.high, 9);
        ck_assert_str_eq(reply.id, "abc");
        ck_assert_int_eq(reply.state, GROUP_HALTED);
        ck_assert_str_eq(reply.error, "h: why");
        ck_assert_int_eq(reply.mine, HOST_LEASE_NONE);
        ck_assert_str_eq(reply.asked, "10%");
        ck_assert_uint_eq(reply.canary_seconds, 600);
        ck_assert_uint_eq(reply.failures, 1);
        ck_assert_str_eq(reply.release, "2026");
        ck_assert_str_eq(reply.mac, "12");
        ck_assert_str_eq(reply.left, " x");
        ck_assert_str_eq(reply.by, "one");
        ck_assert_uint_eq(reply.age_usec, 90 * USEC_PER_SEC);
        ck_assert_uint_eq(reply.now_seconds, 1800000000);
        ck_assert_str_eq(reply.server, "redis:6379");
}

TEST(decodes_its_hosts)
{
        struct rollout_host host;

        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
        ck_assert_str_eq(host.name, "one");
        ck_assert_int_eq(host.lease, HOST_LEASE_DONE);
        ck_assert_uint_eq(host.state_usec, 1500 * USEC_PER_MSEC);
        ck_assert_uint_eq(host.seen_usec, 1);
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 1, &host), 0);
        ck_assert_int_eq(host.lease, HOST_LEASE_FAILED);
        ck_assert_uint_eq(host.seen_usec, USEC_PER_DAY);
        ck_assert_str_eq(host.text, "bad");
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 2, &host), -ENOENT);
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words) - 1, 1, &host), -ENOENT);
}

TEST(progress_is_four_numbers_or_unknown)
{
        static const char *const wrong[] = {"", "x", "-1", "4294967296", "3 of 8"};
        struct rollout_host host;

        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
        ck_assert(host.counts_known);
        ck_assert_uint_eq(host.counts.total, 8);
        ck_assert_uint_eq(host.counts.replaced, 3);
        ck_assert_uint_eq(host.counts.draining, 2);
        ck_assert_uint_eq(host.counts.failed, 1);
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 1, &host), 0);
        ck_assert(!host.counts_known);
        for (size_t i = 0; i < ELEMENTSOF(wrong); i++) {
                set(_ROLLOUT_REPLY_MAX + 6, wrong[i]);
                ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
                ck_assert(!host.counts_known);
        }
}

TEST(numbers_tell_whether_old_workers_drain_and_without_them_the_word_of_earlier_versions)
{
        struct rollout_host host;

        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
        ck_assert(rollout_host_drains(&host));
        set(_ROLLOUT_REPLY_MAX + 7, "0");
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
        ck_assert(!rollout_host_drains(&host));
        set(_ROLLOUT_REPLY_MAX + 7, "");
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
        ck_assert(rollout_host_drains(&host));
        set(_ROLLOUT_REPLY_MAX + 4, "2 of 8 replaced");
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
        ck_assert(!rollout_host_drains(&host));
}

TEST(garbage_is_refused)
{
        static const struct {
                size_t i;
                const char *text;
        } cases[] = {
                {ROLLOUT_REPLY_VERDICT, "okay"},   {ROLLOUT_REPLY_VERDICT, ""},
                {ROLLOUT_REPLY_NUMBER, "-1"},      {ROLLOUT_REPLY_NUMBER, "9007199254740992"},
                {ROLLOUT_REPLY_NUMBER, ""},        {ROLLOUT_REPLY_HIGH, "1e9"},
                {ROLLOUT_REPLY_STATE, "starting"}, {ROLLOUT_REPLY_MINE, "5"},
                {ROLLOUT_REPLY_MINE, "-2"},        {ROLLOUT_REPLY_NOW, "x"},
        };
        struct rollout_reply reply;

        ck_assert_int_eq(rollout_reply_decode(words, _ROLLOUT_REPLY_MAX - 1, &reply), -EBADMSG);
        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                setup();
                set(cases[i].i, cases[i].text);
                ck_assert_int_eq(rollout_reply_decode(words, _ROLLOUT_REPLY_MAX, &reply), -EBADMSG);
        }
}

TEST(a_reply_with_more_hosts_than_there_may_be_is_refused)
{
        static struct field many[ROLLOUT_REPLY_WORDS_MAX + 1];
        struct rollout_reply reply;

        memcpy(many, words, sizeof(words));
        for (size_t i = _ROLLOUT_REPLY_MAX; i < ELEMENTSOF(many); i++)
                many[i] = words[_ROLLOUT_REPLY_MAX + (i - _ROLLOUT_REPLY_MAX) % ROLLOUT_HOST_WORDS];
        ck_assert_int_eq(rollout_reply_decode(many, ROLLOUT_REPLY_WORDS_MAX, &reply), 0);
        ck_assert_int_eq(rollout_reply_decode(many, ROLLOUT_REPLY_WORDS_MAX + 1, &reply), -EBADMSG);
}

TEST(a_host_that_is_none_is_refused)
{
        static const struct {
                size_t i;
                const char *text;
        } cases[] = {{1, "x"}, {2, "1"}, {2, "1.5"}, {2, ".500000"}, {3, "-1.000000"}, {3, "1.00000x"}};
        struct rollout_host host;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                setup();
                set(_ROLLOUT_REPLY_MAX + cases[i].i, cases[i].text);
                ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), -EBADMSG);
        }
}

TEST(what_is_shown_is_bounded_and_without_control_characters)
{
        static char length[5000];
        struct rollout_reply reply;
        struct rollout_host host;

        memset(length, 'x', sizeof(length) - 1);
        set(ROLLOUT_REPLY_ERROR, length);
        set(ROLLOUT_REPLY_ID, length);
        set(ROLLOUT_REPLY_RELEASE, "a\nb\x1b[1m");
        set(ROLLOUT_REPLY_ASKED, "1\n");
        set(ROLLOUT_REPLY_CANARY, "99999999999");
        set(_ROLLOUT_REPLY_MAX, "\xff\r");
        ck_assert_int_eq(rollout_reply_decode(words, _ROLLOUT_REPLY_MAX, &reply), 0);
        ck_assert_uint_eq(strlen(reply.error), ROLLOUT_TEXT_MAX);
        ck_assert_str_eq(reply.id, "");
        ck_assert_str_eq(reply.release, "a?b?[1m");
        ck_assert_str_eq(reply.asked, "");
        ck_assert_uint_eq(reply.canary_seconds, 0);
        ck_assert_int_eq(rollout_reply_host(words, ELEMENTSOF(words), 0, &host), 0);
        ck_assert_str_eq(host.name, "??");
}

TEST(a_number_later_than_the_clock_and_a_slack_is_not_believed)
{
        struct rollout_reply reply = {.id = "x", .now_seconds = 1800000000};

        ck_assert(!rollout_is_believed(&reply));
        reply.number = reply.now_seconds + ROLLOUT_SLACK_SECONDS;
        ck_assert(rollout_is_believed(&reply));
        ck_assert_uint_eq(rollout_believed(reply.number, &reply), reply.number);
        reply.number++;
        ck_assert(!rollout_is_believed(&reply));
        ck_assert_uint_eq(rollout_believed(reply.number, &reply), 0);
        reply.now_seconds++;
        ck_assert(rollout_is_believed(&reply));
        reply.id[0] = '\0';
        ck_assert(!rollout_is_believed(&reply));
}

TEST(a_signature_is_over_the_place_and_all_that_an_order_carries)
{
        struct rollout_place place = rollout_place("redis://redis/3", NULL, "ns", "g");
        struct rollout_reply reply;

        ck_assert_int_eq(rollout_reply_decode(words, _ROLLOUT_REPLY_MAX, &reply), 0);
        _cleanup_free_ char *begin = rollout_signed_text("begin", &place, &reply);
        ck_assert_str_eq(begin, "begin\nredis:6379\n3\nns\ng\n7\nabc\n10%\n600\n1\n2026\n");
        place = rollout_place("redis://redis", NULL, NULL, "h");
        _cleanup_free_ char *abort = rollout_signed_text("abort", &place, &reply);
        ck_assert_str_eq(abort, "abort\nredis:6379\n0\n\nh\n7\nabc\n10%\n600\n1\n2026\n");
}

TEST(an_order_for_a_redis_of_another_name_is_for_another_place)
{
        static const struct {
                const char *url, *master, *server, *others;
        } cases[] = {
                {"redis://cache.internal:6380/1", NULL, "cache.internal:6380", "CACHE.internal:6380"},
                {"rediss://user:secret@10.0.0.1", NULL, "10.0.0.1:6379", "10.0.0.1:6379"},
                {"redis://[fd00::1]", NULL, "fd00::1:6379", "fd00::1:6379"},
                {"redis://10.0.0.1/2", "main", "sentinel/main", "sentinel/main"},
                /* How other hosts call a Redis on this machine is not known. */
                {"redis://localhost", NULL, "", "cache.internal:6380"},
                {"redis://127.0.0.1:7000", NULL, "", "sentinel/main"},
                {"redis://[::1]", NULL, "", "x"},
                {"unix:///run/redis.sock", NULL, "", "x"},
        };

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                struct rollout_place place = rollout_place(cases[i].url, cases[i].master, NULL, "g");

                ck_assert_str_eq(place.server, cases[i].server);
                ck_assert(rollout_place_is_same(&place, cases[i].others));
                ck_assert(rollout_place_is_same(&place, ""));
                ck_assert_int_eq(rollout_place_is_same(&place, "cache.internal:6379"), i > 3);
        }
}

TEST(what_is_left_follows_from_what_is_done)
{
        const struct rollout_reply rollout = {.age_usec = 100 * USEC_PER_SEC};
        struct rollout_host hosts[] = {
                {.lease = HOST_LEASE_WAITING, .state_usec = 100 * USEC_PER_SEC},
                {.lease = HOST_LEASE_ROLLING, .state_usec = 40 * USEC_PER_SEC},
                {.lease = HOST_LEASE_LOST},
        };

        ck_assert_uint_eq(rollout_reply_left_usec(&rollout, hosts, 3), USEC_INFINITY);
        hosts[2] = (struct rollout_host){.lease = HOST_LEASE_DONE, .state_usec = 40 * USEC_PER_SEC};
        ck_assert_uint_eq(rollout_reply_left_usec(&rollout, hosts, 3), 80 * USEC_PER_SEC);
        hosts[1] = (struct rollout_host){.lease = HOST_LEASE_DONE, .state_usec = 10 * USEC_PER_SEC};
        ck_assert_uint_eq(rollout_reply_left_usec(&rollout, hosts, 3), 35 * USEC_PER_SEC);
        hosts[0].lease = HOST_LEASE_FAILED;
        ck_assert_uint_eq(rollout_reply_left_usec(&rollout, hosts, 3), 0);
}

TEST_MAIN("rollout_reply", .each = {setup, NULL})
