/* SPDX-License-Identifier: MIT */
/* Is a heartbeat given to the worker that it belongs to, and to no other? */
/* promises: P1 */
#include "model/match.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

#define OLD "vm:100:aaaaaaaaaaaa"
#define NEW "vm:100:bbbbbbbbbbbb"

static struct match match;
static int owner, other; /* addresses stand for workers */

static void teardown(void)
{
        match_clear(&match);
}

static void scan(usec_t at, const char *first, const char *second)
{
        match_scan_begin(&match, at);
        if (first)
                ck_assert_int_eq(match_scan_add(&match, first, strlen(first), 100), 0);
        if (second)
                ck_assert_int_eq(match_scan_add(&match, second, strlen(second), 100), 0);
        match_scan_end(&match);
}

static bool has(const char *identity)
{
        for (size_t i = 0; i < match.n_candidates; i++)
                if (strcmp(match.candidates[i]->identity, identity) == 0)
                        return true;
        return false;
}

/* One that is there. */
static struct candidate *find(const char *identity)
{
        size_t i = 0;

        ck_assert(has(identity));
        while (strcmp(match.candidates[i]->identity, identity) != 0)
                i++;
        return match.candidates[i];
}

static void own(const char *identity)
{
        find(identity)->owner = &owner;
        find(identity)->resolved = true;
}

static void beat_of(const char *identity, uint64_t beat_usec, usec_t now)
{
        struct heartbeat beat = {.beat_usec = beat_usec};

        find(identity)->asked_at = now;
        match_read(find(identity), beat_usec ? &beat : NULL, now);
}

static const char *decided(usec_t spawned_at)
{
        struct candidate *candidate = match_decide(&match, &owner, spawned_at);
        return candidate ? candidate->identity : "none";
}

START_TEST(takes_an_identity_that_appeared_after_the_spawn)
{
        scan(10, NULL, NULL);
        scan(30, NEW, NULL);
        own(NEW);
        ck_assert_str_eq(decided(10), "none"); /* no heartbeat was read yet */
        beat_of(NEW, 1000, 30);
        ck_assert_str_eq(decided(10), NEW);
        ck_assert_str_eq(decided(5), NEW);
        ck_assert_str_eq(decided(11), "none"); /* it may have come between the scan at 10 and the spawn */
}
END_TEST

START_TEST(distrusts_what_the_first_scan_finds_until_its_beat_changes)
{
        scan(30, OLD, NULL);
        own(OLD);
        beat_of(OLD, 1000, 30);
        ck_assert_str_eq(decided(10), "none");
        beat_of(OLD, 1000, 40);
        ck_assert_str_eq(decided(10), "none");
        beat_of(OLD, 2000, 50);
        ck_assert_str_eq(decided(10), OLD);
}
END_TEST

START_TEST(distrusts_everything_new_after_a_reconnect)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NULL);
        match_connected(&match);
        scan(30, OLD, NEW);
        own(OLD);
        own(NEW);
        beat_of(OLD, 1000, 30);
        beat_of(NEW, 1000, 30);
        ck_assert_str_eq(decided(5), "none");
        beat_of(NEW, 2000, 40);
        ck_assert_str_eq(decided(5), NEW);
}
END_TEST

START_TEST(distrusts_a_change_that_began_before_the_spawn)
{
        scan(10, OLD, NULL);
        own(OLD);
        beat_of(OLD, 1000, 10);
        beat_of(OLD, 2000, 30); /* its last beat, written before it died; then its pid was used again at 20 */
        ck_assert_str_eq(decided(20), "none");
        beat_of(OLD, 3000, 40);
        ck_assert_str_eq(decided(20), OLD);
}
END_TEST

START_TEST(prefers_the_identity_whose_beat_changes)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NEW);
        own(OLD);
        own(NEW);
        beat_of(OLD, 1000, 20);
        beat_of(NEW, 1000, 20);
        ck_assert_str_eq(decided(5), "none"); /* nobody can tell */
        beat_of(NEW, 2000, 30);
        ck_assert_str_eq(decided(5), NEW);
        beat_of(OLD, 2000, 40);
        ck_assert_str_eq(decided(5), OLD);
        beat_of(NEW, 3000, 50);
        beat_of(OLD, 3000, 50);
        ck_assert_str_ne(decided(5), "none"); /* both are alive: either will do */
}
END_TEST

START_TEST(prefers_the_later_of_two_that_appeared)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NULL);
        scan(30, OLD, NEW);
        own(OLD);
        own(NEW);
        beat_of(OLD, 1000, 30);
        beat_of(NEW, 1000, 30);
        ck_assert_str_eq(decided(5), NEW);
}
END_TEST

START_TEST(ignores_one_whose_heartbeat_is_gone)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NULL);
        own(OLD);
        beat_of(OLD, 1000, 20);
        beat_of(OLD, 0, 30);
        ck_assert_str_eq(decided(5), "none");
        beat_of(OLD, 1000, 40);
        ck_assert_str_eq(decided(5), OLD);
        ck_assert_uint_eq(find(OLD)->changed_at, 0); /* the same beat again is no change */
}
END_TEST

START_TEST(ignores_what_belongs_to_others)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NEW);
        find(OLD)->owner = &other;
        beat_of(OLD, 1000, 20);
        beat_of(NEW, 1000, 20);
        ck_assert_str_eq(decided(5), "none");
}
END_TEST

START_TEST(forgets_what_later_scans_do_not_find)
{
        scan(10, OLD, NEW);
        scan(20, NEW, NEW);
        ck_assert_uint_eq(match.n_candidates, 1);
        ck_assert(has(NEW));
        match_scan_begin(&match, 30); /* and breaks off */
        ck_assert_uint_eq(match.n_candidates, 1);
        scan(40, NULL, NULL);
        ck_assert_uint_eq(match.n_candidates, 0);
}
END_TEST

START_TEST(wants_a_change_of_one_whose_process_ended)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NULL);
        own(OLD);
        beat_of(OLD, 1000, 20);
        match_distrust(&match, NEW);
        ck_assert_str_eq(decided(5), OLD);
        match_distrust(&match, OLD);
        ck_assert_str_eq(decided(5), "none");
        beat_of(OLD, 1000, 30);
        ck_assert_str_eq(decided(5), "none");
        beat_of(OLD, 2000, 40);
        ck_assert_str_eq(decided(5), OLD);
}
END_TEST

START_TEST(looks_for_owners_anew_when_workers_come_and_go)
{
        scan(10, OLD, NEW);
        own(OLD);
        find(NEW)->resolved = true;
        match_owner_added(&match);
        ck_assert(find(OLD)->resolved);
        ck_assert(!find(NEW)->resolved);
        find(NEW)->resolved = true;
        match_owner_removed(&match, &owner);
        ck_assert_ptr_null(find(OLD)->owner);
        ck_assert(!find(OLD)->resolved);
        ck_assert(find(NEW)->resolved);
}
END_TEST

START_TEST(asks_the_longest_unasked_first)
{
        scan(10, OLD, NEW);
        own(OLD);
        own(NEW);
        find(OLD)->asked_at = 20;
        ck_assert_ptr_eq(match_next_unasked(&match, &owner, 30, NULL), find(NEW));
        find(NEW)->asked_at = 30;
        ck_assert_ptr_eq(match_next_unasked(&match, &owner, 30, NULL), find(OLD));
        ck_assert_ptr_null(match_next_unasked(&match, &owner, 30, OLD));
        ck_assert_ptr_null(match_next_unasked(&match, &owner, 20, NULL));
        ck_assert_ptr_null(match_next_unasked(&match, &other, 99, NULL));
}
END_TEST

START_TEST(keeps_many_apart)
{
        char identity[64];

        for (int round = 0; round < 2; round++) {
                match_scan_begin(&match, 10);
                for (int i = 0; i < 500; i++) {
                        int len = sprintf(identity, "vm:%d:%012x", i * 7919 % 500 + 1, (unsigned)i);
                        identity[len] = '!'; /* what follows is not its own */
                        ck_assert_int_eq(match_scan_add(&match, identity, (size_t)len, i), 0);
                }
                match_scan_end(&match);
                ck_assert_uint_eq(match.n_candidates, 500);
        }
        for (size_t i = 1; i < match.n_candidates; i++)
                ck_assert_int_lt(strcmp(match.candidates[i - 1]->identity, match.candidates[i]->identity), 0);
        ck_assert_int_eq(match_scan_add(&match, "vm:1", 4, 1), 0); /* the beginning of others is another */
        ck_assert_uint_eq(match.n_candidates, 501);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("match");
        TCase *tcase = tcase_create("match");

        tcase_add_checked_fixture(tcase, NULL, teardown);
        tcase_add_test(tcase, takes_an_identity_that_appeared_after_the_spawn);
        tcase_add_test(tcase, distrusts_what_the_first_scan_finds_until_its_beat_changes);
        tcase_add_test(tcase, distrusts_everything_new_after_a_reconnect);
        tcase_add_test(tcase, distrusts_a_change_that_began_before_the_spawn);
        tcase_add_test(tcase, prefers_the_identity_whose_beat_changes);
        tcase_add_test(tcase, prefers_the_later_of_two_that_appeared);
        tcase_add_test(tcase, ignores_one_whose_heartbeat_is_gone);
        tcase_add_test(tcase, ignores_what_belongs_to_others);
        tcase_add_test(tcase, forgets_what_later_scans_do_not_find);
        tcase_add_test(tcase, wants_a_change_of_one_whose_process_ended);
        tcase_add_test(tcase, looks_for_owners_anew_when_workers_come_and_go);
        tcase_add_test(tcase, asks_the_longest_unasked_first);
        tcase_add_test(tcase, keeps_many_apart);
        suite_add_tcase(suite, tcase);
        return unit_main(suite);
}
