/* SPDX-License-Identifier: MIT */
/* Do all hosts' walks take a twentieth of Redis together, however many start at once, and does each host walk
 * as soon as that allows? */
/* promises: P5 */
#include "observe/scan_throttle.h"
#include "unit.h"

#define NSEC  500
#define FAST  (250 * USEC_PER_MSEC) /* between two looks */
#define HOSTS 1000
#define GAMES 3
#define LAST  UINT32_MAX
#define BEGIN USEC_PER_SEC

static struct scan_throttle scan_throttle;

static struct scan_throttle_reading reading(uint64_t members, uint64_t scanners)
{
        return (struct scan_throttle_reading){
                .members = members, .scanners = scanners, .nsec = NSEC, .scans = 1};
}

static void setup(void)
{
        scan_throttle = (struct scan_throttle){0};
}

TEST(a_gap_is_what_one_walk_of_each_takes_twenty_times)
{
        struct scan_throttle_reading one = reading(50000, 1), all = reading(50000, 1000),
                                     none = reading(0, 1000);
        struct scan_throttle_reading garbage = reading(UINT64_MAX, UINT64_MAX);

        ck_assert_uint_eq(scan_throttle_gap(&one), 500 * USEC_PER_MSEC);
        ck_assert_uint_eq(scan_throttle_gap(&all), 500 * USEC_PER_SEC);
        one.scans = 2;
        ck_assert_uint_eq(scan_throttle_gap(&one), USEC_PER_SEC);
        ck_assert_uint_eq(scan_throttle_gap(&none), 0);
        ck_assert_uint_eq(scan_throttle_gap(&garbage), SCAN_THROTTLE_GAP_MAX_USEC);
}

TEST(one_among_few_walks_at_once)
{
        struct scan_throttle_reading few = reading(300, 6);

        ck_assert(scan_throttle_request(&scan_throttle, BEGIN, false));
        ck_assert(scan_throttle_is_due(&scan_throttle, BEGIN));
        ck_assert(scan_throttle_decide(&scan_throttle, &few, LAST, BEGIN));
        ck_assert(!scan_throttle_is_due(&scan_throttle, BEGIN + scan_throttle_gap(&few) - 1));
        ck_assert(scan_throttle_request(&scan_throttle, BEGIN + FAST, false));
        ck_assert(scan_throttle_is_due(&scan_throttle, BEGIN + FAST));
        ck_assert(scan_throttle_decide(&scan_throttle, &few, LAST, BEGIN + FAST));
}

/* A wish that is given up and made again does not bring the next walk forward. */
TEST(keeps_the_gap_to_its_last_walk)
{
        struct scan_throttle_reading few = reading(300, 6);
        usec_t gap = scan_throttle_gap(&few);

        ck_assert(scan_throttle_request(&scan_throttle, BEGIN, false));
        ck_assert(scan_throttle_decide(&scan_throttle, &few, LAST, BEGIN));
        scan_throttle_cancel(&scan_throttle);
        ck_assert(scan_throttle_request(&scan_throttle, BEGIN + 1, false));
        ck_assert(scan_throttle_is_due(&scan_throttle, BEGIN + 1));
        ck_assert(!scan_throttle_decide(&scan_throttle, &few, 0, BEGIN + 1));
        ck_assert(!scan_throttle_decide(&scan_throttle, &few, LAST, BEGIN + gap));
        scan_throttle_cancel(&scan_throttle);
        ck_assert(scan_throttle_request(&scan_throttle, BEGIN + 1 + gap, false));
        ck_assert(scan_throttle_decide(&scan_throttle, &few, LAST, BEGIN + 1 + gap));
}

/* The lot counts as much as what has passed of the gap, and the longer one where it has changed. */
TEST(among_many_it_is_drawn_by_lot)
{
        struct scan_throttle_reading many = reading(50000, 4), more = reading(50000, 8);
        usec_t gap = scan_throttle_gap(&many);

        ck_assert(scan_throttle_request(&scan_throttle, 1000, true));
        ck_assert(!scan_throttle_decide(&scan_throttle, &many, 0, 1000));
        ck_assert(!scan_throttle_decide(&scan_throttle, &many, LAST / 2 + 2, 1000 + gap / 2));
        ck_assert(scan_throttle_decide(&scan_throttle, &many, LAST / 2 - 2, 1000 + gap));
        ck_assert(scan_throttle_decide(&scan_throttle, &many, LAST, 1000 + 2 * gap));
        ck_assert(!scan_throttle_decide(&scan_throttle, &more, LAST / 2 + 2, 1000 + 3 * gap));
        ck_assert(!scan_throttle_decide(&scan_throttle, &many, LAST / 2 + 2, 1000 + 4 * gap));
        ck_assert(scan_throttle_decide(&scan_throttle, &many, LAST, 1000 + 5 * gap));
}

TEST(in_a_crowd_nobody_wishes_before_there_may_be_something)
{
        struct scan_throttle_reading many_hosts = reading(50000, 1000);

        ck_assert(scan_throttle_request(&scan_throttle, 1000, false));
        ck_assert(!scan_throttle_decide(&scan_throttle, &many_hosts, 0, 1000));
        ck_assert(!scan_throttle_request(&scan_throttle, 2000, false));
        ck_assert(!scan_throttle_is_due(&scan_throttle, 2000));
        ck_assert(scan_throttle_request(&scan_throttle, 3000, true));
        ck_assert(scan_throttle_is_due(&scan_throttle, 3000));
        scan_throttle_cancel(&scan_throttle);
        ck_assert(scan_throttle_request(&scan_throttle, 4000, false));
}

TEST(the_wait_ends_early_where_the_others_are_done)
{
        struct scan_throttle_reading many_hosts = reading(50000, 1000), alone = reading(50000, 1);
        usec_t asked = 1000 + scan_throttle_gap(&many_hosts) / 50;

        ck_assert(scan_throttle_request(&scan_throttle, 1000, true));
        ck_assert(!scan_throttle_decide(&scan_throttle, &many_hosts, 0, 1000));
        ck_assert(!scan_throttle_is_due(&scan_throttle, asked - 1));
        ck_assert(scan_throttle_is_due(&scan_throttle, asked));
        ck_assert(!scan_throttle_decide(&scan_throttle, &alone, LAST, asked));
        ck_assert(scan_throttle_is_due(&scan_throttle, asked + scan_throttle_gap(&alone)));
        ck_assert(scan_throttle_decide(&scan_throttle, &alone, LAST, asked + scan_throttle_gap(&alone)));
}

static uint32_t draw(void)
{
        static uint64_t state = 1;

        state = state * 6364136223846793005U + 1442695040888963407U;
        return (uint32_t)(state >> 32);
}

struct played {
        uint64_t most_nsec; /* of Redis that walks took within any 10 s */
        uint64_t all_nsec;
        usec_t mean, last; /* until a host has walked, and until all have */
};

/* So many hosts start within one second; their looks are 250 ms apart. Each leaves once it has walked. */
static struct played play(unsigned hosts, uint64_t members)
{
        static struct scan_throttle paces[HOSTS];
        unsigned scans[HOSTS] = {0}, left = hosts;
        uint64_t costs[8192] = {0}, window = 0, scanners = 0;
        struct played played = {0};

        for (unsigned i = 0; i < hosts; i++)
                paces[i] = (struct scan_throttle){0};
        for (unsigned at = 0; left > 0; at++) {
                ck_assert_uint_lt(at, ELEMENTSOF(costs));
                for (unsigned i = 0; i < hosts; i++) {
                        usec_t now = BEGIN + at * FAST + i * FAST / hosts;

                        if (at < i % 4 || scans[i] == 1)
                                continue;
                        scanners += paces[i].requested_at == 0;
                        (void)scan_throttle_request(&paces[i], now, true);
                        if (!scan_throttle_is_due(&paces[i], now))
                                continue;
                        struct scan_throttle_reading read = reading(members, scanners);
                        if (!scan_throttle_decide(&paces[i], &read, draw(), now))
                                continue;
                        costs[at] += members * NSEC;
                        played.all_nsec += members * NSEC;
                        scans[i] = 1;
                        scanners--;
                        left--;
                        played.mean += (now - BEGIN) / hosts;
                        played.last = now - BEGIN;
                }
                window += costs[at];
                window -= at >= 40 ? costs[at - 40] : 0;
                played.most_nsec = MAX(played.most_nsec, window);
        }
        return played;
}

TEST_LOOP(all_take_a_twentieth_whatever_their_number, 5)
{
        static const struct {
                unsigned hosts;
                uint64_t members;
                usec_t mean, last;
        } groups[] = {
                {1, 50000, BEGIN, BEGIN},
                {10, 50000, 7 * BEGIN, 14 * BEGIN},
                {100, 50000, 40 * BEGIN, 100 * BEGIN},
                {1000, 50000, 300 * BEGIN, 600 * BEGIN},
                {1000, 1000, 8 * BEGIN, 16 * BEGIN},
        };
        uint64_t share = (uint64_t)10 * 1000000000 / 20, sum = 0;

        /* It is a matter of chance: one time with another. */
        for (unsigned i = 0; i < GAMES; i++) {
                struct played played = play(groups[_i].hosts, groups[_i].members);

                ck_assert_uint_le(played.mean, groups[_i].mean);
                ck_assert_uint_le(played.last, groups[_i].last);
                /* Who comes first does not know how many follow. */
                ck_assert_uint_le(played.all_nsec, MAX(played.last, 10 * BEGIN) * 1000 / 20 * 5 / 4);
                sum += played.most_nsec;
        }
        ck_assert_uint_le(sum / GAMES, 2 * share);
}

TEST_MAIN("pace", .each = {setup, NULL})
