/* SPDX-License-Identifier: MIT */
/* Advice on leaks: what workers hold is read for hours, of one generation and the next. */
#include "advice/leak.h"
#include "continuity/state.h"
#include "golden.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

#define MEGABYTE ((uint64_t)1 << 20)
#define EACH     (30 * USEC_PER_SEC)

TEST_WORLD(3)
{
        t.fleet_settings.memory_threshold = 1024 * MEGABYTE;
        test_settle(&t);
}

/* Those of the newest generation grow by so much an hour, each from so much, one of them not where steady. */
static void grow(double hours, uint64_t from, uint64_t an_hour, unsigned steady)
{
        usec_t begun = t.now;

        for (; t.now < begun + (usec_t)(hours * 3600) * USEC_PER_SEC; t.now += EACH) {
                uint64_t grown = an_hour * MEGABYTE * ((t.now - begun) / USEC_PER_SEC) / 3600;

                for (size_t i = 0; i < t.fleet->n_workers; i++) {
                        struct worker *worker = t.fleet->workers[i];

                        if (!worker_outdated(worker))
                                observe_memory(worker,
                                               from * MEGABYTE + (worker->index == steady ? 0 : grown),
                                               t.now);
                }
                observe_time(t.world, t.now);
        }
}

/* Another generation, all at once. */
static void replace(void)
{
        generation_restart(t.fleet);
        for (size_t i = 0; i < t.fleet->n_workers; i++) {
                t.fleet->workers[i]->generation = t.fleet->generation;
                t.fleet->workers[i]->memory.trend = (struct trend){0};
                t.fleet->workers[i]->memory.fit = (struct trend_fit){0};
                t.fleet->workers[i]->memory.over_threshold = false;
        }
}

TEST(a_leak_is_reported_once_with_when_it_reaches_the_threshold)
{
        char text[LEAK_TEXT_MAX];

        grow(1.9, 300, 60, 0);
        ck_assert(!t.fleet->leak.grows);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_GROWTH), 0);
        grow(2.5, 300, 60, 0);
        golden_begin();
        golden_add("fleet", leak_text(t.fleet, text));
        golden_add("worker", leak_worker_text(test_worker(&t, 2), text));
        golden_add("event", test_event_text(&t, EVENT_MEMORY_GROWTH));
        golden_end("leak", "reaches the threshold");
        ck_assert_ptr_eq(leak_first(t.fleet), test_worker(&t, 1));
        ck_assert_uint_eq(leak_bytes_per_hour(t.fleet) / MEGABYTE, 60);
        grow(1, 450, 60, 0);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_GROWTH), 1);
}

TEST(siblings_that_do_not_are_no_proof)
{
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                t.fleet->workers[i]->state = i == 0 ? WORKER_ACTIVE : WORKER_QUIET;
        grow(3, 300, 60, 0);
        /* What drains is not read for it, and one alone is judged by itself. */
        ck_assert(t.fleet->leak.grows);
        ck_assert_uint_eq(t.fleet->workers[1]->memory.trend.n, 0);
        t.fleet->leak = (struct leak){0};
        for (size_t i = 0; i < t.fleet->n_workers; i++) {
                t.fleet->workers[i]->state = WORKER_ACTIVE;
                t.fleet->workers[i]->memory.trend = (struct trend){0};
        }
        t.fleet->workers[2]->state = WORKER_QUIET;
        grow(3, 300, 60, 1);
        ck_assert(!t.fleet->leak.grows);
}

TEST(what_does_not_grow_or_has_no_limit)
{
        char text[LEAK_TEXT_MAX];

        golden_begin();
        grow(3, 300, 0, 0);
        ck_assert(!t.fleet->leak.grows);
        golden_add("no growth", leak_text(t.fleet, text));
        golden_add("no growth, worker", leak_worker_text(test_worker(&t, 2), text));
        t.fleet_settings.memory_threshold = 0;
        grow(3, 300, 60, 0);
        ck_assert_ptr_null(leak_first(t.fleet));
        golden_add("no limit", leak_text(t.fleet, text));
        t.fleet_settings.memory_limit = 500 * MEGABYTE;
        ck_assert_ptr_eq(leak_first(t.fleet), test_worker(&t, 1));
        golden_add("memory_limit", leak_text(t.fleet, text));
        FLEET_FOREACH_WORKER(t.fleet, worker)
                worker->process.forked = true;
        ck_assert_ptr_null(leak_first(t.fleet));
        golden_add("forked workers", leak_text(t.fleet, text));
        golden_end("leak", "limits");
}

static void expect_times(double times, uint64_t generation)
{
        uint64_t than = 0;

        ck_assert_double_eq_tol(leak_times(t.fleet, &than), times, 0.05);
        ck_assert_uint_eq(than, generation);
}

TEST(a_release_is_compared_with_the_one_that_grew_before_it)
{
        uint64_t than;
        char text[LEAK_TEXT_MAX];

        grow(3, 300, 20, 0);
        ck_assert_double_eq(leak_times(t.fleet, &than), 0);
        replace();
        grow(3, 300, 80, 0);
        golden_begin();
        golden_add("4 times", leak_text(t.fleet, text));
        expect_times(4, 1);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_GROWTH), 2);
        replace();
        grow(3, 300, 0, 0);
        ck_assert(!t.fleet->leak.grows);
        replace();
        grow(3, 300, 120, 0);
        golden_add("1.5 times", leak_text(t.fleet, text));
        expect_times(1.5, 2);
        replace();
        grow(3, 300, 120, 0);
        golden_add("as fast", leak_text(t.fleet, text));
        golden_end("leak", "releases");
}

TEST(the_state_keeps_what_grew)
{
        struct state_source source = {.world = t.world, .boot_id = "boot", .now = t.now};
        struct state *state = NULL;
        uint8_t *bytes = NULL;
        size_t size;

        grow(3, 300, 20, 0);
        source.now = t.now;
        ck_assert_int_eq(state_pack(&source, &bytes, &size), 0);
        ck_assert_int_eq(state_unpack(bytes, size, "boot", t.now, &state), STATE_READ);
        struct leak_past past = t.fleet->leak.past[0];
        t.fleet->leak = (struct leak){0};
        state_continue_fleet(t.fleet, &state->fleets[0], t.now);
        ck_assert_uint_eq(t.fleet->leak.past[0].generation, 1);
        ck_assert_uint_eq(t.fleet->leak.past[0].bytes_per_day, past.bytes_per_day);
        /* It is not told again. */
        unsigned reported = test_events(&t, EVENT_MEMORY_GROWTH);
        grow(3, 360, 20, 0);
        ck_assert(t.fleet->leak.grows);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_GROWTH), reported);
        state_free(state);
        free(bytes);
}

TEST_MAIN("growth", .each = {setup, teardown})
