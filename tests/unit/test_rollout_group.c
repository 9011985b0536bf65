/* SPDX-License-Identifier: MIT */
/* Tests of what a host does in a rollout over many (rollout_hosts/group_rules.h). */
/* promises: P5 P8 */
#include "continuity/codec.h"
#include "golden.h"
#include "rollout_hosts/group_rules.h"
#include "unit.h"

#define SECOND USEC_PER_SEC
#define LEASE  (ROLLOUT_LEASE_SECONDS * SECOND)
/* The time of Redis, at which no number is too old yet. */
#define CLOCK (UINT64_C(1) * ROLLOUT_AGE_SECONDS)

static struct rollout_group group;
static struct rollout_reply reply;
static usec_t now;

/* Connected for a lease, with a rollout that runs. */
static void setup(void)
{
        now = 1000 * SECOND;
        group = rollout_group_new();
        rollout_group_observe_connection(&group, now);
        now += LEASE;
        reply = (struct rollout_reply){.number = 1,
                                       .id = "one",
                                       .now_seconds = CLOCK,
                                       .state = GROUP_RUNNING,
                                       .mine = HOST_LEASE_WAITING};
}

static enum rollout_act observe(void)
{
        return rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_UNASKED, now);
}

static enum rollout_request word(void)
{
        return rollout_group_next_request(&group, now);
}

/* What is to be done with the reply, and what is asked of the group next. */
#define expect(act, request)                                                                                 \
        do {                                                                                                 \
                ck_assert_int_eq(observe(), act);                                                            \
                ck_assert_int_eq(word(), request);                                                           \
        } while (0)

static void other_rollout(uint64_t number, const char *id)
{
        reply.number = number;
        snprintf(reply.id, sizeof(reply.id), "%s", id);
        reply.mine = HOST_LEASE_WAITING;
        reply.state = GROUP_RUNNING;
}

static void take_lease(void)
{
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_WANT);
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
        rollout_group_observe_begun(&group, now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_ROLL);
}

/* Returns what is asked of the group next. */
static enum rollout_request finish(enum rollout_state state, const char *error)
{
        rollout_group_observe_fleet(&group, state, error, now);
        return word();
}

/* Restarts for the next number, if the host may. Returns whether it did. */
static bool next_restarts(enum rollout_state state)
{
        now += SECOND;
        other_rollout(group.number + 1, "next");
        (void)observe();
        if (word() != ROLLOUT_REQUEST_WANT)
                return false;
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
        rollout_group_observe_begun(&group, now);
        rollout_group_observe_fleet(&group, state, "why", now);
        return true;
}

TEST(restarts_once_in_its_lease_and_says_so)
{
        take_lease();
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_int_eq(finish(ROLLOUT_RUNNING, ""), ROLLOUT_REQUEST_ROLL);
        ck_assert_int_eq(finish(ROLLOUT_DONE, ""), ROLLOUT_REQUEST_DONE);
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_DONE);
        reply.mine = HOST_LEASE_DONE;
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
}

TEST(says_that_it_is_done_again_once_it_has_drained)
{
        take_lease();
        group.draining = true;
        ck_assert_int_eq(finish(ROLLOUT_DONE, ""), ROLLOUT_REQUEST_DONE);
        /* It drains while that is under way. */
        group.draining = false;
        reply.mine = HOST_LEASE_DONE;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert(rollout_group_is_due(&group, reply.number, reply.id, GROUP_RUNNING, now));
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_DONE);
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
}

TEST(what_its_own_restart_was_before_the_lease_reports_nothing)
{
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_WANT);
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
        ck_assert_int_eq(finish(ROLLOUT_DONE, ""), ROLLOUT_REQUEST_ROLL);
        /* The restart could not be written down, say: it is asked for again. */
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
}

/* The next sqmgr would not know of the restart. */
TEST(while_the_state_cannot_be_written_no_lease_is_requested_and_one_is_given_back)
{
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        group.unsaved = true;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        group.unsaved = false;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
        rollout_group_observe_unsaved(&group);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WAIT);
        reply.mine = HOST_LEASE_WAITING;
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
        group.unsaved = false;
        take_lease();
        /* A restart that has begun continues. */
        group.unsaved = true;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_ROLL);
}

TEST(a_restart_that_halts_or_is_aborted_here_fails_its_lease)
{
        static const enum rollout_state states[] = {ROLLOUT_HALTED, ROLLOUT_ABORTED};

        for (size_t i = 0; i < ELEMENTSOF(states); i++) {
                setup();
                take_lease();
                ck_assert_int_eq(finish(states[i], "why"), ROLLOUT_REQUEST_FAIL);
                ck_assert_str_eq(group.error, "why");
                reply.mine = HOST_LEASE_FAILED;
                (void)observe();
                ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        }
}

TEST(asks_for_no_lease_within_a_lease_of_its_connection)
{
        rollout_group_observe_connection(&group, now);
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        now += LEASE - 1;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        now++;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(asserts_its_lease_at_once_after_a_new_connection)
{
        take_lease();
        rollout_group_observe_connection(&group, now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_ROLL);
        ck_assert(rollout_group_is_due(&group, 1, "one", GROUP_RUNNING, now));
}

TEST(asks_for_none_while_it_is_halted_done_or_aborted)
{
        static const enum group_state states[] = {GROUP_HALTED, GROUP_DONE, GROUP_ABORTED};

        for (size_t i = 0; i < ELEMENTSOF(states); i++) {
                reply.state = states[i];
                expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
        }
}

TEST(gives_back_a_lease_that_it_does_not_roll_with)
{
        static const enum host_lease held[] = {HOST_LEASE_ROLLING, HOST_LEASE_LOST};

        for (size_t i = 0; i < ELEMENTSOF(held); i++) {
                setup();
                reply.mine = held[i];
                expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_WAIT);
                ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
                reply.mine = HOST_LEASE_WAITING;
                expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_WANT);
                rollout_group_observe_connection(&group, now);
                reply.mine = HOST_LEASE_ROLLING;
                expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_WAIT);
        }
}

TEST(an_abort_ends_its_restart)
{
        take_lease();
        reply.state = GROUP_ABORTED;
        snprintf(reply.error, sizeof(reply.error), "ordered on b");
        expect(ROLLOUT_ACT_ABORT, ROLLOUT_REQUEST_FAIL);
        ck_assert_str_eq(group.error, "ordered on b");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
}

TEST(an_older_rollout_never_acts)
{
        other_rollout(7, "seven");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        other_rollout(6, "six");
        reply.mine = HOST_LEASE_ROLLING;
        for (unsigned i = 0; i < 10; i++, now += LEASE) {
                expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
                ck_assert_uint_eq(group.number, 7);
                ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_LOST);
        }
}

TEST(emptied_it_finishes_its_turn_and_waits_for_the_next)
{
        take_lease();
        reply = (struct rollout_reply){
                .verdict = ROLLOUT_VERDICT_BEHIND, .now_seconds = CLOCK, .mine = HOST_LEASE_WAITING};
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_LOST);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_ROLL);
        finish(ROLLOUT_DONE, "");
        ck_assert(!rollout_group_is_due(&group, 0, "", GROUP_NONE, now));
        now += SECOND;
        other_rollout(2, "two");
        ck_assert(rollout_group_is_due(&group, 2, "two", GROUP_RUNNING, now));
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
        now += LEASE;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(of_one_number_only_the_greater_id_takes_over)
{
        (void)observe();
        other_rollout(1, "alpha");
        for (unsigned i = 0; i < 10; i++, now += LEASE) {
                expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
                ck_assert_str_eq(group.id, "one");
                ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_LOST);
        }
        other_rollout(1, "uno");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_str_eq(group.id, "uno");
        /* A host that rolls for the other one has a lease to report it. */
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        now += LEASE;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
        other_rollout(1, "one");
        now += LEASE;
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
        ck_assert_str_eq(group.id, "uno");
}

/* A writer to Redis shows the signed rollout, and says that this host may restart. Returns how often it does.
 */
static unsigned show_signed(uint64_t number, const char *id)
{
        unsigned n = 0;

        other_rollout(number, id);
        for (unsigned i = 0; i < 4; i++, now += LEASE) {
                if (word() == ROLLOUT_REQUEST_WANT)
                        reply.mine = HOST_LEASE_ROLLING;
                if (rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_GOOD, now) != ROLLOUT_ACT_RESTART)
                        continue;
                n++;
                rollout_group_observe_begun(&group, now);
                rollout_group_observe_fleet(&group, ROLLOUT_DONE, "", now);
        }
        return n;
}

TEST(a_host_that_knows_none_takes_part_in_no_rollout_of_more_than_a_day_ago)
{
        for (uint64_t number = 1; number < 5; number++) {
                reply.now_seconds = number + ROLLOUT_AGE_SECONDS + 1;
                ck_assert_uint_eq(show_signed(number, "old"), 0);
                ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
                ck_assert_uint_eq(group.number, 0);
                ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_OLD);
        }
        /* If that has ended, nothing is reported. */
        reply.state = GROUP_DONE;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_NONE);
        ck_assert(!rollout_group_is_due(&group, reply.number, reply.id, GROUP_DONE, now));
        ck_assert(rollout_group_is_due(&group, reply.number + 1, reply.id, GROUP_DONE, now));
        /* A rollout of a day ago counts, and after it a newer one at any age. */
        reply.now_seconds = 5 + ROLLOUT_AGE_SECONDS;
        ck_assert_uint_eq(show_signed(5, "a day"), 1);
        reply.now_seconds *= 3;
        ck_assert_uint_eq(show_signed(6, "newer"), 1);
}

TEST(an_order_on_this_host_counts_though_the_clock_of_redis_was_set)
{
        reply.now_seconds = CLOCK * 3;
        (void)rollout_group_observe_ordered(&group, &reply, now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

/* Two hosts began at the same time, and each has signed its rollout. */
TEST(two_signed_rollouts_of_one_number_restart_a_host_twice_at_most)
{
        unsigned n = 0;

        for (unsigned i = 0; i < 20; i++, now += ROLLOUT_PAUSE_USEC)
                n += show_signed(1, i % 2 == 0 ? "one" : "two");
        ck_assert_uint_eq(n, 2);
}

TEST(a_signed_rollout_that_is_shown_again_restarts_nobody)
{
        ck_assert_uint_eq(show_signed(1, "one"), 1);
        ck_assert_uint_eq(show_signed(1, "one"), 0);
        ck_assert_uint_eq(show_signed(2, "two"), 1);
        for (unsigned i = 0; i < 4; i++) {
                struct codec_writer writer = {.now = now};

                ck_assert_uint_eq(show_signed(1, "one"), 0);
                ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_LOST);
                ck_assert_uint_eq(show_signed(2, "two"), 0);
                /* Nor after sqmgr was started again. */
                rollout_group_pack(&group, "g", &writer);
                struct codec_reader reader = {.at = writer.bytes, .left = writer.size, .now = now};
                ck_assert(rollout_group_unpack(&reader, "g", &group));
                free(writer.bytes);
        }
}

TEST(a_signed_rollout_restarts_a_host_once_though_its_abort_is_undone)
{
        for (unsigned i = 0; i < 3; i++) {
                other_rollout(1, "one");
                reply.state = GROUP_ABORTED;
                ck_assert_int_eq(rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_GOOD, now),
                                 ROLLOUT_ACT_NONE);
                ck_assert_int_ne(word(), ROLLOUT_REQUEST_WANT);
                ck_assert_uint_eq(show_signed(1, "one"), i == 0);
        }
}

TEST(one_rollout_is_adopted_in_a_second)
{
        uint64_t adopted = 0;

        for (uint64_t number = 1; number <= 100; number++, now += SECOND / 10) {
                uint64_t before = group.number;

                other_rollout(number, "climbs");
                (void)observe();
                adopted += group.number != before;
        }
        ck_assert_uint_eq(adopted, 10);
        /* An order on this host is not delayed. */
        other_rollout(200, "ordered");
        (void)rollout_group_observe_ordered(&group, &reply, now);
        ck_assert_uint_eq(group.number, 200);
}

TEST(who_rolls_restarts_for_the_newer_rollout)
{
        take_lease();
        now += ROLLOUT_PAUSE_USEC;
        other_rollout(2, "two");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
        ck_assert_uint_eq(group.number, 2);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_ROLL);
        ck_assert_int_eq(finish(ROLLOUT_DONE, ""), ROLLOUT_REQUEST_ROLL);
        rollout_group_observe_begun(&group, now);
        ck_assert_int_eq(finish(ROLLOUT_DONE, ""), ROLLOUT_REQUEST_DONE);
}

TEST(who_rolls_for_a_rollout_before_keeps_its_place_while_it_may_not_restart)
{
        ck_assert(next_restarts(ROLLOUT_DONE));
        now += SECOND;
        other_rollout(2, "two");
        take_lease();
        now += SECOND;
        other_rollout(3, "three");
        reply.state = GROUP_HALTED;
        reply.mine = HOST_LEASE_LOST;
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_ROLL);
        ck_assert_int_eq(finish(ROLLOUT_DONE, ""), ROLLOUT_REQUEST_ROLL);
        reply.state = GROUP_RUNNING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        now += ROLLOUT_PAUSE_USEC;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
}

TEST(begins_two_rollouts_in_five_minutes_unless_it_knows_who_asks)
{
        usec_t first = now + SECOND;

        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(!next_restarts(ROLLOUT_DONE));
        /* Forged, too: that it has a lease. */
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        now += SECOND;
        other_rollout(10, "ten");
        ck_assert_int_eq(rollout_group_observe_ordered(&group, &reply, now), ROLLOUT_ACT_NONE);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
        now += SECOND;
        other_rollout(11, "eleven");
        (void)rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_GOOD, now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
        ck_assert(!next_restarts(ROLLOUT_DONE));
        now = first + ROLLOUT_PAUSE_USEC - 1;
        (void)observe();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        now++;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(what_was_ordered_here_does_not_count)
{
        for (unsigned i = 0; i < 5; i++) {
                now += SECOND;
                other_rollout(group.number + 1, "mine");
                (void)rollout_group_observe_ordered(&group, &reply, now);
                take_lease();
                finish(ROLLOUT_DONE, "");
        }
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(!next_restarts(ROLLOUT_DONE));
}

TEST(what_halted_or_was_aborted_does_not_count_but_is_bounded)
{
        static const enum rollout_state stops[] = {ROLLOUT_HALTED, ROLLOUT_ABORTED};

        for (size_t i = 0; i < ROLLOUT_STOPPED_MAX; i++)
                ck_assert(next_restarts(stops[i % 2]));
        ck_assert(!next_restarts(ROLLOUT_HALTED));
        now += ROLLOUT_PAUSE_USEC;
        ck_assert(next_restarts(ROLLOUT_HALTED));
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(!next_restarts(ROLLOUT_DONE));
}

TEST(done_here_does_not_count_where_the_rollout_halts_elsewhere)
{
        for (unsigned i = 0; i < 3; i++) {
                ck_assert(next_restarts(ROLLOUT_DONE));
                reply.state = GROUP_HALTED;
                reply.mine = HOST_LEASE_DONE;
                (void)observe();
        }
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(!next_restarts(ROLLOUT_DONE));
        now += ROLLOUT_PAUSE_USEC;
        (void)observe();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(ordered_here_counts_though_it_was_seen_before_the_answer)
{
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(next_restarts(ROLLOUT_DONE));
        now += SECOND;
        other_rollout(9, "nine");
        (void)observe();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        (void)rollout_group_observe_ordered(&group, &reply, now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(without_its_signature_a_rollout_is_none)
{
        ck_assert_int_eq(rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_BAD, now), ROLLOUT_ACT_NONE);
        ck_assert_uint_eq(group.number, 0);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_UNSIGNED);
        (void)rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_GOOD, now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
        take_lease();
        reply.state = GROUP_ABORTED;
        ck_assert_int_eq(rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_BAD, now), ROLLOUT_ACT_NONE);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_ROLL);
}

static struct rollout_next next_of(enum rollout_signature signature)
{
        return rollout_group_next(&group, &reply, signature);
}

TEST(a_number_later_than_the_clock_of_redis_is_none)
{
        static const uint64_t forged[] = {CLOCK + ROLLOUT_SLACK_SECONDS + 1, (UINT64_C(1) << 52) - 1,
                                          (UINT64_C(1) << 53) - 1};

        for (size_t i = 0; i < 2 * ELEMENTSOF(forged); i++) {
                /* Whether the host has seen another one, or none. */
                group = rollout_group_new();
                other_rollout(1, "one");
                if (i % 2 == 0)
                        (void)observe();
                uint64_t known = group.number;
                now += SECOND;
                other_rollout(forged[i / 2], "forged");
                reply.mine = HOST_LEASE_ROLLING;
                expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
                ck_assert_uint_eq(group.number, known);
                ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_FORGED);
                reply.high = forged[i / 2];
                ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_UNASKED).number, CLOCK);
        }
        /* The number becomes valid as the clock advances. */
        reply.now_seconds = reply.number;
        (void)observe();
        ck_assert_uint_eq(group.number, reply.number);
}

TEST(the_next_number_is_the_time_or_one_more)
{
        (void)observe();
        ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_UNASKED).number, CLOCK);
        ck_assert(!next_of(ROLLOUT_SIGNATURE_UNASKED).lost);
        reply.number = CLOCK;
        ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_UNASKED).number, CLOCK + 1);
        ck_assert(!next_of(ROLLOUT_SIGNATURE_UNASKED).lost);
        reply.high = CLOCK + 5;
        ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_UNASKED).number, CLOCK + 6);
        ck_assert(next_of(ROLLOUT_SIGNATURE_UNASKED).lost);
        group.number = CLOCK + 9;
        ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_UNASKED).number, CLOCK + 10);
}

TEST(with_a_key_what_is_not_signed_steers_nothing)
{
        (void)observe();
        reply.high = CLOCK + 5;
        ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_GOOD).number, CLOCK);
        ck_assert(!next_of(ROLLOUT_SIGNATURE_GOOD).lost);
        reply.number = CLOCK + 5;
        ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_GOOD).number, CLOCK + 6);
        ck_assert_uint_eq(next_of(ROLLOUT_SIGNATURE_BAD).number, CLOCK);
        /* The rollout that this host knows is there no more. */
        ck_assert(next_of(ROLLOUT_SIGNATURE_BAD).lost);
}

TEST(a_number_that_this_host_once_took_for_one_is_forgotten)
{
        group.number = UINT64_C(1) << 52;
        snprintf(group.id, sizeof(group.id), "forged");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_uint_eq(group.number, 1);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

/* Somebody writes `state` into an empty Redis. */
TEST(without_a_number_or_an_id_there_is_no_rollout)
{
        static const enum rollout_signature signatures[] = {ROLLOUT_SIGNATURE_UNASKED,
                                                            ROLLOUT_SIGNATURE_GOOD};

        for (size_t i = 0; i < 4; i++) {
                other_rollout(i % 2, "");
                reply.mine = HOST_LEASE_ROLLING;
                for (unsigned j = 0; j < 3; j++) {
                        ck_assert_int_eq(rollout_group_observe(&group, &reply, signatures[i / 2], now),
                                         ROLLOUT_ACT_NONE);
                        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
                }
                ck_assert_uint_eq(group.number, 0);
        }
}

TEST(signed_for_another_redis_is_none)
{
        ck_assert_int_eq(rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_ELSEWHERE, now),
                         ROLLOUT_ACT_NONE);
        ck_assert_uint_eq(group.number, 0);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_ELSEWHERE);
}

TEST(a_clone_takes_no_part)
{
        reply.verdict = ROLLOUT_VERDICT_TAKEN;
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_uint_eq(group.number, 0);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_TAKEN);
}

/* This host has restarted first, and must stay healthy for a minute. */
static void become_canary(void)
{
        reply.canary_seconds = 60;
        take_lease();
        finish(ROLLOUT_DONE, "");
        reply.mine = HOST_LEASE_DONE;
        (void)observe();
}

TEST(a_canary_that_gets_into_trouble_fails)
{
        become_canary();
        now += 60 * SECOND - 1;
        rollout_group_observe_trouble(&group, "a worker crashed", now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_FAIL);
        ck_assert_str_eq(group.error, "a worker crashed");
        /* It was not the canary. */
        (void)observe();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        now++;
        rollout_group_observe_trouble(&group, "a worker crashed", now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
}

TEST(an_answer_that_was_on_its_way_hides_no_trouble_of_a_canary)
{
        become_canary();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        rollout_group_observe_trouble(&group, "a worker crashed", now);
        (void)observe();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_FAIL);
        reply.mine = HOST_LEASE_FAILED;
        (void)observe();
        ck_assert_int_eq(group.lease, HOST_LEASE_FAILED);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
}

TEST(a_rollout_is_missed_though_another_host_has_reported_so_first)
{
        reply.state = GROUP_ABORTED;
        (void)observe();
        ck_assert(!rollout_group_is_due(&group, 1, "one", GROUP_ABORTED, now));
        ck_assert(rollout_group_is_due(&group, 0, "", GROUP_ABORTED, now));
        reply = (struct rollout_reply){.verdict = ROLLOUT_VERDICT_BEHIND,
                                       .now_seconds = CLOCK,
                                       .state = GROUP_ABORTED,
                                       .mine = HOST_LEASE_WAITING};
        (void)observe();
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_LOST);
        ck_assert(!rollout_group_is_due(&group, 0, "", GROUP_ABORTED, now));
}

TEST(asks_the_script_once_a_minute_while_nothing_runs)
{
        reply.state = GROUP_DONE;
        reply.mine = HOST_LEASE_DONE;
        ck_assert(rollout_group_is_due(&group, 0, "", GROUP_NONE, now));
        (void)observe();
        ck_assert(!rollout_group_is_due(&group, 1, "one", GROUP_DONE, now));
        ck_assert(rollout_group_is_due(&group, 1, "one", GROUP_RUNNING, now));
        ck_assert(rollout_group_is_due(&group, 2, "one", GROUP_DONE, now));
        ck_assert(rollout_group_is_due(&group, 1, "uno", GROUP_DONE, now));
        now += 60 * SECOND;
        ck_assert(rollout_group_is_due(&group, 1, "one", GROUP_DONE, now));
}

static const char *trouble(void)
{
        static char text[512];

        return rollout_group_trouble_text(&group, &reply, "h", text, sizeof(text));
}

TEST(why_it_takes_no_part_is_a_sentence)
{
        static const char *const names[] = {
                [ROLLOUT_TROUBLE_NONE] = "none",           [ROLLOUT_TROUBLE_LOST] = "lost",
                [ROLLOUT_TROUBLE_TAKEN] = "taken",         [ROLLOUT_TROUBLE_FULL] = "full",
                [ROLLOUT_TROUBLE_UNSIGNED] = "unsealed",   [ROLLOUT_TROUBLE_FORGED] = "forged",
                [ROLLOUT_TROUBLE_ELSEWHERE] = "elsewhere", [ROLLOUT_TROUBLE_OLD] = "old",
        };

        take_lease();
        snprintf(reply.server, sizeof(reply.server), "r:1");
        golden_begin();
        for (unsigned i = 0; i < _ROLLOUT_TROUBLE_MAX; i++) {
                group.trouble = (enum rollout_trouble)i;
                golden_add(names[i], trouble());
                ck_assert_int_eq(trouble()[0] == '\0', i == ROLLOUT_TROUBLE_NONE);
        }
        golden_end("rollout-hosts", "troubles");
}

TEST(why_it_begins_no_lease_yet_is_a_sentence)
{
        char text[512];

        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_str_eq(rollout_group_pause_text(&group, now, text, sizeof(text)), "");
        rollout_group_observe_connection(&group, now);
        golden_begin();
        golden_add("connected", rollout_group_pause_text(&group, now, text, sizeof(text)));
        now += LEASE;
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(next_restarts(ROLLOUT_DONE));
        ck_assert(!next_restarts(ROLLOUT_DONE));
        golden_add("restarted", rollout_group_pause_text(&group, now, text, sizeof(text)));
        group.unsaved = true;
        golden_add("unsaved", rollout_group_pause_text(&group, now, text, sizeof(text)));
        group.unsaved = false;
        golden_end("rollout-hosts", "pauses");
        group.trusted = true;
        ck_assert_str_eq(rollout_group_pause_text(&group, now, text, sizeof(text)), "");
}

TEST(another_sqmgr_goes_on_with_what_it_knew_and_asks_anew)
{
        take_lease();
        struct codec_writer writer = {.now = now};
        struct rollout_group next;

        rollout_group_pack(&group, "g", &writer);
        ck_assert(!writer.failed);
        struct codec_reader reader = {.at = writer.bytes, .left = writer.size, .now = now};
        ck_assert(!rollout_group_unpack(&reader, "another group", &next));
        reader = (struct codec_reader){.at = writer.bytes, .left = writer.size - 1, .now = now};
        ck_assert(!rollout_group_unpack(&reader, "g", &next));
        reader = (struct codec_reader){.at = writer.bytes, .left = writer.size, .now = now};
        ck_assert(rollout_group_unpack(&reader, "g", &next));
        free(writer.bytes);
        ck_assert_uint_eq(next.number, 1);
        ck_assert_str_eq(next.id, "one");
        ck_assert_int_eq(next.lease, HOST_LEASE_ROLLING);
        ck_assert(next.begun);
        ck_assert_mem_eq(&next.begun_at.counted, &group.begun_at.counted, sizeof(next.begun_at.counted));
        ck_assert(next.begun_at.last_counts);
        ck_assert_uint_eq(next.asked_at, 0);
        ck_assert_int_eq(next.mine, HOST_LEASE_NONE);
        ck_assert_int_eq(next.state, GROUP_NONE);
}

TEST(a_host_that_knows_of_no_rollout_keeps_nothing)
{
        struct codec_writer writer = {.now = now};

        rollout_group_pack(&group, "g", &writer);
        ck_assert_ptr_null(writer.bytes);
}

TEST(each_word_has_a_name)
{
        for (unsigned i = 0; i < _ROLLOUT_REQUEST_MAX; i++)
                ck_assert_ptr_nonnull(rollout_request_name((enum rollout_request)i));
}

TEST_MAIN("rollout_group", .each = {setup, NULL})
