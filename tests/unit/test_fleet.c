/* SPDX-License-Identifier: MIT */
/* The model itself: counts, names, looks, indexes, backoff and events. */
#include "model/deadlines.h"
#include "model/fleets.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "world.h"

/* Allocations that may still succeed; below 0: all. */
static int allocations_left = -1;

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
        return allocations_left >= 0 && allocations_left-- == 0 ? NULL : __real_calloc(n, size);
}

TEST_WORLD(3)
{
}

TEST(every_name_is_reported)
{
        for (int i = 0; i < _WORKER_STATE_MAX; i++)
                ck_assert_ptr_nonnull(worker_state_name(i));
        for (int i = 0; i < _REASON_MAX; i++) {
                ck_assert_ptr_nonnull(reason_name(i));
                ck_assert_int_eq(reason_text(i)[0] == '\0', i == REASON_NONE);
        }
        for (int i = 0; i < _ROLLOUT_STATE_MAX; i++)
                ck_assert_ptr_nonnull(rollout_state_name(i));
        for (int i = 0; i < _FLEET_ORDER_MAX; i++)
                ck_assert_ptr_nonnull(fleet_order_name(i));
        for (int i = 0; i < _EVENT_MAX; i++)
                ck_assert_ptr_nonnull(event_kinds[i].name);
}

TEST(every_event_has_an_id_of_its_own)
{
        for (int i = 0; i < _EVENT_MAX; i++) {
                const char *id = event_kinds[i].message_id;

                ck_assert_uint_eq(strlen(id), 32);
                ck_assert_uint_eq(strspn(id, "0123456789abcdef"), 32);
                for (int j = 0; j < i; j++)
                        ck_assert_str_ne(id, event_kinds[j].message_id);
        }
}

TEST(counts_by_state)
{
        test_spawn(&t);
        struct worker *quiet = test_spawn_ready(&t), *stopping = test_spawn_ready(&t), *gone = test_spawn(&t);

        test_spawn_ready(&t);
        observe_quieted(quiet, REASON_OPERATOR, 0, t.now);
        observe_stopped(stopping, REASON_OPERATOR, 0, t.now);
        test_exit(&t, gone, 0);
        t.fleet->generation++;
        struct fleet_counts counts = test_counts(&t);
        ck_assert_uint_eq(counts.live, 4);
        ck_assert_uint_eq(counts.starting, 1);
        ck_assert_uint_eq(counts.active, 1);
        ck_assert_uint_eq(counts.ready, 1);
        ck_assert_uint_eq(counts.quiet, 1);
        ck_assert_uint_eq(counts.stopping, 1);
        ck_assert_uint_eq(counts.outdated, 2);
}

TEST(ready_means_active_for_ready_after_and_fresh)
{
        struct worker *worker = test_spawn(&t);

        test_heartbeat(&t, worker, 100, 0, false);
        ck_assert(!worker_ready(worker, t.now));
        t.now += 10 * USEC_PER_SEC - 1;
        ck_assert(!worker_ready(worker, t.now));
        t.now++;
        ck_assert(worker_ready(worker, t.now));
        t.now += worker_stale_usec(worker);
        ck_assert(!worker_ready(worker, t.now));
}

TEST(the_lowest_free_index_is_taken)
{
        for (unsigned i = 1; i <= 4; i++)
                ck_assert_uint_eq(test_spawn(&t)->index, i);
        test_exit(&t, test_worker(&t, 2), 0);
        ck_assert_ptr_null(test_worker(&t, 2));
        fleet_reap(t.fleet, test_process_free);
        ck_assert_uint_eq(fleet_free_index(t.fleet), 2);
        ck_assert_uint_eq(test_spawn(&t)->index, 2);
        for (unsigned i = 5; i <= 20; i++)
                ck_assert_uint_eq(test_spawn(&t)->index, i);
        for (size_t i = 0; i < t.fleet->n_workers; i++)
                ck_assert_uint_eq(t.fleet->workers[i]->index, i + 1);
}

TEST(workers_and_fleets_are_found_by_exact_name)
{
        struct worker *worker = test_spawn(&t);
        char longest[FLEET_NAME_MAX + 4];

        ck_assert_ptr_eq(world_worker(t.world, "default/1"), worker);
        static const char *const none[] = {"default", "default/",   "default/01", "default/2", "defaul/1",
                                           "/1",      "default/1 ", "default/+1", ""};
        for (size_t i = 0; i < ELEMENTSOF(none); i++)
                ck_assert_ptr_null(world_worker(t.world, none[i]));
        memset(longest, 'x', sizeof(longest));
        memcpy(longest + sizeof(longest) - 3, "/1", 3);
        ck_assert_ptr_null(world_worker(t.world, longest));
        char name[FLEET_NAME_MAX + 1] = "";
        memset(name, 'x', FLEET_NAME_MAX);
        t.fleet_settings.name = name;
        snprintf(longest, sizeof(longest), "%s/1", name);
        ck_assert_ptr_eq(world_worker(t.world, longest), worker);
        ck_assert_ptr_null(world_fleet(t.world, "other"));
}

TEST(events_are_kept_in_order_and_cut_at_their_bound)
{
        char text[4000];

        memset(text, 'a', sizeof(text) - 1);
        text[sizeof(text) - 1] = '\0';
        for (unsigned i = 0; i < 10100; i++)
                world_event(t.world, EVENT_ORDER, NULL, NULL, "%s", text);
        ck_assert_uint_eq(t.world->n_events, 10000);
        ck_assert_uint_eq(strlen(t.world->events[99].text), 2303);
        world_events_clear(t.world);
        ck_assert_uint_eq(t.world->n_events, 0);
        world_event(t.world, EVENT_ORDER, t.fleet, NULL, "again");
        ck_assert_str_eq(test_event_text(&t, EVENT_ORDER), "again");
        ck_assert_uint_eq(t.world->events[0].index, 0);
}

TEST(looks_are_fast_only_in_transition)
{
        struct worker *worker = test_spawn(&t);

        ck_assert(fleet_wants_fast_polls(t.fleet, t.now));
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), POLL_HEARTBEAT | POLL_ARGUMENTS);
        test_heartbeat(&t, worker, 100, 0, false);
        ck_assert(!fleet_wants_fast_polls(t.fleet, t.now));
        ck_assert_uint_eq(worker_poll_items(worker, false, t.now),
                          POLL_HEARTBEAT | POLL_MEMORY | POLL_THREADS);
        observe_threads(worker, 5);
        ck_assert_uint_eq(worker_poll_items(worker, false, t.now), POLL_HEARTBEAT | POLL_MEMORY);
        observe_quieted(worker, REASON_OPERATOR, 0, t.now);
        test_heartbeat(&t, worker, 105, 2, true);
        ck_assert(!fleet_wants_fast_polls(t.fleet, t.now));
        test_heartbeat(&t, worker, 110, 0, true);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now),
                          POLL_HEARTBEAT | POLL_WORK_LIST | POLL_THREADS | POLL_TITLE);
        test_redis(&t, false);
        ck_assert(!fleet_wants_fast_polls(t.fleet, t.now));
        ck_assert_uint_ne(worker_poll_items(worker, false, t.now) & POLL_TITLE, 0);
        observe_stopped(worker, REASON_OPERATOR, 0, t.now);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), 0);
        ck_assert_uint_ne(worker_poll_items(worker, false, t.now) & POLL_MEMORY, 0);
        test_exit(&t, worker, 0);
        ck_assert_uint_eq(worker_poll_items(worker, false, t.now), 0);
}

TEST(one_that_heartbeats_elsewhere_is_not_looked_at_fast)
{
        struct worker *worker = test_spawn(&t);

        t.now += 120 * USEC_PER_SEC;
        ck_assert_uint_ne(worker_poll_items(worker, false, t.now) & POLL_BOOT, 0);
        observe_booted(worker, true, t.now);
        ck_assert_uint_eq(worker_poll_items(worker, true, t.now), 0);
}

TEST(backoff_doubles_with_full_jitter_up_to_its_bound)
{
        static const usec_t ceilings[] = {1, 2, 4, 8, 16, 32, 60, 60, 60};
        uint64_t random = 7;
        usec_t longest[ELEMENTSOF(ceilings)] = {0}, shortest = USEC_INFINITY;

        for (unsigned run = 0; run < 200; run++) {
                struct backoff backoff = {0};
                for (size_t i = 0; i < ELEMENTSOF(ceilings); i++) {
                        usec_t now = (i + 1) * USEC_PER_HOUR;
                        backoff_fail(&backoff, &random, now);
                        ck_assert_uint_eq(backoff.count, i + 1);
                        ck_assert_uint_eq(backoff.failed_at, now);
                        ck_assert_uint_ge(backoff.next_at, now);
                        ck_assert_uint_le(backoff.next_at - now, ceilings[i] * USEC_PER_SEC);
                        longest[i] = MAX(longest[i], backoff.next_at - now);
                        shortest = MIN(shortest, backoff.next_at - now);
                }
                backoff_reset(&backoff);
                ck_assert_uint_eq(backoff.count, 0);
        }
        for (size_t i = 0; i < ELEMENTSOF(ceilings); i++)
                ck_assert_uint_gt(longest[i], ceilings[i] * USEC_PER_SEC * 9 / 10);
        ck_assert_uint_lt(shortest, USEC_PER_SEC / 10);
}

TEST(backoff_never_overflows_and_a_later_try_stays_later)
{
        struct backoff many = {.count = 100000}, later = {.next_at = USEC_PER_DAY};
        uint64_t random = 1;

        backoff_fail(&many, &random, USEC_PER_HOUR);
        ck_assert_uint_le(many.next_at, USEC_PER_HOUR + 60 * USEC_PER_SEC);
        backoff_fail(&later, &random, USEC_PER_HOUR);
        ck_assert_uint_eq(later.next_at, USEC_PER_DAY);
}

TEST(freeing_nothing_is_harmless)
{
        ck_assert_ptr_null(world_free(NULL));
}

TEST(a_world_that_lacks_memory_is_not_made)
{
        struct fleet_settings other = t.fleet_settings;
        struct fleet_settings *list[] = {&t.fleet_settings, &other};
        const struct settings settings = {.fleets = list, .n_fleets = 2};
        struct world *world = NULL;
        int r = -ENOMEM, failures;

        other.name = (char *)"other";
        for (failures = 0; r < 0; failures++) {
                allocations_left = failures;
                r = world_new(&settings, 1, &world);
                allocations_left = -1;
                ck_assert(r == 0 || (r == -ENOMEM && !world));
        }
        ck_assert_int_eq(failures - 1, 4); /* the world, its list, two fleets */
        ck_assert_uint_eq(world->n_fleets, 2);
        world_free(world);
}

TEST_MAIN("fleet", .each = {setup, teardown})
