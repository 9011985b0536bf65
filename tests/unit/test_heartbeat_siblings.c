/* SPDX-License-Identifier: MIT */
/* Are heartbeats of a worker's descendants found, and those beside its own? Run against a real redis-server.
 */
/* promises: P5 */
#include "heartbeats_bench.h"

static usec_t skipped; /* of the time that passes */

usec_t __real_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock);
usec_t __wrap_clock_now(clockid_t clock)
{
        return __real_clock_now(clock) + skipped;
}

static void find_a_descendant(void)
{
        spawn(0);
        spawn(1);
        descendant = getpid();
        (void)look(2, POLL_HEARTBEAT);
        server_do("SADD processes " HOST ":%d:aaaaaaaaaaaa", (int)descendant);
        server_do("HSET " HOST ":%d:aaaaaaaaaaaa busy 0 beat 1795238801.5 quiet false", (int)descendant);
        poll_until_found(1);
        ck_assert_int_eq(reported[0].heartbeat_pid, descendant);
        ck_assert_uint_eq(reported[1].identities, 0);
        ck_assert_ptr_null(slots[0]->info);
}

TEST(finds_a_worker_that_heartbeats_as_a_descendant)
{
        find_a_descendant();
}

static void heartbeat_beside(const char *heartbeat)
{
        server_do("SADD processes " HOST ":%d:bbbbbbbbbbbb", (int)descendant);
        server_do("HSET " HOST ":%d:bbbbbbbbbbbb busy 0 beat %s quiet false", (int)descendant, heartbeat);
}

TEST(reports_what_else_of_a_worker_heartbeats)
{
        char text[64];
        pid_t pid = 0;

        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        heartbeat_as(0, 1, "1795238801.5", 0, false);
        poll_until_found(1);
        descendant = getpid();
        heartbeat_beside("1795238801.5");
        while (reported[0].siblings_polled == 0)
                (void)look(1, POLL_HEARTBEAT | POLL_SIBLINGS);
        /* It may be the last word of one that is dead. */
        ck_assert_int_eq(reported[0].other, 0);
        ck_assert_ptr_null(heartbeats_take_another(slots[0], &pid));
        unsigned scans = calls_of("sscan");
        heartbeat_beside("1795238802.5");
        (void)look(1, POLL_HEARTBEAT | POLL_SIBLINGS);
        ck_assert_int_eq(reported[0].other, descendant);
        ck_assert_uint_eq(calls_of("sscan"), scans);
        snprintf(text, sizeof(text), HOST ":%d:bbbbbbbbbbbb", (int)descendant);
        char *identity = heartbeats_take_another(slots[0], &pid);
        ck_assert_str_eq(identity, text);
        ck_assert_int_eq(pid, descendant);
        free(identity);
        ck_assert_ptr_null(heartbeats_take_another(slots[0], &pid));
        (void)look(1, POLL_HEARTBEAT | POLL_SIBLINGS);
        ck_assert_int_eq(reported[0].other, 0);
}

TEST(reports_what_begins_to_heartbeat_after_the_first_walk)
{
        spawn(0);
        (void)look(1, POLL_HEARTBEAT);
        heartbeat_as(0, 1, "1795238801.5", 0, false);
        poll_until_found(1);
        while (reported[0].siblings_polled == 0)
                (void)look(1, POLL_HEARTBEAT | POLL_SIBLINGS);
        unsigned scans = calls_of("sscan");
        descendant = getpid();
        heartbeat_beside("1795238801.5");
        (void)look(1, POLL_HEARTBEAT | POLL_SIBLINGS);
        ck_assert_uint_eq(calls_of("sscan"), scans);
        for (unsigned i = 0; i < 2; i++) {
                skipped += 16 * USEC_PER_SEC;
                heartbeat_as(0, 1, i == 0 ? "1795238802.5" : "1795238803.5", 0, false);
                (void)look(1, POLL_HEARTBEAT);
        }
        ck_assert_uint_eq(calls_of("sscan"), scans);
        while (calls_of("sscan") == scans)
                (void)look(1, POLL_HEARTBEAT | POLL_SIBLINGS);
        heartbeat_beside("1795238802.5");
        (void)look(1, POLL_HEARTBEAT | POLL_SIBLINGS);
        ck_assert_int_eq(reported[0].other, descendant);
}

/* What was no answer is asked for again. */
TEST(finds_a_descendant_once_there_are_descriptors_to_ask_with)
{
        short_of_descriptors = 3;
        find_a_descendant();
        ck_assert_uint_eq(short_of_descriptors, 0);
}

TEST_MAIN("beats_others", .each = {setup, teardown}, .once = {server_directory_make, server_directory_remove},
          .is_missing = server_is_missing)
