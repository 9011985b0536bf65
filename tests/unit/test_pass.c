/* SPDX-License-Identifier: MIT */
/* One pass: when the state is saved, when to look and when to wake. */
/* promises: P4 */
#include "decide/command.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

static bool memory_is_short;

void *__real_realloc(void *before, size_t size);
void *__wrap_realloc(void *before, size_t size);
void *__wrap_realloc(void *before, size_t size)
{
        return memory_is_short ? NULL : __real_realloc(before, size);
}

void *__real_reallocarray(void *before, size_t n, size_t size);
void *__wrap_reallocarray(void *before, size_t n, size_t size);
void *__wrap_reallocarray(void *before, size_t n, size_t size)
{
        return memory_is_short ? NULL : __real_reallocarray(before, n, size);
}

TEST_WORLD(2)
{
}

TEST(the_state_is_saved_once_after_starts)
{
        test_after(&t, 1, t.starts, 2);
        ck_assert_uint_eq(t.saves, 1);
        ck_assert(!t.pass.unsaved);
}

/* The new processes run before sqmgr writes to the memory that they share with it. */
TEST(a_pass_that_starts_workers_leaves_the_rest_to_the_next_one)
{
        test_pass(&t);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_uint_eq(t.saves, 0);
        ck_assert(pass_is_deferred(&t.pass));
        ck_assert_uint_eq(pass_wake_at(&t.pass, t.now), t.now + 10 * USEC_PER_MSEC);
        ck_assert(!t.pass.calm);
        /* An earlier wakeup completes the pass at once. */
        t.now += USEC_PER_MSEC;
        test_pass(&t);
        ck_assert(!pass_is_deferred(&t.pass));
        ck_assert_uint_eq(t.saves, 1);
        ck_assert_int_eq(pass_poll(&t.pass, t.now), PASS_POLL_REGULAR);
}

TEST(further_starts_do_not_hold_up_the_save)
{
        usec_t begun = t.now;
        unsigned saves = t.saves;

        for (unsigned count = 2; t.saves == saves; count++) {
                ck_assert_int_eq(command_scale(t.fleet, count, NULL, t.now), COMMAND_DONE);
                test_pass(&t);
                ck_assert_uint_eq(t.starts, count);
                ck_assert_uint_le(t.now, begun + 10 * USEC_PER_MSEC);
                t.now += 5 * USEC_PER_MSEC;
        }
        ck_assert_uint_eq(t.now, begun + 15 * USEC_PER_MSEC);
}

TEST(without_a_durable_ledger_starts_are_saved_at_once)
{
        observe_ledger(t.world, false);
        test_pass(&t);
        ck_assert_uint_eq(t.starts, 2);
        ck_assert_uint_eq(t.saves, 1);
        ck_assert(!pass_is_deferred(&t.pass));
}

TEST(where_nothing_changes_nothing_is_saved)
{
        test_settle(&t);
        world_events_clear(t.world);
        test_tick(&t, 1);
        unsigned saves = t.saves;
        test_after(&t, 10, t.saves, saves);
}

TEST(what_could_not_be_saved_is_saved_with_a_later_pass)
{
        test_settle(&t);
        t.save_fails = true;
        test_exit(&t, test_worker(&t, 1), 1);
        test_tick(&t, 1);
        world_events_clear(t.world);
        unsigned saves = t.saves;
        test_tick(&t, 0.1);
        ck_assert_uint_gt(t.saves, saves);
        t.save_fails = false;
        test_tick(&t, 0.1);
        ck_assert(!t.pass.unsaved);
}

TEST(an_action_that_fails_is_not_tried_again_in_the_same_pass)
{
        test_settle(&t);
        t.quiet_error = EPERM;
        command_quiet_fleet(t.fleet, NULL, t.now);
        unsigned quiets = t.quiets;
        test_after(&t, 1, t.quiets, quiets + 2);
}

/* The daemon reports it, and the next poll plans again. */
TEST(a_plan_for_which_memory_is_short_says_so)
{
        struct plan plan = {0};

        memory_is_short = true;
        ck_assert_int_eq(plan_make(&plan, t.world, t.now), -ENOMEM);
        ck_assert_uint_eq(plan.n_actions, 0);
        memory_is_short = false;
        ck_assert_int_eq(plan_make(&plan, t.world, t.now), 0);
        ck_assert_uint_eq(plan.n_actions, 2);
        plan_free(&plan);
}

TEST(a_look_is_due_after_starts_each_250_ms_while_anything_changes_and_each_interval_else)
{
        t.pass.poll_at = 0;
        t.now += USEC_PER_SEC;
        ck_assert_int_eq(pass_poll(&t.pass, t.now), PASS_POLL_REGULAR);
        ck_assert_int_eq(pass_poll(&t.pass, t.now), PASS_POLL_NONE);
        test_tick(&t, 0);
        ck_assert_uint_eq(pass_wake_at(&t.pass, t.now), t.now + USEC_PER_MSEC);
        ck_assert_int_eq(pass_poll(&t.pass, t.now + USEC_PER_MSEC), PASS_POLL_FAST);
        ck_assert_uint_eq(pass_wake_at(&t.pass, t.now), t.now + 250 * USEC_PER_MSEC);
        ck_assert(!t.pass.calm);

        test_settle(&t);
        test_run(&t, 60);
        t.pass.poll_at = 0;
        ck_assert_int_eq(pass_poll(&t.pass, t.now), PASS_POLL_REGULAR);
        ck_assert_uint_le(pass_wake_at(&t.pass, t.now), t.now + 5 * USEC_PER_SEC);
        ck_assert(t.pass.calm);
        ck_assert_uint_eq(t.pass.poll_at, t.now + 5 * USEC_PER_SEC);
        ck_assert_int_eq(pass_poll(&t.pass, t.now + USEC_PER_SEC), PASS_POLL_NONE);
}

TEST_MAIN("pass", .each = {setup, teardown})
