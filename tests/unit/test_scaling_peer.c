/* SPDX-License-Identifier: MIT */
/* Tests of what hosts that scale by the same queues tell each other (autoscaling/scaling_peer_rules.h). */
#include "autoscaling/scaling_peer_rules.h"
#include "unit.h"

static const struct peer_share full = {
        .weight = 8, .busy = 12, .threads = 40, .idle = 3, .queues = "default\0mail\0"};
#define FULL "1 8 12 40 3\0default\0mail\0"

TEST(what_one_writes_another_reads)
{
        char text[PEER_TEXT_MAX + 1];
        struct peer_share share;

        size_t n = peer_encode(&full, text);
        ck_assert_uint_eq(n, sizeof(FULL) - 1);
        ck_assert_int_eq(memcmp(text, FULL, n), 0);
        text[n] = '\0';
        ck_assert_int_eq(peer_decode(text, n, &share), 0);
        ck_assert_uint_eq(share.weight, 8);
        ck_assert_uint_eq(share.busy, 12);
        ck_assert_uint_eq(share.threads, 40);
        ck_assert_uint_eq(share.idle, 3);
        ck_assert_int_eq(memcmp(share.queues, "default\0mail\0", sizeof("default\0mail\0")), 0);
}

TEST(names_beyond_the_bound_are_left_out_all_of_them)
{
        static char names[PEER_TEXT_MAX], text[PEER_TEXT_MAX + 1];
        struct peer_share share = full;
        size_t numbers = sizeof("1 8 12 40 3"), room = PEER_TEXT_MAX - numbers;

        share.queues = names;
        memset(names, 'a', room - 1);
        ck_assert_uint_eq(peer_encode(&share, text), PEER_TEXT_MAX);
        ck_assert_int_eq(peer_decode(text, PEER_TEXT_MAX, &share), 0);
        ck_assert_uint_eq(strlen(share.queues), room - 1);
        share.queues = names;
        names[room - 1] = 'a';
        ck_assert_uint_eq(peer_encode(&share, text), numbers);
        text[numbers] = '\0';
        ck_assert_int_eq(peer_decode(text, numbers, &share), 0);
        ck_assert_str_eq(share.queues, "");
        share.queues = NULL;
        ck_assert_uint_eq(peer_encode(&share, text), numbers);
}

TEST(garbage_is_refused)
{
#define CASE(text)                                                                                           \
        {                                                                                                    \
                text, sizeof(text) - 1                                                                       \
        }
        static const struct {
                const char *text;
                size_t len;
        } cases[] = {
                CASE(""),
                CASE("\0"),
                CASE("1 8 12 40 3"),
                CASE("3 8 12 40 3\0default\0"),
                CASE("x\0default\0"),
                CASE("1 8 12 40\0default\0"),
                CASE("1 8 12 40 3 7\0default\0"),
                CASE("1 8 12 40 3 \0default\0"),
                CASE("1  8 12 40 3\0default\0"),
                CASE(" 1 8 12 40 3\0default\0"),
                CASE("1 -8 12 40 3\0default\0"),
                CASE("1 +8 12 40 3\0default\0"),
                CASE("1 8.5 12 40 3\0default\0"),
                CASE("1 0x8 12 40 3\0default\0"),
                CASE("1 nan 12 40 3\0default\0"),
                CASE("1 4294967296 12 40 3\0default\0"),
                CASE("1 99999999999999999999999999 12 40 3\0default\0"),
                CASE("1 00000000000000000000000000000000000000000000000000000000000000000000000000000008 1 4 "
                     "3\0default\0"),
                CASE("1 8 12 40 3\0default"),
                CASE("1 8 12 40 3\0\0"),
                CASE("1 8 12 40 3\0default\0\0mail\0"),
                CASE("1 8 12 40 3\0default\0\0"),
        };
        struct peer_share share = full;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++)
                ck_assert_msg(peer_decode(cases[i].text, cases[i].len, &share) == -EBADMSG, "case %zu", i);
        ck_assert_ptr_eq(share.queues, full.queues);
        ck_assert_uint_eq(share.weight, 8);
}

TEST(too_much_is_refused_or_capped)
{
        static char text[PEER_TEXT_MAX + 2];
        static const char most[] = "1 4294967295 4294967295 4294967295 4294967295\0default\0";
        size_t numbers = sizeof("1 8 12 40 3");
        struct peer_share share;

        ck_assert_int_eq(peer_decode(most, sizeof(most) - 1, &share), 0);
        ck_assert_uint_eq(share.weight, PEER_WEIGHT_MAX);
        ck_assert_uint_eq(share.busy, PEER_THREADS_MAX);
        ck_assert_uint_eq(share.threads, PEER_THREADS_MAX);
        ck_assert_uint_eq(share.idle, PEER_THREADS_MAX);
        memcpy(text, "1 8 12 40 3", numbers);
        memset(text + numbers, 'a', PEER_TEXT_MAX - numbers);
        ck_assert_int_eq(peer_decode(text, PEER_TEXT_MAX + 1, &share), -EBADMSG);
        for (size_t i = 0; i <= PEER_QUEUES_MAX; i++)
                memcpy(text + numbers + 2 * i, "q", 2);
        ck_assert_int_eq(peer_decode(text, numbers + 2 * PEER_QUEUES_MAX + 2, &share), -EBADMSG);
        text[numbers + 2 * PEER_QUEUES_MAX] = '\0';
        ck_assert_int_eq(peer_decode(text, numbers + 2 * PEER_QUEUES_MAX, &share), 0);
}

static void add_at(struct peers *peers, const char *host, const char *weight, usec_t now)
{
        char text[64];
        int n = snprintf(text, sizeof(text), "1 %s 0 0 0", weight);

        memcpy(text + n, "\0q\0", sizeof("\0q\0"));
        ck_assert_int_eq(peers_add(peers, host, text, (size_t)n + 3, now), 0);
}

static void add(struct peers *peers, const char *host, const char *weight)
{
        add_at(peers, host, weight, USEC_PER_MIN);
}

TEST(hosts_are_found_by_name_and_those_that_cannot_be_read_are_none)
{
        struct peers peers = {0};

        ck_assert_ptr_null(peers_find(&peers, "a"));
        add(&peers, "c", "3");
        add(&peers, "a", "1");
        add(&peers, "x", "nonsense");
        add(&peers, "b", "2");
        peers_sort(&peers);
        ck_assert_uint_eq(peers.n, 3);
        ck_assert_uint_eq(peers_find(&peers, "a")->share.weight, 1);
        ck_assert_uint_eq(peers_find(&peers, "c")->share.weight, 3);
        ck_assert_str_eq(peers_find(&peers, "b")->share.queues, "q");
        ck_assert_ptr_null(peers_find(&peers, "x"));
        peers_clear(&peers);
        ck_assert_uint_eq(peers.n, 0);
}

TEST(of_those_that_are_kept_the_newer_word_counts)
{
        struct peers peers = {0}, before = {0};

        add(&before, "b", "7");
        add(&before, "c", "8");
        peers_sort(&before);
        add(&peers, "d", "1");
        add(&peers, "b", "2");
        peers_sort(&peers);
        ck_assert_int_eq(peers_keep(&peers, &before, 0, 9), 0);
        ck_assert_uint_eq(before.n, 0);
        ck_assert_uint_eq(peers.n, 3);
        ck_assert_uint_eq(peers_find(&peers, "b")->share.weight, 2);
        ck_assert_uint_eq(peers_find(&peers, "c")->share.weight, 8);
        ck_assert_uint_eq(peers_find(&peers, "d")->share.weight, 1);
        peers_clear(&peers);
}

TEST(of_those_that_are_kept_none_is_old_and_there_are_not_many)
{
        struct peers peers = {0}, before = {0};

        add_at(&before, "a", "1", USEC_PER_MIN - 1);
        add_at(&before, "b", "2", USEC_PER_MIN);
        add_at(&before, "c", "3", USEC_PER_HOUR);
        peers_sort(&before);
        add(&peers, "d", "4");
        ck_assert_int_eq(peers_keep(&peers, &before, USEC_PER_MIN, 2), 0);
        ck_assert_uint_eq(before.n, 0);
        ck_assert_uint_eq(peers.n, 2);
        ck_assert_ptr_nonnull(peers_find(&peers, "b"));
        /* It is as old as it was. */
        struct peers after = {0};
        ck_assert_int_eq(peers_keep(&after, &peers, USEC_PER_MIN + 1, 9), 0);
        ck_assert_uint_eq(after.n, 0);
}

TEST_MAIN("peer")
