/* SPDX-License-Identifier: MIT */
/* Tests of what a host does in a rollout over many (rollout_hosts/group_rules.h). */
/* promises: P5 P8 */
#include "continuity/codec.h"
#include "rollout_hosts/group_rules.h"
#include "unit.h"

#define SECOND USEC_PER_SEC
#define LEASE  (ROLLOUT_LEASE_SECONDS * SECOND)

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
        reply = (struct rollout_reply){
                .number = 1, .id = "one", .state = GROUP_RUNNING, .mine = HOST_LEASE_WAITING};
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
        snprintf(reply.error, sizeof(reply.error), "b asked for it");
        expect(ROLLOUT_ACT_ABORT, ROLLOUT_REQUEST_FAIL);
        ck_assert_str_eq(group.error, "b asked for it");
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
        reply = (struct rollout_reply){.verdict = ROLLOUT_VERDICT_BEHIND, .mine = HOST_LEASE_WAITING};
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_LOST);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_ROLL);
        finish(ROLLOUT_DONE, "");
        ck_assert(!rollout_group_is_due(&group, 0, "", GROUP_NONE, now));
        other_rollout(2, "two");
        ck_assert(rollout_group_is_due(&group, 2, "two", GROUP_RUNNING, now));
        group.trusted = true;
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_SEE);
        now += LEASE;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        now += ROLLOUT_PAUSE_USEC;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(another_rollout_of_the_same_number_counts_after_a_lease)
{
        (void)observe();
        other_rollout(1, "uno");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_str_eq(group.id, "one");
        now += LEASE - 1;
        (void)observe();
        ck_assert_str_eq(group.id, "one");
        now++;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_str_eq(group.id, "uno");
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(a_new_connection_does_not_put_that_off)
{
        (void)observe();
        other_rollout(1, "uno");
        (void)observe();
        now += LEASE - 1;
        rollout_group_observe_connection(&group, now);
        now++;
        (void)observe();
        ck_assert_str_eq(group.id, "uno");
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        now += LEASE;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(who_rolls_restarts_for_the_newer_epoch)
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
        take_lease();
        other_rollout(2, "two");
        reply.state = GROUP_HALTED;
        reply.mine = HOST_LEASE_LOST;
        expect(ROLLOUT_ACT_NONE, ROLLOUT_REQUEST_ROLL);
        ck_assert_int_eq(finish(ROLLOUT_DONE, ""), ROLLOUT_REQUEST_ROLL);
        reply.state = GROUP_RUNNING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        now += ROLLOUT_PAUSE_USEC;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_RESTART);
}

TEST(begins_one_rollout_in_five_minutes_unless_it_knows_who_asks)
{
        take_lease();
        finish(ROLLOUT_DONE, "");
        now += ROLLOUT_PAUSE_USEC - SECOND;
        other_rollout(2, "two");
        (void)observe();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        /* Forged, too: that it has a lease. */
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        other_rollout(3, "three");
        ck_assert_int_eq(rollout_group_observe_ordered(&group, &reply, now), ROLLOUT_ACT_NONE);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
        other_rollout(4, "four");
        (void)rollout_group_observe(&group, &reply, ROLLOUT_SIGNATURE_GOOD, now);
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
        other_rollout(5, "five");
        (void)observe();
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_SEE);
        now += SECOND;
        ck_assert_int_eq(word(), ROLLOUT_REQUEST_WANT);
}

TEST(ordered_here_counts_though_it_was_seen_before_the_answer)
{
        take_lease();
        finish(ROLLOUT_DONE, "");
        other_rollout(2, "two");
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

TEST(a_number_that_nobody_counted_to_is_none)
{
        (void)observe();
        other_rollout(UINT64_C(1) << 40, "forged");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_uint_eq(group.number, 1);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_FORGED);
        ck_assert_uint_eq(rollout_group_next(&group, &reply), 2);
        reply.number = 5;
        reply.high = 9;
        ck_assert_uint_eq(rollout_group_next(&group, &reply), 10);
        group = rollout_group_new();
        reply.number = (UINT64_C(1) << 53) - 1;
        ck_assert_uint_eq(rollout_group_next(&group, &reply), 10);
        reply.high = reply.number;
        ck_assert_uint_eq(rollout_group_next(&group, &reply), 1);
        (void)observe();
        ck_assert_uint_eq(group.number, 0);
}

TEST(a_clone_takes_no_part)
{
        reply.verdict = ROLLOUT_VERDICT_TAKEN;
        reply.mine = HOST_LEASE_ROLLING;
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_uint_eq(group.number, 0);
        ck_assert_int_eq(group.trouble, ROLLOUT_TROUBLE_TAKEN);
}

TEST(a_canary_that_gets_into_trouble_fails)
{
        reply.canary_seconds = 60;
        take_lease();
        finish(ROLLOUT_DONE, "");
        reply.mine = HOST_LEASE_DONE;
        (void)observe();
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

TEST(a_rollout_is_missed_though_another_host_has_reported_so_first)
{
        reply.state = GROUP_ABORTED;
        (void)observe();
        ck_assert(!rollout_group_is_due(&group, 1, "one", GROUP_ABORTED, now));
        ck_assert(rollout_group_is_due(&group, 0, "", GROUP_ABORTED, now));
        reply = (struct rollout_reply){
                .verdict = ROLLOUT_VERDICT_BEHIND, .state = GROUP_ABORTED, .mine = HOST_LEASE_WAITING};
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
        static const char *const expected[] = {
                [ROLLOUT_TROUBLE_NONE] = "",
                [ROLLOUT_TROUBLE_LOST] = "Redis has lost epoch 1",
                [ROLLOUT_TROUBLE_TAKEN] = "another machine speaks for host 'h'",
                [ROLLOUT_TROUBLE_FULL] = "the group has 1024 hosts",
                [ROLLOUT_TROUBLE_UNSIGNED] = "epoch 1 in Redis was begun, or aborted, without the seal",
                [ROLLOUT_TROUBLE_FORGED] = "Redis shows epoch 1, up to which nobody has counted",
        };

        take_lease();
        for (unsigned i = 0; i < _ROLLOUT_TROUBLE_MAX; i++) {
                group.trouble = (enum rollout_trouble)i;
                ck_assert_msg(strncmp(trouble(), expected[i], strlen(expected[i])) == 0, "%s", trouble());
                ck_assert_int_eq(trouble()[0] == '\0', i == ROLLOUT_TROUBLE_NONE);
        }
}

TEST(why_it_begins_no_lease_yet_is_a_sentence)
{
        char text[512];

        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        ck_assert_str_eq(rollout_group_pause_text(&group, now, text, sizeof(text)), "");
        rollout_group_observe_connection(&group, now);
        rollout_group_pause_text(&group, now, text, sizeof(text));
        ck_assert_ptr_nonnull(
                strstr(text, "begins no turn for another 30s: hosts that Redis may have forgotten"));
        now += LEASE;
        take_lease();
        finish(ROLLOUT_DONE, "");
        other_rollout(2, "two");
        ck_assert_int_eq(observe(), ROLLOUT_ACT_NONE);
        rollout_group_pause_text(&group, now, text, sizeof(text));
        ck_assert_ptr_nonnull(strstr(text, "for another 5min, since it has restarted just now"));
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
        ck_assert_uint_eq(next.began_at, group.began_at);
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
