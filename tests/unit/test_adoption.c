/* SPDX-License-Identifier: MIT */
/* Who of the living is ours, and which worker: by tables of what is to be seen of processes. */
/* promises: P4 */
#include "frameworks/sidekiq/format.h"
#include "model/adoption.h"
#include "unit.h"

#define NOW     (1000 * USEC_PER_SEC)
#define OURS    "00000000000000aa"
#define ANOTHER "00000000000000bb"
#define USER    100
#define SUBMIT  101

static struct fleet_settings fleet_settings[2];
static struct fleet_settings *fleet_list[2] = {&fleet_settings[0], &fleet_settings[1]};
static struct settings settings;
static struct world *world;
static struct adoption *adoption;

static void setup(void)
{
        static const char *const names[] = {"mail", "video"};

        for (size_t i = 0; i < 2; i++)
                fleet_settings[i] = (struct fleet_settings){
                        .name = (char *)names[i],
                        .traits = &sidekiq_traits,
                        .active_process_count = 2,
                        .restart_surge = {.value = 100, .percent = true},
                        .boot_timeout = (i + 1) * USEC_PER_MIN,
                };
        settings = (struct settings){.check_interval = 5 * USEC_PER_SEC, .fleets = fleet_list, .n_fleets = 2};
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        ck_assert_int_eq(adoption_new(world, OURS, 0, &adoption), 0);
        adoption_seek(adoption, world->fleets[0], USER, NOW);
        adoption_seek(adoption, world->fleets[1], SUBMIT, NOW);
}

static void teardown(void)
{
        adoption = adoption_free(adoption);
        world = world_free(world);
}

static struct sighting leader(pid_t pid)
{
        return (struct sighting){
                .pid = pid, .parent = 1, .group = pid, .session = pid, .start = (uint64_t)pid, .uid = USER};
}

/* One that carries our mark. */
static struct sighting marked(pid_t pid, const char *worker)
{
        struct sighting sighting = leader(pid);

        sighting.instance = OURS;
        sighting.worker = worker;
        sighting.generation = "1";
        return sighting;
}

/* One whose title has grown over its mark, in our control group. */
static struct sighting overwritten(pid_t pid)
{
        struct sighting sighting = leader(pid);

        sighting.in_service = true;
        sighting.booted_as = &sidekiq_traits;
        return sighting;
}

/* One search in which all that is judged ours is taken. Returns whether all is clear. */
static bool search(const struct sighting *seen, size_t n)
{
        const struct claimant *claimant;

        adoption_search_begin(adoption);
        for (size_t i = 0; i < n; i++)
                ck_assert_int_eq(adoption_see(adoption, &seen[i]), 0);
        adoption_judge(adoption);
        while ((claimant = adoption_next(adoption, NOW)))
                ck_assert_ptr_nonnull(adoption_take(adoption, claimant, NOW - USEC_PER_SEC, NOW));
        return adoption_search_end(adoption, 0, NOW);
}
#define SEARCH(...)                                                                                          \
        search((const struct sighting[]){__VA_ARGS__},                                                       \
               sizeof((const struct sighting[]){__VA_ARGS__}) / sizeof(struct sighting))

/* "mail/1=10 mail/2=11" */
static const char *adopted(void)
{
        static char text[512];
        size_t n = 0;

        text[0] = '\0';
        for (size_t i = 0; i < world->n_fleets; i++)
                for (size_t j = 0; j < world->fleets[i]->n_workers; j++) {
                        const struct worker *worker = world->fleets[i]->workers[j];

                        n += (size_t)snprintf(text + n, sizeof(text) - n, "%s%s=%d", n > 0 ? " " : "",
                                              WORKER_ID(worker), (int)worker->pid);
                }
        return text;
}

/* The state tells of this fleet, with a start of index under way; 0: none. */
static void known(struct fleet *fleet, unsigned index)
{
        struct state_worker started = {.worker = {.index = index, .generation = 3}};
        const struct state_fleet saved = {
                .name = fleet->settings->name,
                .generation = 3,
                .launch_hash = fleet->settings->launch_hash,
                .workers = &started,
                .n_workers = index > 0,
        };

        ck_assert_int_eq(adoption_continue_fleet(adoption, fleet, &saved, NOW), 0);
}

START_TEST(a_mark_counts_from_who_may_carry_it)
{
        struct sighting foreign = marked(11, "mail/1"), user = foreign, place = foreign, place2 = foreign;
        struct sighting fleet = foreign, removed = foreign, moved = foreign;

        foreign.instance = ANOTHER;
        user.instance = OURS, user.uid = 7;
        place.worker = "mail/0";
        place2.worker = "mail/1x";
        fleet.worker = "mail";
        removed.worker = "gone/1";
        ck_assert(SEARCH(foreign, user, place, place2, fleet, removed));
        ck_assert_str_eq(adopted(), "");
        /* In our service, another instance is our own with its state file in another place. */
        moved.instance = ANOTHER;
        moved.in_service = true;
        ck_assert(SEARCH(moved));
        ck_assert_str_eq(adopted(), "mail/1=11");
}
END_TEST

START_TEST(of_several_of_one_worker_the_leader_counts_then_the_eldest)
{
        struct sighting wrapper = marked(20, "mail/1"), child = marked(19, "mail/1");
        struct sighting orphan = marked(10, "mail/2"), elder = marked(30, "mail/2");
        struct sighting younger = marked(31, "mail/2");

        child.parent = child.group = child.session = 20;
        orphan.group = orphan.session = 9;
        younger.start = 99;
        ck_assert(SEARCH(child, wrapper, orphan, younger, elder));
        ck_assert_str_eq(adopted(), "mail/1=20 mail/2=30");
}
END_TEST

START_TEST(a_known_fleet_takes_back_what_it_was_starting_alone)
{
        struct sighting right = marked(10, "mail/2"), other = marked(11, "mail/1");
        struct sighting of_before = marked(12, "mail/2");

        known(world->fleets[0], 2);
        known(world->fleets[1], 0);
        ck_assert(adoption_needs_search(adoption));
        of_before.generation = "2";
        ck_assert(!SEARCH(of_before, other));
        ck_assert_str_eq(adopted(), "");
        right.generation = "3";
        ck_assert(SEARCH(right, other));
        ck_assert_str_eq(adopted(), "mail/2=10");
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 3);
}
END_TEST

START_TEST(nothing_is_searched_where_the_state_tells_all)
{
        known(world->fleets[0], 0);
        known(world->fleets[1], 0);
        ck_assert(!adoption_needs_search(adoption));
}
END_TEST

START_TEST(starts_are_held_until_two_searches_find_nothing_of_one_that_was_under_way)
{
        known(world->fleets[0], 1);
        known(world->fleets[1], 0);
        ck_assert(!search(NULL, 0));
        ck_assert_uint_eq(world->fleets[0]->hold_until, NOW + USEC_PER_MIN);
        ck_assert_uint_eq(world->fleets[1]->hold_until, NOW + USEC_PER_MIN);
        ck_assert(search(NULL, 0));
        ck_assert_uint_eq(world->fleets[0]->hold_until, 0);
}
END_TEST

START_TEST(one_that_launches_is_waited_for_unless_its_sqmgr_lives)
{
        struct sighting launching = leader(10), of_another = leader(11), of_nobody = leader(12);

        launching.launching = of_another.launching = of_nobody.launching = true;
        of_another.parent_starts = true;
        of_nobody.uid = 7;
        ck_assert(!SEARCH(launching));
        ck_assert_uint_ne(world->fleets[0]->hold_until, 0);
        ck_assert(SEARCH(of_another, of_nobody));
}
END_TEST

START_TEST(a_search_that_fails_puts_the_end_off)
{
        adoption_search_begin(adoption);
        usec_t late = adoption->until - USEC_PER_MSEC;
        ck_assert(!adoption_search_end(adoption, -EMFILE, late));
        ck_assert_uint_gt(world->fleets[0]->hold_until, late + 100 * USEC_PER_MSEC);
}
END_TEST

START_TEST(the_control_group_tells_of_a_leader_that_has_booted)
{
        struct sighting child = overwritten(10), elsewhere = overwritten(11), booting = overwritten(12);
        struct sighting user = overwritten(13), other = overwritten(14);

        child.session = 9;
        elsewhere.in_service = false;
        booting.booted_as = NULL;
        user.uid = 7;
        other.uid = SUBMIT;
        ck_assert(SEARCH(child, elsewhere, booting, user, overwritten(15), other));
        ck_assert_str_eq(adopted(), "mail/1=15 video/1=14");
}
END_TEST

START_TEST(a_place_that_is_told_is_not_given_to_one_that_tells_none)
{
        ck_assert(SEARCH(overwritten(10), marked(11, "mail/1")));
        ck_assert_str_eq(adopted(), "mail/1=11 mail/2=10");
}
END_TEST

START_TEST(one_that_tells_no_place_waits_for_those_that_launch)
{
        struct sighting launching = leader(11);

        launching.launching = true;
        ck_assert(!SEARCH(overwritten(10), launching));
        ck_assert_str_eq(adopted(), "");
        ck_assert(SEARCH(overwritten(10), marked(11, "mail/1")));
        ck_assert_str_eq(adopted(), "mail/1=11 mail/2=10");
}
END_TEST

START_TEST(nobody_is_adopted_twice)
{
        struct sighting launching = leader(12);

        launching.launching = true;
        ck_assert(!SEARCH(marked(11, "mail/1"), launching));
        /* Its title grew over its mark meanwhile. */
        ck_assert(SEARCH(overwritten(11), overwritten(12)));
        ck_assert_str_eq(adopted(), "mail/1=11 mail/2=12");
}
END_TEST

START_TEST(a_start_under_way_is_found_by_the_control_group_once_all_is_clear)
{
        known(world->fleets[0], 2);
        known(world->fleets[1], 0);
        ck_assert(!SEARCH(overwritten(10)));
        ck_assert_str_eq(adopted(), "");
        ck_assert(SEARCH(overwritten(10)));
        ck_assert_str_eq(adopted(), "mail/2=10");
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 3);
}
END_TEST

START_TEST(with_the_state_lost_the_workers_tell_the_generation)
{
        struct sighting old = marked(10, "mail/1"), new = marked(11, "mail/2"), untold = marked(12, "mail/3");

        old.generation = "4";
        new.generation = "9";
        untold.generation = NULL;
        ck_assert(SEARCH(old, new, untold));
        ck_assert_uint_eq(world->fleets[0]->generation, 9);
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 4);
        ck_assert_uint_eq(world->fleets[0]->workers[2]->generation, 9);
        ck_assert_uint_eq(world->fleets[1]->generation, 1);
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("adoption");
        TCase *cases = tcase_create("adoption");

        tcase_add_checked_fixture(cases, setup, teardown);
        tcase_add_test(cases, a_mark_counts_from_who_may_carry_it);
        tcase_add_test(cases, of_several_of_one_worker_the_leader_counts_then_the_eldest);
        tcase_add_test(cases, a_known_fleet_takes_back_what_it_was_starting_alone);
        tcase_add_test(cases, nothing_is_searched_where_the_state_tells_all);
        tcase_add_test(cases, starts_are_held_until_two_searches_find_nothing_of_one_that_was_under_way);
        tcase_add_test(cases, one_that_launches_is_waited_for_unless_its_sqmgr_lives);
        tcase_add_test(cases, a_search_that_fails_puts_the_end_off);
        tcase_add_test(cases, the_control_group_tells_of_a_leader_that_has_booted);
        tcase_add_test(cases, a_place_that_is_told_is_not_given_to_one_that_tells_none);
        tcase_add_test(cases, one_that_tells_no_place_waits_for_those_that_launch);
        tcase_add_test(cases, nobody_is_adopted_twice);
        tcase_add_test(cases, a_start_under_way_is_found_by_the_control_group_once_all_is_clear);
        tcase_add_test(cases, with_the_state_lost_the_workers_tell_the_generation);
        suite_add_tcase(suite, cases);
        return unit_main(suite);
}
