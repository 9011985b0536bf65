/* SPDX-License-Identifier: MIT */
/* Who of the living is ours, and which worker: by tables of what is to be seen of processes. */
/* promises: P4 */
#include "continuity/adoption.h"
#include "continuity/state.h"
#include "decide/plan.h"
#include "frameworks/sidekiq/format.h"
#include "model/fleets.h"
#include "model/idle_proof.h"
#include "model/names.h"
#include "model/world.h"
#include "observe/observe_template.h"
#include "unit.h"

#define NOW     (1000 * USEC_PER_SEC)
#define STARTED (900 * USEC_PER_SEC)
#define OURS    "00000000000000aa"
#define ANOTHER "00000000000000bb"
#define USER    100
#define SUBMIT  101

/* Allocations that may still succeed; below 0: all. */
static int allocations_left = -1;

static bool allocation_fails(void)
{
        return allocations_left >= 0 && allocations_left-- == 0;
}

void *__real_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size);
void *__wrap_calloc(size_t n, size_t size)
{
        return allocation_fails() ? NULL : __real_calloc(n, size);
}

void *__real_realloc(void *before, size_t size);
void *__wrap_realloc(void *before, size_t size);
void *__wrap_realloc(void *before, size_t size)
{
        return allocation_fails() ? NULL : __real_realloc(before, size);
}

void *__real_reallocarray(void *before, size_t n, size_t size);
void *__wrap_reallocarray(void *before, size_t n, size_t size);
void *__wrap_reallocarray(void *before, size_t n, size_t size)
{
        return allocation_fails() ? NULL : __real_reallocarray(before, n, size);
}

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

/* One that has not run its command yet. */
static struct sighting launcher(pid_t pid)
{
        struct sighting sighting = leader(pid);

        sighting.launching = true;
        return sighting;
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
static bool search_at(const struct sighting *seen, size_t n, usec_t now)
{
        const struct claimant *claimant;

        adoption_search_begin(adoption);
        for (size_t i = 0; i < n; i++)
                ck_assert_int_eq(adoption_see(adoption, &seen[i]), 0);
        adoption_judge(adoption);
        while ((claimant = adoption_next(adoption, now)))
                ck_assert_ptr_nonnull(adoption_take(adoption, claimant, NOW - USEC_PER_SEC, now));
        return adoption_search_end(adoption, 0, now);
}

static bool search(const struct sighting *seen, size_t n)
{
        return search_at(seen, n, NOW);
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
                                              WORKER_ID(worker), (int)worker->process.pid);
                }
        return text;
}

/* The state tells of this fleet, with a start of index under way; 0: none. */
static void known_of(struct fleet *fleet, unsigned index, uint64_t generation)
{
        struct state_worker started = {
                .worker = {.index = index, .generation = generation, .spawned_at = STARTED}};
        const struct state_fleet saved = {
                .name = fleet->settings->name,
                .generation = 3,
                .launch_hash = fleet->settings->launch_hash,
                .workers = &started,
                .n_workers = index > 0,
        };

        ck_assert_int_eq(adoption_continue_fleet(adoption, fleet, &saved, NOW), 0);
}

static void known(struct fleet *fleet, unsigned index)
{
        known_of(fleet, index, 3);
}

/* The same of the first fleet, and none of the second. */
static void known_all(unsigned index)
{
        known(world->fleets[0], index);
        known(world->fleets[1], 0);
}

/* After a search among these all is clear, and all that is adopted is as the text says. */
#define ADOPTS_ALL(text, ...)                                                                                \
        do {                                                                                                 \
                ck_assert(SEARCH(__VA_ARGS__));                                                              \
                ck_assert_str_eq(adopted(), text);                                                           \
        } while (0)
/* The same, and more is to be looked for. */
#define ADOPTS(text, ...)                                                                                    \
        do {                                                                                                 \
                ck_assert(!SEARCH(__VA_ARGS__));                                                             \
                ck_assert_str_eq(adopted(), text);                                                           \
        } while (0)

TEST(a_mark_counts_from_who_may_carry_it)
{
        struct sighting foreign = marked(11, "mail/1"), user = foreign, place = foreign, place2 = foreign;
        struct sighting fleet = foreign, removed = foreign;

        foreign.instance = ANOTHER;
        user.instance = OURS, user.uid = 7;
        place.worker = "mail/0";
        place2.worker = "mail/1x";
        fleet.worker = "mail";
        removed.worker = "gone/1";
        ADOPTS_ALL("", foreign, user, place, place2, fleet, removed);
}

TEST(in_our_service_another_instance_is_our_own_with_its_state_elsewhere)
{
        struct sighting moved = marked(11, "mail/1");

        moved.instance = ANOTHER;
        moved.in_service = true;
        ADOPTS_ALL("mail/1=11", moved);
}

TEST(of_several_of_one_worker_the_leader_counts_then_the_eldest)
{
        struct sighting wrapper = marked(20, "mail/1"), child = marked(19, "mail/1");
        struct sighting orphan = marked(10, "mail/2"), elder = marked(30, "mail/2");
        struct sighting younger = marked(31, "mail/2");

        child.parent = child.group = child.session = 20;
        orphan.group = orphan.session = 9;
        younger.start = 99;
        /* None of the others is passed over: it may be the worker all the same. */
        ADOPTS_ALL("mail/1=20 mail/2=30 mail/7=31 mail/8=10", child, wrapper, orphan, younger, elder);
        for (size_t i = 0; i < 4; i++)
                ck_assert(world->fleets[0]->workers[i]->process.unproven);
}

TEST(what_has_booted_is_the_worker_before_what_an_elder_one_left_behind)
{
        struct sighting elder = marked(10, "mail/1"), live = marked(20, "mail/1");
        struct sighting wrapper = marked(30, "mail/2"), below = marked(31, "mail/2");
        struct sighting left = marked(29, "mail/2");

        live.booted_as = below.booted_as = &sidekiq_traits;
        below.parent = below.group = below.session = 30;
        ADOPTS_ALL("mail/1=20 mail/2=30", elder, live, left, wrapper, below);
        ck_assert(!world->fleets[0]->workers[0]->process.unproven);
        ck_assert(!world->fleets[0]->workers[1]->process.unproven);
}

TEST(of_what_has_not_booted_the_last_start_counts)
{
        struct sighting elder = marked(10, "mail/1"), live = marked(20, "mail/1");

        elder.started_at = STARTED - 1;
        live.started_at = STARTED;
        ADOPTS_ALL("mail/1=20", elder, live);
        ck_assert(world->fleets[0]->workers[0]->process.unproven);
}

TEST(two_that_have_booted_in_one_place_are_both_taken)
{
        struct sighting elder = marked(10, "mail/1"), live = marked(20, "mail/1");

        elder.started_at = STARTED - 1;
        live.started_at = STARTED;
        elder.booted_as = live.booted_as = &sidekiq_traits;
        ADOPTS_ALL("mail/1=20 mail/7=10", elder, live);
}

TEST(one_that_shows_itself_later_is_not_kept_out_by_what_proved_nothing)
{
        struct sighting left = marked(10, "mail/1"), live = marked(20, "mail/1"), launching = leader(11);

        launching.launching = true;
        left.started_at = STARTED - 1;
        live.started_at = STARTED;
        ADOPTS("mail/1=10", left, launching);
        ADOPTS_ALL("mail/1=10 mail/7=20", left, live);
}

TEST(a_known_fleet_takes_back_what_it_was_starting_alone)
{
        struct sighting right = marked(10, "mail/2"), other = marked(11, "mail/1");
        struct sighting of_before = marked(12, "mail/2");

        known_all(2);
        ck_assert(adoption_needs_search(adoption));
        of_before.generation = "2";
        ADOPTS("", of_before, other);
        right.generation = "3";
        ADOPTS_ALL("mail/2=10", right, other);
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 3);
}

TEST(a_start_under_way_is_known_from_those_before_it)
{
        struct sighting leftover = marked(10, "mail/2"), right = marked(11, "mail/2");

        known_all(2);
        leftover.generation = right.generation = "3";
        leftover.started_at = STARTED - 1;
        right.started_at = STARTED;
        ADOPTS("", leftover);
        ADOPTS_ALL("mail/2=11", leftover, right);
        ck_assert_uint_eq(world->fleets[0]->workers[0]->spawned_at, STARTED);
}

/* The state names a worker of that start, whose processes have ended meanwhile. */
static void ended(enum worker_state state, bool quiet_ordered)
{
        const struct worker was = {
                .index = 2,
                .generation = 3,
                .process.pid = 8,
                .process.start = 8,
                .process.heartbeat_pid = 9,
                .process.heartbeat_start = 9,
                .spawned_at = STARTED,
                .state = state,
                .orders.quiet = quiet_ordered,
        };

        known_all(0);
        const struct worker *worker = adoption_take_known(adoption, world->fleets[0], &was, 0, 0, NOW);
        ck_assert_int_eq(worker->state, WORKER_GONE);
        fleet_reap(world->fleets[0], NULL);
}

TEST_LOOP(of_a_worker_that_has_ended_what_else_has_booted_takes_its_place, 2)
{
        struct sighting left = marked(10, "mail/2"), earlier = left, right = left;

        ended(_i == 0 ? WORKER_ACTIVE : WORKER_QUIET, _i == 1);
        ck_assert(adoption_needs_search(adoption));
        left.generation = earlier.generation = right.generation = "3";
        left.started_at = right.started_at = STARTED;
        earlier.started_at = STARTED - 1;
        earlier.pid = 11, right.pid = 12;
        earlier.booted_as = right.booted_as = &sidekiq_traits;
        ADOPTS_ALL("mail/2=12", left, earlier, right);
        const struct worker *worker = world->fleets[0]->workers[0];
        ck_assert(!worker->process.unproven);
        ck_assert_uint_eq(worker->generation, 3);
        ck_assert_int_eq(worker->orders.quiet, _i == 1);
        ck_assert_int_eq(worker->orders.succeeded, _i == 1);
}

TEST_LOOP(a_job_whose_worker_has_died_is_finished_and_is_no_worker, 3)
{
        struct sighting job = marked(10, "mail/1"), worker = marked(20, "mail/2"),
                        child = marked(21, "mail/2");
        struct sighting orphan = marked(22, "mail/2");

        job.booted_as = worker.booted_as = child.booted_as = orphan.booted_as = &sidekiq_traits;
        job.runs_one_job = child.runs_one_job = orphan.runs_one_job = true;
        child.parent = 20;
        /* Of an earlier start, or a later one: the worker has its place. */
        orphan.started_at = STARTED + (usec_t)_i;
        worker.started_at = child.started_at = STARTED + 1;
        ADOPTS_ALL("mail/1=10 mail/2=20 mail/7=22", job, worker, child, orphan);
        for (size_t i = 0; i < 3; i++) {
                const struct worker *taken = world->fleets[0]->workers[i];

                ck_assert_int_eq(taken->state, i == 1 ? WORKER_STARTING : WORKER_QUIET);
                ck_assert_int_eq(taken->reason, i == 1 ? REASON_NONE : REASON_CRASH);
                ck_assert_int_eq(taken->orders.finishes_job, i != 1);
                ck_assert(!worker_proven_idle(taken));
        }
}

TEST(for_what_a_worker_that_has_ended_left_no_start_is_held)
{
        struct sighting launching = launcher(11);

        ended(WORKER_ACTIVE, false);
        ck_assert(SEARCH(launching));
        ck_assert_uint_eq(world->fleets[0]->hold_until, 0);
        ck_assert_str_eq(adopted(), "");
}

/* Its place is given to another start at the very time at which it is given up. */
TEST(a_start_in_the_place_of_one_that_is_given_up_is_reported_once)
{
        struct sighting launching = leader(50);
        struct plan plan = {0};
        struct state *state = NULL;
        uint8_t *bytes;
        size_t size;

        launching.launching = true;
        known_all(2);
        ck_assert(!SEARCH(launching));
        usec_t now = world->fleets[0]->hold_until;
        ck_assert_int_eq(plan_make(&plan, world, now), 0);
        const struct state_source source = {
                .world = world,
                .starting = &plan,
                .underway = adoption->underway,
                .n_underway = adoption->n_underway,
                .boot_id = "boot",
                .now = now,
        };
        ck_assert_int_eq(state_pack(&source, &bytes, &size), 0);
        ck_assert_int_eq(state_unpack(bytes, size, "boot", now, &state), STATE_READ);
        ck_assert_uint_eq(state->fleets[0].n_workers, 2);
        ck_assert_uint_eq(state->fleets[0].workers[1].worker.spawned_at, now);
        state_free(state);
        free(bytes);
        plan_free(&plan);
}

/* A fleet's user may mark his own processes, and title them. Check's limit of time ends it otherwise. */
TEST(of_thousands_that_claim_one_place_no_more_are_taken_than_a_fleet_could_have)
{
        static struct sighting seen[4000];

        for (size_t i = 0; i < ELEMENTSOF(seen); i++) {
                seen[i] = marked((pid_t)(100 + i), "mail/1");
                seen[i].booted_as = &sidekiq_traits;
        }
        /* A place of its own comes first, however it stands in the line. */
        seen[3998].worker = "mail/2";
        seen[3999] = marked(10, "video/1");
        seen[3999].uid = SUBMIT;
        for (size_t i = 0; i < 2; i++) {
                ck_assert(search(seen, ELEMENTSOF(seen)));
                ck_assert_uint_eq(world->fleets[0]->n_workers, 64);
                ck_assert_int_eq(world->fleets[0]->workers[1]->process.pid, 4098);
                ck_assert_uint_eq(world->fleets[1]->n_workers, 1);
                ck_assert_ptr_eq(adoption_full(adoption), i == 0 ? world->fleets[0] : NULL);
                ck_assert_ptr_null(adoption_full(adoption));
        }
}

TEST(nothing_is_searched_where_the_state_reports_all)
{
        known_all(0);
        ck_assert(!adoption_needs_search(adoption));
}

TEST(starts_are_held_until_two_searches_find_nothing_of_one_that_was_under_way)
{
        known_all(1);
        ck_assert(!search(NULL, 0));
        ck_assert_uint_eq(world->fleets[0]->hold_until, NOW + USEC_PER_MIN);
        ck_assert_uint_eq(world->fleets[1]->hold_until, 0);
        ck_assert(search(NULL, 0));
        ck_assert_uint_eq(world->fleets[0]->hold_until, 0);
}

TEST(one_that_launches_is_waited_for_unless_its_sqmgr_lives)
{
        struct sighting launching = leader(10), of_another = leader(11), of_nobody = leader(12);

        launching.launching = of_another.launching = of_nobody.launching = true;
        of_another.parent_starts = true;
        of_nobody.uid = 7;
        ck_assert(!SEARCH(launching));
        ck_assert_uint_ne(world->fleets[0]->hold_until, 0);
        ck_assert(SEARCH(of_another, of_nobody));
}

TEST(one_that_launches_holds_the_fleets_of_its_user)
{
        struct sighting launching = launcher(10);

        ck_assert(!SEARCH(launching, marked(11, "mail/1")));
        ck_assert_uint_ne(world->fleets[0]->hold_until, 0);
        ck_assert(world->fleets[0]->unknown);
        ck_assert_uint_eq(world->fleets[1]->hold_until, 0);
        ck_assert(!world->fleets[1]->unknown);
        /* Nothing that comes later is a worker of an earlier sqmgr's of the other one. */
        struct sighting late = marked(12, "video/1");
        late.uid = SUBMIT;
        ADOPTS("mail/1=11", launching, late);
        ck_assert(SEARCH(late));
        ck_assert_uint_eq(world->fleets[0]->hold_until, 0);
}

/* Its before_start may run for as long as the boot_timeout of its own fleet, which may be the longest. */
TEST(one_that_launches_is_waited_for_as_long_as_any_fleet_of_its_user_boots)
{
        struct sighting launching = launcher(10);

        adoption->sought[1].uid = USER;
        ck_assert(!search_at(&launching, 1, NOW + USEC_PER_MIN));
        ck_assert_uint_eq(world->fleets[0]->hold_until, NOW + 2 * USEC_PER_MIN);
        ck_assert_uint_eq(world->fleets[1]->hold_until, NOW + 2 * USEC_PER_MIN);
        ck_assert(search_at(&launching, 1, NOW + 2 * USEC_PER_MIN));
        ck_assert_uint_eq(world->fleets[1]->hold_until, 0);
}

TEST(one_that_waits_for_those_of_its_user_keeps_none_of_another_waiting)
{
        struct sighting launching = leader(11), other = overwritten(12);

        launching.launching = true;
        other.uid = SUBMIT;
        ADOPTS("video/1=12", overwritten(10), launching, other);
        ck_assert_uint_eq(world->fleets[1]->hold_until, 0);
        ADOPTS_ALL("mail/1=10 video/1=12", overwritten(10), other);
}

TEST(fleets_of_one_user_are_clear_together)
{
        fleet_settings[1].traits = &sidekiq_traits;
        adoption->sought[1].uid = USER;
        known(world->fleets[1], 1);
        /* It may be of the fleet that is lost, which starts none before that is known. */
        ck_assert(!SEARCH(overwritten(10)));
        ck_assert_uint_ne(world->fleets[0]->hold_until, 0);
        ADOPTS_ALL("mail/1=10", overwritten(10));
}

TEST(one_that_launches_and_is_our_users_yet_holds_all)
{
        struct sighting launching = launcher(10);

        launching.uid = 0;
        ck_assert(!SEARCH(launching));
        ck_assert_uint_ne(world->fleets[0]->hold_until, 0);
        ck_assert_uint_ne(world->fleets[1]->hold_until, 0);
}

TEST(who_may_be_ours_is_reported_by_the_user)
{
        ck_assert(!adoption_seeks_user(adoption, 0));
        ck_assert(adoption_seeks_user(adoption, USER));
        ck_assert(adoption_seeks_user(adoption, SUBMIT));
        ck_assert(!adoption_seeks_user(adoption, 7));
}

/* Passed over, it would be started once more. */
TEST(one_that_memory_was_short_for_is_found_again)
{
        const struct sighting seen = marked(10, "mail/1");
        struct worker *worker = NULL;
        int failures = -1;

        do {
                adoption_search_begin(adoption);
                ck_assert_int_eq(adoption_see(adoption, &seen), 0);
                adoption_judge(adoption);
                struct claimant *claimant = adoption_next(adoption, NOW);
                ck_assert_msg(claimant, "it is passed over after %d failures", failures + 1);
                allocations_left = ++failures;
                worker = adoption_take(adoption, claimant, NOW, NOW);
                allocations_left = -1;
                ck_assert_uint_eq(adoption->found, !!worker);
                ck_assert_uint_eq(world->fleets[0]->n_workers, !!worker);
                (void)adoption_search_end(adoption, worker ? 0 : -ENOMEM, NOW);
        } while (!worker);
        ck_assert_int_ge(failures, 3);
        ck_assert_str_eq(adopted(), "mail/1=10");
}

TEST(a_search_that_fails_puts_the_end_off)
{
        adoption_search_begin(adoption);
        usec_t late = adoption->sought[0].until - USEC_PER_MSEC;
        ck_assert(!adoption_search_end(adoption, -EMFILE, late));
        ck_assert_uint_gt(world->fleets[0]->hold_until, late + 100 * USEC_PER_MSEC);
}

TEST(the_control_group_reports_of_a_leader_that_has_booted)
{
        struct sighting child = overwritten(10), elsewhere = overwritten(11), booting = overwritten(12);
        struct sighting user = overwritten(13), other = overwritten(14);

        child.session = 9;
        elsewhere.in_service = false;
        booting.booted_as = NULL;
        user.uid = 7;
        other.uid = SUBMIT;
        ADOPTS_ALL("mail/1=15 video/1=14", child, elsewhere, booting, user, overwritten(15), other);
}

TEST(a_place_that_is_reported_is_not_given_to_one_that_reports_none)
{
        ADOPTS_ALL("mail/1=11 mail/2=10", overwritten(10), marked(11, "mail/1"));
}

TEST(one_that_reports_no_place_waits_for_those_that_launch)
{
        struct sighting launching = launcher(11);

        ADOPTS("", overwritten(10), launching);
        ADOPTS_ALL("mail/1=11 mail/2=10", overwritten(10), marked(11, "mail/1"));
}

TEST(nobody_is_adopted_twice)
{
        struct sighting launching = launcher(12);

        ck_assert(!SEARCH(marked(11, "mail/1"), launching));
        /* Its title grew over its mark meanwhile. */
        ADOPTS_ALL("mail/1=11 mail/2=12", overwritten(11), overwritten(12));
}

TEST(a_start_under_way_is_found_by_the_control_group_once_all_is_clear)
{
        known_all(2);
        ADOPTS("", overwritten(10));
        ADOPTS_ALL("mail/2=10", overwritten(10));
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 3);
}

/* After a halt it is forked from the template of the old generation. */
TEST(a_fork_under_way_is_known_by_the_generation_of_its_template)
{
        struct sighting new = marked(10, "mail/2"), old = marked(11, "mail/2");

        known_of(world->fleets[0], 2, 2);
        known(world->fleets[1], 0);
        new.generation = "3";
        old.generation = "2";
        new.started_at = old.started_at = STARTED;
        ADOPTS("", new);
        ADOPTS_ALL("mail/2=11", new, old);
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 2);
        ck_assert_uint_eq(world->fleets[0]->generation, 3);
}

TEST(the_mark_of_a_template_is_none_of_a_worker)
{
        struct sighting template = marked(10, "mail/template  "), grown = marked(11, "mail/template");

        template.booted_as = &sidekiq_traits;
        ADOPTS_ALL("", template, grown);
}

TEST(a_template_that_the_state_names_is_no_start_that_was_under_way)
{
        const struct template loading = {.state = TEMPLATE_LOADING,
                                         .generation = 3,
                                         .pid = 10,
                                         .pid_start = 10,
                                         .started_at = STARTED,
                                         .state_at = STARTED};

        known_all(2);
        ck_assert_ptr_nonnull(template_observe_adopted(world->fleets[0], &loading, false, 10, 0));
        ck_assert(!SEARCH(overwritten(10)));
        ADOPTS_ALL("", overwritten(10));
}

/* It has seen that its sqmgr ended, and has done nothing. */
TEST(a_fork_that_was_not_reported_to_go_on_and_has_ended_is_no_crash)
{
        const struct worker waited = {.index = 2,
                                      .generation = 3,
                                      .process.pid = 8,
                                      .process.start = 8,
                                      .spawned_at = STARTED,
                                      .process.forked = true,
                                      .process.awaits_go = true};

        known_all(0);
        world->fleets[0]->redis_up = true;
        world->fleets[0]->rollout.state = ROLLOUT_RUNNING;
        const struct worker *worker = adoption_take_known(adoption, world->fleets[0], &waited, 0, 0, NOW);
        ck_assert_int_eq(worker->state, WORKER_GONE);
        ck_assert_uint_eq(world->fleets[0]->rollout.failures, 0);
        ck_assert_uint_eq(world->fleets[0]->crash.count, 0);
        ck_assert_uint_eq(world->n_events, 0);
        fleet_reap(world->fleets[0], NULL);
        /* One that lives was told. */
        worker = adoption_take_known(adoption, world->fleets[0], &waited, 8, 0, NOW);
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert(worker->process.forked && !worker->process.awaits_go);
}

TEST(with_the_state_lost_the_workers_report_the_generation)
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

/* One whose title has grown over its mark outside a service, and that the Redis of these fleets lists. */
static struct sighting listed(pid_t pid, size_t n)
{
        struct sighting sighting = leader(pid);

        sighting.booted_as = &sidekiq_traits;
        sighting.listed = world->fleets;
        sighting.n_listed = n;
        return sighting;
}

TEST(a_listed_process_is_adopted_by_the_one_fleet_that_it_fits)
{
        struct sighting user = listed(11, 1), kind = listed(12, 1);

        user.uid = SUBMIT;
        kind.booted_as = NULL;
        /* The second fleet is another user's. */
        ADOPTS_ALL("mail/1=10", listed(10, 2), user, kind, listed(13, 0));
        ck_assert_ptr_null(adoption_stray(adoption));
        ck_assert(!world->fleets[0]->workers[0]->process.unproven);
}

TEST(a_listed_process_that_fits_two_fleets_is_reported_once_and_left_alone)
{
        adoption->sought[1].uid = USER;
        ADOPTS_ALL("", listed(10, 2));
        const struct stray *stray = adoption_stray(adoption);
        ck_assert_int_eq(stray->pid, 10);
        ck_assert_ptr_eq(stray->one, world->fleets[0]);
        ck_assert_ptr_eq(stray->other, world->fleets[1]);
        ck_assert_ptr_null(adoption_stray(adoption));
        (void)SEARCH(listed(10, 2));
        ck_assert_ptr_null(adoption_stray(adoption));
}

/* A fleet of which all is known may have it, and the other one may not. */
TEST(a_listed_process_that_a_known_fleet_fits_too_is_left_alone)
{
        adoption->sought[1].uid = USER;
        known(world->fleets[1], 0);
        ADOPTS_ALL("", listed(10, 2));
        ck_assert_ptr_nonnull(adoption_stray(adoption));
}

TEST(a_worker_that_the_state_names_is_left_to_its_fleet_though_a_new_one_fits_too)
{
        const struct worker worker = {
                .index = 2, .generation = 3, .process.pid = 8, .process.start = 8, .spawned_at = STARTED};

        adoption->sought[1].uid = USER;
        known(world->fleets[0], 0);
        ck_assert_ptr_nonnull(adoption_take_known(adoption, world->fleets[0], &worker, 8, 0, NOW));
        ADOPTS_ALL("mail/2=8", listed(8, 2));
        ck_assert_ptr_null(adoption_stray(adoption));
}

TEST(of_a_known_fleet_a_listed_process_is_the_start_that_was_under_way)
{
        known_all(2);
        ck_assert(adoption_seeks_listed(adoption, world->fleets[0]));
        ck_assert(!adoption_seeks_listed(adoption, world->fleets[1]));
        ADOPTS("", listed(10, 1));
        ADOPTS_ALL("mail/2=10", listed(10, 1), listed(11, 1));
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 3);
        ck_assert(!adoption_seeks_listed(adoption, world->fleets[0]));
}

TEST(a_fleet_whose_list_is_awaited_starts_none_until_its_time_is_up)
{
        const struct fleet *fleet = world->fleets[0], *other = world->fleets[1];

        adoption->sought[1].uid = USER;
        adoption_await_list(adoption, fleet, true);
        ck_assert(!search_at(NULL, 0, NOW));
        ck_assert_uint_ne(fleet->hold_until, 0);
        ck_assert_uint_eq(other->hold_until, 0); /* it is its own that is awaited */
        ck_assert(!search_at(NULL, 0, NOW + USEC_PER_MIN - 1));
        ck_assert(search_at(NULL, 0, NOW + USEC_PER_MIN));
        ck_assert_uint_eq(fleet->hold_until, 0);
}

TEST(a_list_that_came_ends_the_wait)
{
        adoption_await_list(adoption, world->fleets[0], true);
        ck_assert(!search_at(NULL, 0, NOW));
        adoption_await_list(adoption, world->fleets[0], false);
        ADOPTS_ALL("mail/1=10", listed(10, 1));
        ck_assert_uint_eq(world->fleets[0]->hold_until, 0);
}

TEST_MAIN("adoption", .each = {setup, teardown})
