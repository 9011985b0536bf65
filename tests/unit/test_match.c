/* SPDX-License-Identifier: MIT */
/* Is a heartbeat given to the worker that it belongs to, and to no other? */
/* promises: P1 P9 */
#include "observe/match.h"
#include "unit.h"
#include <stdio.h>
#include <string.h>

#define OLD   "vm:100:aaaaaaaaaaaa"
#define NEW   "vm:100:bbbbbbbbbbbb"
#define BELOW "vm:101:dddddddddddd" /* a process below */

#define STALE 100

static struct match match;
static int owner, other; /* addresses stand for workers */
static pid_t except;
static usec_t doubt_at;
static bool born; /* what is read next was registered by its process */

static void setup(void)
{
        ck_assert_int_eq(match_host_is(&match, "vm", 1), 0);
}

static void teardown(void)
{
        match_clear(&match);
        except = 0;
        doubt_at = 0;
        born = false;
}

/* All are of pid 100 but the one below. */
static void add(const char *identity, usec_t at)
{
        const struct match_found found = {
                .identity = identity,
                .len = strlen(identity),
                .host_len = strcspn(identity, ":"),
                .pid = strcmp(identity, BELOW) == 0 ? 101 : 100,
        };

        ck_assert_int_eq(match_scan_add(&match, &found, at), 0);
}

static void scan(usec_t at, const char *first, const char *second)
{
        match_scan_begin(&match, at);
        if (first)
                add(first, at);
        if (second)
                add(second, at);
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

static void heartbeat_of(const char *identity, uint64_t sent_usec, usec_t now)
{
        struct heartbeat heartbeat = {.sent_usec = sent_usec};

        find(identity)->asked_at = now;
        match_read(find(identity), sent_usec ? &heartbeat : NULL, born, now);
}

/* Every ten, up to until. */
static void both_heartbeat(const char *first, const char *second, usec_t at, usec_t until)
{
        for (; at < until; at += 10) {
                heartbeat_of(first, 1000 + at, at);
                heartbeat_of(second, 1000 + at, at);
        }
}

static const char *decided_since(usec_t spawned_at, usec_t since)
{
        const struct match_claim claim = {
                .owner = &owner,
                .spawned_at = spawned_at,
                .since = since,
                .except = except,
                .stale_usec = STALE,
                .doubt_at = doubt_at,
        };
        bool ambiguous;
        struct candidate *candidate = match_decide(&match, &claim, &ambiguous);

        ck_assert(!candidate || !ambiguous);
        return candidate ? candidate->identity : ambiguous ? "ambiguous" : "none";
}

static const char *decided(usec_t spawned_at)
{
        return decided_since(spawned_at, spawned_at);
}

/* Finds what belongs to the worker. */
static void scan_own(usec_t at, const char *first, const char *second)
{
        scan(at, first, second);
        own(first);
        if (second)
                own(second);
}

/* Finds at 20 what a scan at 10 has not found. */
static void appear(const char *first, const char *second)
{
        scan(10, NULL, NULL);
        scan_own(20, first, second);
}

/* A reading of one, and what is decided then of a worker spawned at 5. */
#define reads(identity_, sent_usec, now, expected)                                                           \
        do {                                                                                                 \
                heartbeat_of(identity_, sent_usec, now);                                                     \
                ck_assert_str_eq(decided(5), expected);                                                      \
        } while (0)

/* The same of OLD and NEW. */
#define reads_both(old_usec, new_usec, now, expected)                                                        \
        do {                                                                                                 \
                heartbeat_of(OLD, old_usec, now);                                                            \
                reads(NEW, new_usec, now, expected);                                                         \
        } while (0)

TEST(more_identities_than_any_host_has_are_refused)
{
        char identity[64];

        match_scan_begin(&match, 1);
        for (unsigned i = 0; i <= MATCH_CANDIDATES_MAX; i++) {
                int n = snprintf(identity, sizeof(identity), "vm:%u:0123456789ab", i + 1);
                const struct match_found found = {.identity = identity,
                                                  .len = (size_t)n,
                                                  .host_len = strlen("vm"),
                                                  .pid = (pid_t)i + 1};

                ck_assert_int_eq(match_scan_add(&match, &found, 1), i < MATCH_CANDIDATES_MAX ? 0 : -E2BIG);
        }
}

TEST(takes_an_identity_that_appeared_after_the_spawn)
{
        scan(10, NULL, NULL);
        scan_own(30, NEW, NULL);
        ck_assert_str_eq(decided(10), "none"); /* no heartbeat was read yet */
        heartbeat_of(NEW, 1000, 30);
        ck_assert_str_eq(decided(10), NEW);
        ck_assert_str_eq(decided(5), NEW);
        ck_assert_str_eq(decided(11), "none"); /* it may have come between the scan at 10 and the spawn */
}

TEST(distrusts_what_the_first_scan_finds_until_its_heartbeat_changes)
{
        scan_own(30, OLD, NULL);
        heartbeat_of(OLD, 1000, 30);
        ck_assert_str_eq(decided(10), "none");
        heartbeat_of(OLD, 1000, 40);
        ck_assert_str_eq(decided(10), "none");
        heartbeat_of(OLD, 2000, 50);
        ck_assert_str_eq(decided(10), OLD);
}

TEST(distrusts_everything_new_after_a_reconnect)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NULL);
        match_connected(&match, 25);
        scan_own(30, BELOW, NEW);
        heartbeat_of(BELOW, 1000, 30);
        reads(NEW, 1000, 30, "none");
        reads(NEW, 2000, 40, NEW);
}

TEST(distrusts_a_change_that_began_before_its_process_ended)
{
        scan_own(10, OLD, NULL);
        heartbeat_of(OLD, 1000, 10);
        heartbeat_of(OLD, 2000, 30); /* its last beat, written before it died at 20 */
        ck_assert_str_eq(decided_since(5, 20), "none");
        heartbeat_of(OLD, 3000, 40);
        ck_assert_str_eq(decided_since(5, 20), OLD);
}

/* An idle RQ worker that no scan came in time for. */
TEST(takes_what_its_process_registered_once_a_later_scan_finds_no_other)
{
        scan_own(30, OLD, NULL);
        born = true;
        reads(OLD, 1000, 31, "none"); /* the scan is older: its own may have come since */
        scan(31, OLD, NULL);
        ck_assert_str_eq(decided(5), OLD);
        ck_assert_str_eq(decided_since(5, 31), OLD);
        ck_assert_str_eq(decided_since(5, 32), "none"); /* a process that has ended since */
        match_distrust(&match, OLD);
        ck_assert_str_eq(decided(5), "none");
}

TEST(what_its_process_registered_is_asked_again_after_each_doubt)
{
        scan_own(30, OLD, NULL);
        born = true;
        heartbeat_of(OLD, 1000, 31);
        born = false; /* as when the clock has been stepped back */
        heartbeat_of(OLD, 1000, 41);
        scan(42, OLD, NULL);
        ck_assert_str_eq(decided(5), "none");
        born = true;
        reads(OLD, 1000, 43, "none");
        match_connected(&match, 44);
        ck_assert_str_eq(decided(5), "none");
        scan(45, OLD, NULL);
        ck_assert_str_eq(decided(5), OLD);
        heartbeat_of(OLD, 0, 46);
        ck_assert_str_eq(decided(5), "none");
}

/* Another host of this name has one of this pid, which may have registered since, too. */
TEST(takes_none_of_two_that_were_registered_since)
{
        scan_own(30, OLD, NULL);
        born = true;
        heartbeat_of(OLD, 1000, 31);
        scan_own(40, OLD, NEW);
        ck_assert_str_eq(decided(5), "none");
        reads(NEW, 1000, 41, "none");
        scan(50, OLD, NEW);
        ck_assert_str_eq(decided(5), "none");
        reads(NEW, 0, 51, "none"); /* its heartbeat is gone, its identity is not */
        scan(60, OLD, NULL);
        ck_assert_str_eq(decided(5), OLD);
}

/* Two hosts of one name have processes of one pid, and one Redis. */
TEST(takes_none_of_two_that_heartbeat)
{
        appear(OLD, NEW);
        reads(OLD, 1000, 20, "none"); /* of the other nothing is known yet */
        reads(NEW, 1000, 20, "none"); /* either may be a dead one's */
        reads(NEW, 2000, 30, "none");
        reads(OLD, 2000, 40, "ambiguous");
        heartbeat_of(NEW, 3000, 50);
        reads(OLD, 3000, 50, "ambiguous");
}

TEST(takes_the_one_that_heartbeats_on)
{
        appear(OLD, NEW);
        heartbeat_of(OLD, 1000, 20);
        heartbeat_of(NEW, 1000, 20);
        reads_both(1000, 2000, 30, "none");
        heartbeat_of(NEW, 3000, 20 + STALE);
        reads(OLD, 1000, 20 + STALE, "none");
        reads_both(1000, 3000, 500, "none");
        match_connected(&match, 600); /* what was away then identifies neither */
        reads(NEW, 4000, 610, "none");
        reads(NEW, 5000, 601 + STALE, NEW);
}

/* Both have sent heartbeats since the worker is there. It may be the silent one, which hangs. */
TEST(takes_none_for_ended_that_has_sent_heartbeats_since)
{
        appear(OLD, NEW);
        both_heartbeat(OLD, NEW, 20, 50);
        reads(NEW, 3000, 100 + STALE, "ambiguous");
        reads(NEW, 4000, 100 * STALE, "ambiguous");
        scan(101 * STALE, NULL, NEW);
        ck_assert_str_eq(decided(5), NEW);
}

/* The machine was paused, and ours with it: another host's process beat on meanwhile. */
TEST(takes_none_for_ended_that_may_have_slept)
{
        appear(OLD, NEW);
        heartbeat_of(OLD, 1000, 20);
        heartbeat_of(NEW, 1000, 20);
        usec_t woken = 1000;
        heartbeat_of(OLD, 1000, woken);
        find(NEW)->asked_at = 50; /* an answer that waited all the while */
        match_read(find(NEW), &(struct heartbeat){.sent_usec = 2000}, false, woken);
        ck_assert_str_eq(decided(5), "none");
        doubt_at = woken;
        reads_both(1000, 3000, woken + STALE, "none");
        reads(NEW, 4000, woken + STALE + 1, NEW);
}

/* That is no sign of life, and none that it has ended. */
TEST(takes_none_for_ended_whose_clock_went_back)
{
        scan_own(10, OLD, NEW);
        heartbeat_of(OLD, 9000, 10);
        heartbeat_of(NEW, 1000, 10);
        heartbeat_of(OLD, 2000, STALE);
        reads(NEW, 2000, 11 + STALE, "none");
        reads_both(2000, 3000, 2 * STALE, "none");
        reads(NEW, 4000, 1 + 2 * STALE, NEW);
}

TEST(takes_the_one_that_is_left)
{
        scan_own(10, OLD, NEW);
        both_heartbeat(OLD, NEW, 10, 40);
        ck_assert_str_eq(decided(5), "ambiguous");
        scan(40, NULL, NEW);
        ck_assert_str_eq(decided(5), NEW);
}

TEST(waits_for_no_heartbeat_that_has_long_gone)
{
        scan(10, OLD, NULL);
        scan_own(20, OLD, NEW);
        reads(NEW, 1000, 30, "none");
        reads(OLD, 0, 30, NEW);
}

/* As after an adoption: the worker itself may be the one that is silent. */
TEST(waits_for_the_heartbeat_of_one_that_was_there_at_the_first_scan)
{
        scan_own(10, OLD, NEW);
        reads_both(0, 1000, 20, "none");
        reads(NEW, 2000, 10 + STALE, "none");
        reads(NEW, 3000, 11 + STALE, NEW);
}

TEST(waits_for_the_heartbeat_of_one_that_came_of_late)
{
        appear(OLD, NEW);
        reads_both(0, 1000, 20, "none");
        reads(NEW, 2000, 21 + STALE, NEW);
}

/* No heartbeat could be read for a while, as those of a replica that lags: one that is there when they can be
 * may be the last one of a process that has ended. */
TEST(waits_for_a_change_where_the_other_has_no_heartbeat)
{
        appear(OLD, NEW);
        reads_both(0, 1000, 21 + STALE, "none");
        reads(NEW, 1000, 30 + STALE, "none");
        reads(NEW, 2000, 40 + STALE, NEW);
}

TEST(prefers_the_process_whose_heartbeat_changes)
{
        appear(OLD, BELOW);
        heartbeat_of(OLD, 1000, 20);
        reads(BELOW, 1000, 20, "none"); /* nobody can tell */
        reads(BELOW, 2000, 30, BELOW);
        reads(OLD, 2000, 40, OLD);
        heartbeat_of(BELOW, 3000, 50);
        heartbeat_of(OLD, 3000, 50);
        ck_assert_str_ne(decided(5), "none"); /* both are alive: either will do */
        except = 100;
        ck_assert_str_eq(decided(5), BELOW);
}

TEST(prefers_the_later_process_of_two_that_appeared)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NULL);
        scan_own(30, OLD, BELOW);
        heartbeat_of(OLD, 1000, 30);
        reads(BELOW, 1000, 30, BELOW);
}

TEST(takes_none_that_was_there_before_the_worker)
{
        scan_own(10, OLD, NULL);
        heartbeat_of(OLD, 1000, 30);
        heartbeat_of(OLD, 2000, 40);
        ck_assert_str_eq(decided(11), "none"); /* of a process that had its pid, or has it on another host */
        ck_assert_str_eq(decided(10), OLD);
        scan(50, OLD, NEW);
        own(NEW);
        heartbeat_of(NEW, 1000, 50);
        heartbeat_of(OLD, 3000, 51);
        ck_assert_str_eq(decided(11), "none");
        heartbeat_of(NEW, 2000, 60);
        ck_assert_str_eq(decided(11), NEW);
}

TEST(takes_none_that_was_there_before_its_process_had_booted)
{
        scan_own(10, OLD, BELOW);
        match_unbooted(&match, &owner, 100, true);
        heartbeat_of(OLD, 1000, 10);
        reads(OLD, 2000, 20, "none");
        ck_assert_ptr_eq(match_next_unasked(&match, &owner, 30, NULL), find(BELOW));
        scan(30, OLD, NEW);
        own(NEW);
        heartbeat_of(NEW, 1000, 30);
        heartbeat_of(NEW, 2000, 40);
        reads(OLD, 3000, 50, NEW);
        match_owner_removed(&match, &owner); /* the next worker of that pid looks for itself */
        ck_assert(!find(OLD)->foreign);
}

TEST_LOOP(takes_one_from_before_its_boot_that_appeared_and_changed_for_long, 2)
{
        if (_i == 0)
                scan_own(20, OLD, NULL);
        else
                appear(OLD, NULL);
        match_unbooted(&match, &owner, 100, false);
        reads(OLD, 1000, 30, "none");
        reads(OLD, 2000, 40, "none");
        reads(OLD, 3000, 20 + BIRTH_UNSEEN_BOOT_USEC, _i == 0 ? "none" : OLD);
}

TEST(names_each_process_that_may_heartbeat)
{
        size_t at = 0;

        scan(10, OLD, BELOW);
        scan_own(20, OLD, BELOW);
        ck_assert_int_eq(match_pid(&match, &owner, &at), 100);
        match_unbooted(&match, &owner, 100, true);
        ck_assert_int_eq(match_pid(&match, &owner, &at), 101);
        ck_assert_int_eq(match_pid(&match, &owner, &at), 0);
        at = 0;
        ck_assert_int_eq(match_pid(&match, &owner, &at), 101);
        at = 0;
        ck_assert_int_eq(match_pid(&match, &other, &at), 0);
}

/* Its clock went back by an hour, and then forward by a day: neither says whose it is. */
TEST(knows_it_by_any_clock)
{
        appear(NEW, NULL);
        heartbeat_of(NEW, 10000, 20);
        reads(NEW, 5000, 30, NEW);
        heartbeat_of(NEW, 5001, 40);
        ck_assert_uint_eq(find(NEW)->changed_at, 40);
        reads(NEW, 90000, 50, NEW);
}

TEST(ignores_one_whose_heartbeat_is_gone)
{
        appear(OLD, NULL);
        heartbeat_of(OLD, 1000, 20);
        reads(OLD, 0, 30, "none");
        reads(OLD, 1000, 40, OLD);
        ck_assert_uint_eq(find(OLD)->changed_at, 0); /* an equal heartbeat is no change */
}

TEST(ignores_what_belongs_to_others)
{
        scan(10, NULL, NULL);
        scan(20, OLD, NEW);
        find(OLD)->owner = &other;
        reads_both(1000, 1000, 20, "none");
}

TEST(forgets_what_later_scans_do_not_find)
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

TEST(wants_a_change_of_one_whose_process_ended)
{
        appear(OLD, NULL);
        heartbeat_of(OLD, 1000, 20);
        match_distrust(&match, NEW);
        ck_assert_str_eq(decided(5), OLD);
        match_distrust(&match, OLD);
        ck_assert_str_eq(decided(5), "none");
        heartbeat_of(OLD, 1500, 30); /* its last one, written since it was known */
        ck_assert_str_eq(decided_since(5, 25), "none");
        heartbeat_of(OLD, 1500, 35);
        ck_assert_str_eq(decided_since(5, 25), "none");
        heartbeat_of(OLD, 2000, 40);
        ck_assert_str_eq(decided_since(5, 25), OLD);
}

TEST(looks_for_owners_anew_when_workers_come_and_go)
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

TEST(asks_the_longest_unasked_first)
{
        scan_own(10, OLD, NEW);
        find(OLD)->asked_at = 20;
        ck_assert_ptr_eq(match_next_unasked(&match, &owner, 30, NULL), find(NEW));
        find(NEW)->asked_at = 30;
        ck_assert_ptr_eq(match_next_unasked(&match, &owner, 30, NULL), find(OLD));
        ck_assert_ptr_null(match_next_unasked(&match, &owner, 30, OLD));
        ck_assert_ptr_null(match_next_unasked(&match, &owner, 20, NULL));
        ck_assert_ptr_null(match_next_unasked(&match, &other, 99, NULL));
}

TEST(keeps_many_apart)
{
        char identity[64];

        for (int round = 0; round < 2; round++) {
                match_scan_begin(&match, 10);
                for (int i = 0; i < 500; i++) {
                        int len = sprintf(identity, "vm:%d:%012x", i * 7919 % 500 + 1, (unsigned)i);
                        identity[len] = '!'; /* what follows is not its own */
                        const struct match_found found = {identity, (size_t)len, 2, i};
                        ck_assert_int_eq(match_scan_add(&match, &found, 10), 0);
                }
                match_scan_end(&match);
                ck_assert_uint_eq(match.n_candidates, 500);
        }
        for (size_t i = 1; i < match.n_candidates; i++)
                ck_assert_int_lt(strcmp(match.candidates[i - 1]->identity, match.candidates[i]->identity), 0);
        const struct match_found found = {"vm:1", 4, 2, 1};
        ck_assert_int_eq(match_scan_add(&match, &found, 10), 0); /* the beginning of others is another */
        ck_assert_uint_eq(match.n_candidates, 501);
}

/* The names that a scan looks for, one behind the other. */
static const char *scanned(usec_t at)
{
        static char names[256];
        const char *name;
        size_t place = 0;

        names[0] = '\0';
        match_scan_begin(&match, at);
        while ((name = match_scan_host(&match, &place)))
                sprintf(names + strlen(names), "%s ", name);
        match_scan_end(&match);
        return names;
}

TEST(looks_for_each_name_that_a_worker_may_have)
{
        ck_assert_str_eq(scanned(10), "vm ");
        ck_assert_int_eq(match_host_is(&match, "web", 20), 0);
        ck_assert_str_eq(scanned(30), "vm web ");
        ck_assert_int_eq(match_host_was(&match, "image:7", 5, 30), 0);
        ck_assert_int_eq(match_host_was(&match, "web", 3, 30), 0);
        ck_assert_str_eq(scanned(40), "vm web image ");
        match_hosts_forget(&match, 19);
        ck_assert_str_eq(scanned(50), "vm web image ");
        match_hosts_forget(&match, 20);
        ck_assert_str_eq(scanned(60), "web image ");
        match_hosts_forget(&match, 100);
        ck_assert_str_eq(scanned(70), "web ");
}

#define WEB "web:100:cccccccccccc"

/* What a worker beats under that has not been found is known to the next sqmgr, too: what another host's
 * process of its pid writes is not all that is seen. */
TEST(hands_on_each_name_that_a_worker_may_have)
{
        char names[MATCH_HOSTS_TEXT_MAX], more[MATCH_HOSTS_TEXT_MAX], name[600];

        ck_assert_int_eq(match_host_is(&match, "web", 20), 0);
        ck_assert_str_eq(match_hosts_since(&match, 20, more), "web ");
        ck_assert_str_eq(match_hosts_since(&match, 19, names), "vm web ");
        match_clear(&match);
        ck_assert_int_eq(match_host_is(&match, "third", 30), 0);
        ck_assert_int_eq(match_hosts_were(&match, "", 30), 0);
        ck_assert_str_eq(match_hosts_since(&match, 19, more), "third ");
        ck_assert_int_eq(match_hosts_were(&match, names, 30), 0);
        ck_assert_str_eq(match_hosts_since(&match, 19, more), "third vm web ");
        ck_assert_str_eq(match_hosts_since(&match, 30, more), "third ");

        scan_own(40, OLD, WEB);
        both_heartbeat(OLD, WEB, 40, 60);
        ck_assert_str_eq(decided(19), "ambiguous");

        /* What has no room is left out whole. */
        memset(name, 'x', sizeof(name) - 1);
        name[sizeof(name) - 1] = '\0';
        match_clear(&match);
        ck_assert_int_eq(match_host_is(&match, name, 30), 0);
        name[0] = 'y';
        ck_assert_int_eq(match_host_was(&match, name, strlen(name), 30), 0);
        ck_assert_int_eq(match_host_was(&match, "vm", 2, 30), 0);
        ck_assert_uint_eq(strlen(match_hosts_since(&match, 19, more)), sizeof(name) + 3);
        ck_assert_str_eq(strchr(more, ' '), " vm ");
}

TEST(takes_an_old_name_for_workers_of_its_time_alone)
{
        scan(10, NULL, NULL);
        ck_assert_int_eq(match_host_is(&match, "web", 20), 0);
        scan(30, NULL, NULL);
        scan(40, NEW, WEB);
        own(NEW);
        heartbeat_of(NEW, 1000, 40);
        ck_assert_str_eq(decided(9), NEW);
        ck_assert_str_eq(decided(20), "none"); /* another host's, which has our old name */
        own(WEB);
        ck_assert_str_eq(decided(9), "none");
        heartbeat_of(WEB, 1000, 40);
        ck_assert_str_eq(decided(20), WEB);
}

TEST(knows_not_who_was_absent_under_a_new_name)
{
        scan(10, NULL, NULL);
        match_scan_begin(&match, 20);
        ck_assert_int_eq(match_host_is(&match, "web", 20), 0);
        match_scan_end(&match); /* and the name is looked for from the next scan on */
        scan_own(30, WEB, NULL);
        reads(WEB, 1000, 30, "none");
        reads(WEB, 2000, 40, WEB);
}

TEST(takes_a_name_that_comes_back)
{
        scan(10, NULL, NULL);
        ck_assert_int_eq(match_host_is(&match, "web", 20), 0);
        ck_assert_int_eq(match_host_is(&match, "vm", 30), 0);
        match_hosts_forget(&match, 100);
        scan_own(110, NEW, NULL);
        heartbeat_of(NEW, 1000, 110);
        ck_assert_str_eq(decided(10), NEW);
}

/* Names of a worker in namespaces of its own: only pid 100 has them. */
static bool has_name(const void *names, const char *name, size_t len, pid_t own_pid)
{
        return own_pid == 100 && strlen(names) == len && memcmp(names, name, len) == 0;
}

static void names_are(const char *name)
{
        match.names_have = has_name;
        match.names = name;
}

#define BOX     "box:100:aaaaaaaaaaaa"
#define BOX_NEW "box:100:bbbbbbbbbbbb"

static void own_named(const char *identity, bool unique)
{
        own(identity);
        find(identity)->unique = unique;
        find(identity)->claimed = true;
}

TEST(other_names_than_the_hosts_count_only_if_a_worker_has_them)
{
        const struct match_found below = {.identity = "box:101:a", .len = 9, .host_len = 3, .pid = 101};

        scan(10, BOX, NULL);
        ck_assert(!has(BOX));
        names_are("box");
        match_scan_begin(&match, 20);
        add(BOX, 20);
        ck_assert_int_eq(match_scan_add(&match, &below, 20), 0);
        add("boxes:100:aaaaaaaaaaaa", 20);
        match_scan_end(&match);
        ck_assert(has(BOX));
        ck_assert_uint_eq(match.n_candidates, 1);
        ck_assert(find(BOX)->named && !find(BOX)->owner);
        ck_assert(!match_has_owner(&match, BOX, strlen(BOX)));
        own_named(BOX, false);
        ck_assert(match_has_owner(&match, BOX, strlen(BOX)));
        ck_assert(!match_has_owner(&match, BOX, strlen(BOX) - 1));
        /* An earlier scan did not look for the name: only a heartbeat that changes shows that the process
         * lives. */
        reads(BOX, 1000, 30, "none");
        reads(BOX, 2000, 40, BOX);
        match.names_have = NULL;
        scan(50, BOX, NULL);
        ck_assert(!has(BOX));
}

TEST(a_named_process_that_registered_itself_counts_after_a_scan_of_all_hosts)
{
        names_are("box");
        scan_own(20, BOX, NULL);
        born = true;
        reads(BOX, 1000, 30, "none");
        scan_own(40, BOX, NULL);
        heartbeat_of(BOX, 1000, 45);
        ck_assert_str_eq(decided(5), BOX);
        match_connected(&match, 50);
        ck_assert_str_eq(decided(5), "none");
}

TEST(a_unique_name_goes_before_every_other)
{
        names_are("box");
        scan(20, BOX, NEW);
        own(NEW);
        own_named(BOX, true);
        find(BOX)->absent_at = 5; /* as old as its worker at most */
        heartbeat_of(NEW, 1000, 20);
        heartbeat_of(NEW, 2000, 30);
        ck_assert_str_eq(decided(5), "none"); /* it may be the same process */
        heartbeat_of(BOX, 1000, 30);
        ck_assert_str_eq(decided(5), BOX);
        /* In either order. */
        scan(40, BOX, BOX_NEW);
        own_named(BOX_NEW, true);
        own_named(BOX, false);
        find(BOX_NEW)->absent_at = 5;
        heartbeat_of(BOX, 2000, 40);
        heartbeat_of(BOX_NEW, 1000, 40);
        ck_assert_str_eq(decided(5), BOX_NEW);
}

TEST(two_processes_of_one_unique_name_are_ambiguous)
{
        names_are("box");
        scan(20, BOX, BOX_NEW);
        own_named(BOX, true);
        own_named(BOX_NEW, true);
        both_heartbeat(BOX, BOX_NEW, 20, 60);
        ck_assert_str_eq(decided(5), "ambiguous");
}

TEST(a_process_that_is_not_visible_is_not_asked_whether_it_has_booted)
{
        size_t at = 0;

        names_are("box");
        scan_own(20, BOX, NULL);
        ck_assert_int_eq(match_pid(&match, &owner, &at), 100);
        find(BOX)->remote = true;
        at = 0;
        ck_assert_int_eq(match_pid(&match, &owner, &at), 0);
}

TEST(a_candidate_without_its_owner_has_the_pid_of_its_identity)
{
        names_are("box");
        scan(20, BOX, NULL);
        own_named(BOX, true);
        find(BOX)->pid = 4711;
        find(BOX)->remote = find(BOX)->foreign = true;
        match_owner_removed(&match, &other);
        ck_assert_int_eq(find(BOX)->pid, 4711);
        match_owner_removed(&match, &owner);
        ck_assert_int_eq(find(BOX)->pid, 100);
        ck_assert_ptr_null(find(BOX)->owner);
        ck_assert(!find(BOX)->remote && !find(BOX)->unique && !find(BOX)->claimed && !find(BOX)->foreign &&
                  !find(BOX)->resolved);
}

TEST(keeps_the_name_of_now_when_there_are_too_many)
{
        char name[] = "a";

        for (usec_t at = 10; at < 20; at++, name[0]++)
                ck_assert_int_eq(match_host_is(&match, name, at), 0);
        ck_assert_str_eq(scanned(20), "h i j g ");
        ck_assert_int_eq(match_host_was(&match, "x", 1, 30), 0);
        ck_assert_str_eq(scanned(40), "h i j x ");
}

TEST_MAIN("match", .each = {setup, teardown})
