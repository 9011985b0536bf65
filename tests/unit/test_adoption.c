/* SPDX-License-Identifier: MIT */
/* Who of the living is ours, and which worker: by tables of what is to be seen of processes. */
/* promises: P4 */
#include "continuity/adoption.h"
#include "continuity/ledger.h"
#include "continuity/state.h"
#include "frameworks/sidekiq/format.h"
#include "model/fleets.h"
#include "model/idle_proof.h"
#include "model/world.h"
#include "observe/observe_template.h"
#include "unit.h"

#define NOW     (1000 * USEC_PER_SEC)
#define STARTED (900 * USEC_PER_SEC)
#define OURS    "00000000000000aa"
#define ANOTHER "00000000000000bb"

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
        ck_assert_int_eq(adoption_new(world, OURS, NOW, &adoption), 0);
        adoption->unsure = true;
}

static void teardown(void)
{
        adoption = adoption_free(adoption);
        world = world_free(world);
}

static struct sighting leader(pid_t pid)
{
        return (struct sighting){
                .pid = pid, .parent = 1, .group = pid, .session = pid, .start = (uint64_t)pid};
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

/* One search in which all that is judged ours is taken. Returns whether all is certain. */
static bool search_at(const struct sighting *seen, size_t n, usec_t now)
{
        const struct claimant *claimant;

        adoption_search_begin(adoption);
        for (size_t i = 0; i < n; i++)
                ck_assert_int_eq(adoption_see(adoption, &seen[i]), 0);
        adoption_judge(adoption);
        while ((claimant = adoption_next(adoption)))
                ck_assert_ptr_nonnull(adoption_take(adoption, claimant, NOW - USEC_PER_SEC, NOW));
        return adoption_search_end(adoption, 0, now);
}

static void search(const struct sighting *seen, size_t n)
{
        ck_assert(search_at(seen, n, NOW));
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

/* The state names this fleet. */
static void known(struct fleet *fleet)
{
        const struct state_fleet saved = {
                .name = fleet->settings->name,
                .generation = 3,
                .launch_hash = fleet->settings->launch_hash,
        };

        adoption_continue_fleet(adoption, fleet, &saved, NOW);
}

/* The state names both fleets, and the ledger is complete. */
static void known_all(void)
{
        adoption->unsure = false;
        known(world->fleets[0]);
        known(world->fleets[1]);
}

/* After a search among these all that is adopted is as the text says. */
#define ADOPTS_ALL(text, ...)                                                                                \
        do {                                                                                                 \
                SEARCH(__VA_ARGS__);                                                                         \
                ck_assert_str_eq(adopted(), text);                                                           \
        } while (0)

TEST(a_mark_counts_from_who_may_carry_it)
{
        struct sighting foreign = marked(11, "mail/1"), place = foreign, place2 = foreign;
        struct sighting fleet = foreign, removed = foreign;

        foreign.instance = ANOTHER;
        place.worker = "mail/0";
        place2.worker = "mail/1x";
        fleet.worker = "mail";
        removed.worker = "gone/1";
        ADOPTS_ALL("", foreign, place, place2, fleet, removed);
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
        struct sighting orphan = marked(10, "mail/2"), earlier = marked(30, "mail/2");
        struct sighting later = marked(31, "mail/2");

        child.parent = child.group = child.session = 20;
        orphan.group = orphan.session = 9;
        later.start = 99;
        /* None of the others is passed over: it may be the worker all the same. */
        ADOPTS_ALL("mail/1=20 mail/2=30 mail/7=31 mail/8=10", child, wrapper, orphan, later, earlier);
        for (size_t i = 0; i < 4; i++)
                ck_assert(world->fleets[0]->workers[i]->process.unproven);
}

TEST(what_has_booted_is_the_worker_before_what_an_elder_one_left_behind)
{
        struct sighting earlier = marked(10, "mail/1"), live = marked(20, "mail/1");
        struct sighting wrapper = marked(30, "mail/2"), below = marked(31, "mail/2");
        struct sighting left = marked(29, "mail/2");

        live.booted_as = below.booted_as = &sidekiq_traits;
        below.parent = below.group = below.session = 30;
        ADOPTS_ALL("mail/1=20 mail/2=30", earlier, live, left, wrapper, below);
        ck_assert(!world->fleets[0]->workers[0]->process.unproven);
        ck_assert(!world->fleets[0]->workers[1]->process.unproven);
}

TEST(of_what_has_not_booted_the_last_start_counts)
{
        struct sighting earlier = marked(10, "mail/1"), live = marked(20, "mail/1");

        earlier.started_at = STARTED - 1;
        live.started_at = STARTED;
        ADOPTS_ALL("mail/1=20", earlier, live);
        ck_assert(world->fleets[0]->workers[0]->process.unproven);
}

TEST(two_that_have_booted_in_one_place_are_both_taken)
{
        struct sighting earlier = marked(10, "mail/1"), live = marked(20, "mail/1");

        earlier.started_at = STARTED - 1;
        live.started_at = STARTED;
        earlier.booted_as = live.booted_as = &sidekiq_traits;
        ADOPTS_ALL("mail/1=20 mail/7=10", earlier, live);
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

        known_all();
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

/* Workers may mark processes, and title them. Check's limit of time ends it otherwise. */
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
        for (size_t i = 0; i < 2; i++) {
                adoption->sought[0].done = adoption->sought[1].done = false;
                search(seen, ELEMENTSOF(seen));
                ck_assert_uint_eq(world->fleets[0]->n_workers, 64);
                ck_assert_int_eq(world->fleets[0]->workers[1]->process.pid, 4098);
                ck_assert_uint_eq(world->fleets[1]->n_workers, 1);
                ck_assert_ptr_eq(adoption_full(adoption), i == 0 ? world->fleets[0] : NULL);
                ck_assert_ptr_null(adoption_full(adoption));
        }
}

TEST(without_a_ledger_a_fleet_that_the_state_names_is_searched_too)
{
        struct sighting known_one = marked(10, "mail/2"), other = marked(11, "mail/3");

        known_all();
        adoption->unsure = true;
        ck_assert(adoption_needs_search(adoption));
        ck_assert_ptr_nonnull(adoption_take_known(
                adoption, world->fleets[0],
                &(struct worker){.index = 2, .generation = 3, .process.pid = 10, .process.start = 10}, 10, 0,
                NOW));
        known_one.generation = other.generation = "3";
        ADOPTS_ALL("mail/2=10 mail/3=11 video/1=12", known_one, other, overwritten(12));
        ck_assert(!world->fleets[0]->unknown);
}

TEST(starts_are_held_until_a_search_is_complete)
{
        adoption_search_begin(adoption);
        ck_assert(!adoption_search_end(adoption, -EMFILE, NOW));
        for (size_t i = 0; i < 2; i++)
                ck_assert(world->fleets[i]->held && world->fleets[i]->unknown);
        search(NULL, 0);
        for (size_t i = 0; i < 2; i++)
                ck_assert(!world->fleets[i]->held && !world->fleets[i]->unknown);
}

static const struct ledger_start started = {
        .fleet = "mail",
        .pid = 10,
        .start = 10,
        .index = 2,
        .generation = 4,
        .started_at = STARTED,
        .started_for = REASON_RESTART,
};

/* The state is older than the start. */
TEST_LOOP(a_start_in_the_ledger_is_a_worker_that_starts, 2)
{
        struct fleet *fleet;
        struct worker known;

        known_all();
        struct ledger_start start = started;
        start.forked = _i == 1 ? LEDGER_FORK_WAITS : LEDGER_NOT_FORKED;
        ck_assert(adoption_know_start(adoption, &start, &fleet, &known));
        ck_assert_ptr_eq(fleet, world->fleets[0]);
        /* No worker is of a generation that its fleet does not know. */
        ck_assert_uint_eq(fleet->generation, 4);
        const struct worker *worker = adoption_take_known(adoption, fleet, &known, 10, 0, NOW);
        ck_assert_str_eq(adopted(), "mail/2=10");
        ck_assert_int_eq(worker->state, WORKER_STARTING);
        ck_assert_int_eq(worker->started_for, REASON_RESTART);
        ck_assert_uint_eq(worker->generation, 4);
        ck_assert_uint_eq(worker->spawned_at, STARTED);
        ck_assert_int_eq(worker->process.forked, _i == 1);
        ck_assert(!adoption_needs_search(adoption));
}

TEST(a_start_in_the_ledger_of_no_fleet_or_of_a_template_is_none)
{
        const struct template loading = {.state = TEMPLATE_LOADING,
                                         .generation = 3,
                                         .pid = 10,
                                         .pid_start = 10,
                                         .started_at = STARTED,
                                         .state_at = STARTED};
        struct ledger_start gone = started;
        struct fleet *fleet;
        struct worker known;

        known_all();
        snprintf(gone.fleet, sizeof(gone.fleet), "gone");
        ck_assert(!adoption_know_start(adoption, &gone, &fleet, &known));
        ck_assert_ptr_null(fleet);
        ck_assert_ptr_nonnull(template_observe_adopted(world->fleets[0], &loading, false, 10, 0));
        ck_assert(!adoption_know_start(adoption, &started, &fleet, &known));
        ck_assert_ptr_eq(fleet, world->fleets[0]);
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
                struct claimant *claimant = adoption_next(adoption);
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

TEST(the_control_group_reports_of_a_leader_that_has_booted)
{
        struct sighting child = overwritten(10), elsewhere = overwritten(11), booting = overwritten(12);

        child.session = 9;
        elsewhere.in_service = false;
        booting.booted_as = NULL;
        ADOPTS_ALL("mail/1=15", child, elsewhere, booting, overwritten(15));
}

TEST(a_place_that_is_reported_is_not_given_to_one_that_reports_none)
{
        ADOPTS_ALL("mail/1=11 mail/2=10", overwritten(10), marked(11, "mail/1"));
}

TEST(the_mark_of_a_template_is_none_of_a_worker)
{
        struct sighting template = marked(10, "mail/template  "), grown = marked(11, "mail/template");

        template.booted_as = &sidekiq_traits;
        ADOPTS_ALL("", template, grown);
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

        known_all();
        world->fleets[0]->redis_up = true;
        world->fleets[0]->rollout.state = ROLLOUT_RUNNING;
        const struct worker *worker = adoption_take_known(adoption, world->fleets[0], &waited, 0, 0, NOW);
        ck_assert_int_eq(worker->state, WORKER_GONE);
        ck_assert_uint_eq(world->fleets[0]->rollout.failures, 0);
        ck_assert_uint_eq(world->fleets[0]->crash.count, 0);
        ck_assert_uint_eq(world->n_events, 0);
        fleet_reap(world->fleets[0], NULL);
        /* One that is alive was signaled. */
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
        SEARCH(old, new, untold);
        ck_assert_uint_eq(world->fleets[0]->generation, 9);
        ck_assert_uint_eq(world->fleets[0]->workers[0]->generation, 4);
        ck_assert_uint_eq(world->fleets[0]->workers[2]->generation, 9);
        ck_assert_uint_eq(world->fleets[1]->generation, 1);
}

static void see_hidden(void)
{
        adoption_search_begin(adoption);
        adoption_await(adoption, 10, 10);
        adoption_judge(adoption);
}

TEST(a_process_that_cannot_be_read_holds_a_fleet_for_its_boot_timeout)
{
        const struct fleet *fleet = world->fleets[0], *other = world->fleets[1];

        see_hidden();
        ck_assert(!adoption_search_end(adoption, 0, NOW));
        ck_assert(fleet->held);
        see_hidden();
        ck_assert(!adoption_search_end(adoption, 0, NOW + USEC_PER_MIN));
        ck_assert(!fleet->held);
        ck_assert(other->held);
        see_hidden();
        ck_assert(adoption_search_end(adoption, 0, NOW + 2 * USEC_PER_MIN));
        ck_assert(!other->held);
}

TEST(a_process_that_can_be_read_by_the_next_search_holds_nobody)
{
        see_hidden();
        ck_assert(!adoption_search_end(adoption, 0, NOW));
        adoption_search_begin(adoption);
        ck_assert(adoption_search_end(adoption, 0, NOW));
        ck_assert(!world->fleets[0]->held);
}

TEST(a_known_worker_that_cannot_be_read_holds_nobody)
{
        const struct worker known = {.index = 2, .generation = 3, .process.pid = 10, .process.start = 10};

        ck_assert_ptr_nonnull(adoption_take_known(adoption, world->fleets[0], &known, 10, 0, NOW));
        see_hidden();
        ck_assert(adoption_search_end(adoption, 0, NOW));
}

TEST_MAIN("adoption", .each = {setup, teardown})
