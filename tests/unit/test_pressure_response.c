/* SPDX-License-Identifier: MIT */
/* The response to memory pressure: which workers are reported, which leave, and which starts wait for memory.
 */
/* promises: P2 P5 */
#include "continuity/state.h"
#include "decide/command.h"
#include "decide/pressure_response.h"
#include "golden.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

#define GIGABYTE ((uint64_t)1 << 30)

static struct pressure_reading reading;

TEST_WORLD(3)
{
        t.settings.pressure_limit = 20;
        t.settings.pressure_action = PRESSURE_QUIET;
        reading = (struct pressure_reading){
                .avg10 = 3200, .avg60 = 900, .available_bytes = GIGABYTE, .total_bytes = 16 * GIGABYTE};
}

static void press(unsigned seconds)
{
        for (unsigned i = 0; i < seconds; i++) {
                observe_pressure(t.world, &reading, t.now);
                test_run(&t, 1);
        }
}

/* All are ready, and the last holds the most. */
static void settle(void)
{
        test_settle(&t);
        for (unsigned i = 1; i <= t.fleet_settings.active_process_count; i++)
                test_process(test_worker(&t, i))->memory_bytes = i * GIGABYTE;
        test_run(&t, 10);
}

TEST(it_is_reported_with_who_holds_the_most)
{
        t.settings.pressure_action = PRESSURE_REPORT;
        settle();
        press(10);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_PRESSURE), 0);
        press(120);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_PRESSURE), 1);
        golden_expect("events", "memory pressure", test_event_text(&t, EVENT_MEMORY_PRESSURE));
        ck_assert_uint_eq(t.quiets, 0);
        reading.avg10 = 0;
        press(30);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_EASED), 1);
}

TEST(one_a_minute_leaves_and_comes_back_with_memory)
{
        settle();
        t.urgent = true;
        press(12);
        ck_assert_uint_eq(t.quiets, 1);
        ck_assert_int_gt(test_worker(&t, 3)->state, WORKER_ACTIVE);
        ck_assert_int_eq(test_worker(&t, 3)->reason, REASON_MEMORY);
        ck_assert(test_worker(&t, 3)->orders.pressed && !test_worker(&t, 3)->memory.over_limit);
        press(40);
        ck_assert_uint_eq(t.quiets, 1);
        press(30);
        ck_assert_uint_eq(t.quiets, 2);
        /* The last active worker stays, and the places of the others remain empty meanwhile. */
        press(200);
        ck_assert_uint_eq(t.quiets, 2);
        ck_assert_uint_eq(test_counts(&t).live, 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        reading.avg10 = 0;
        press(12);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_EASED), 1);
        test_settle(&t);
        ck_assert_uint_eq(test_counts(&t).active, 3);
        ck_assert_uint_eq(t.quiets, 2);
}

TEST(who_has_died_is_replaced_but_nothing_beyond_the_count)
{
        t.settings.pressure_action = PRESSURE_REPORT;
        settle();
        press(12);
        unsigned starts = t.starts;
        test_exit(&t, test_worker(&t, 1), 1);
        press(20);
        ck_assert_uint_eq(t.starts, starts + 1);
        (void)command_restart(t.fleet, NULL, t.now);
        press(60);
        ck_assert_uint_eq(t.starts, starts + 1);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        reading.avg10 = 0;
        press(12);
        ck_assert_uint_gt(t.starts, starts + 1);
}

TEST(without_evidence_nobody_leaves)
{
        settle();
        test_redis(&t, false);
        press(120);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_PRESSURE), 1);
        ck_assert_uint_eq(t.quiets, 0);
}

TEST(who_has_not_left_by_then_stays)
{
        settle();
        press(10);
        test_redis(&t, false);
        observe_pressure(t.world, &reading, t.now);
        reading.avg10 = 0;
        for (unsigned i = 0; i < 12; i++, test_run(&t, 1))
                observe_pressure(t.world, &reading, t.now);
        test_redis(&t, true);
        test_after(&t, 60, t.quiets, 0);
}

TEST(what_is_not_read_any_more_holds_nothing)
{
        settle();
        t.urgent = true;
        press(12);
        ck_assert_uint_eq(t.quiets, 1);
        observe_pressure(t.world, NULL, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_EASED), 1);
        observe_pressure(t.world, NULL, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_EASED), 1);
        test_settle(&t);
        ck_assert_uint_eq(test_counts(&t).active, 3);
        press(12);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_PRESSURE), 2);
        t.settings.pressure_limit = 0;
        ck_assert(!pressure_response_holds(t.world));
        observe_pressure(t.world, &reading, t.now);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_EASED), 2);
}

/* Works on jobs for hours. */
static void work(const struct worker *worker)
{
        test_process(worker)->busy = 1;
        test_run(&t, 5);
}

TEST(those_that_drain_are_counted_with_the_others)
{
        t.settings.pressure_action = PRESSURE_REPORT;
        settle();
        for (unsigned i = 1; i <= 3; i++)
                work(test_worker(&t, i));
        (void)command_restart(t.fleet, NULL, t.now);
        test_after(&t, 120, test_counts(&t).active, 3);
        ck_assert_uint_eq(test_counts(&t).live, 6);
        press(12);
        ck_assert(pressure_response_holds(t.world));
        unsigned starts = t.starts;
        test_exit(&t, test_worker(&t, 5), 1);
        press(60);
        ck_assert_uint_eq(t.starts, starts);
        ck_assert_uint_eq(test_counts(&t).active, 2);
        ck_assert_int_eq(t.fleet->waits_for, WAIT_MEMORY);
        /* The last active worker is replaced even under pressure. */
        test_exit(&t, test_worker(&t, 4), 1);
        test_exit(&t, test_worker(&t, 6), 1);
        press(60);
        ck_assert_uint_gt(t.starts, starts);
}

TEST(who_leaves_for_it_does_so_for_the_next_sqmgr_too)
{
        struct state_source source = {.world = t.world, .boot_id = "boot"};
        struct state *state = NULL;
        uint8_t *bytes = NULL;
        size_t size;

        settle();
        t.urgent = true;
        work(test_worker(&t, 3));
        press(12);
        ck_assert_int_eq(test_worker(&t, 3)->state, WORKER_QUIET);
        source.now = t.now;
        ck_assert_int_eq(state_pack(&source, &bytes, &size), 0);
        ck_assert_int_eq(state_unpack(bytes, size, "boot", t.now, &state), STATE_READ);
        ck_assert_uint_eq(state->fleets[0].places_left, 0);
        struct worker known = state->fleets[0].workers[2].worker;
        ck_assert(known.orders.pressed && !state->fleets[0].workers[1].worker.orders.pressed);
        free(bytes);
        /* Once that is over, one that still drains is no sign of it. */
        reading.avg10 = 0;
        press(12);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_EASED), 1);
        source.now = t.now;
        ck_assert_int_eq(state_pack(&source, &bytes, &size), 0);
        struct state *after = NULL;
        ck_assert_int_eq(state_unpack(bytes, size, "boot", t.now, &after), STATE_READ);
        ck_assert(!after->fleets[0].workers[2].worker.orders.pressed);
        state_free(after);
        free(bytes);
        /* What the next one does. This one has left meanwhile. */
        t.world->pressure = (struct pressure){0};
        state_continue_fleet(t.fleet, &state->fleets[0], t.now);
        ck_assert(pressure_response_holds(t.world));
        known.index = 5;
        ck_assert_ptr_nonnull(observe_adopted(t.fleet, &known, 0, 0, t.now));
        ck_assert_uint_eq(t.fleet->places_left, 1);
        /* Without a limit it is no word of anything. */
        t.settings.pressure_limit = 0;
        known.index = 6;
        ck_assert(!observe_adopted(t.fleet, &known, 0, 0, t.now)->orders.pressed);
        state_free(state);
}

TEST_MAIN("relief", .each = {setup, teardown})
