/* SPDX-License-Identifier: MIT */
/* Tests of how the count of a fleet follows its queues (autoscaling/autoscale_rules.h), in a simulated
 * world. */
/* promises: P1 P2 */
#include "autoscaling/autoscale_rules.h"
#include "autoscaling/autoscaling.h"
#include "continuity/codec.h"
#include "decide/command.h"
#include "frameworks/sidekiq/format.h"
#include "golden.h"
#include "model/counts.h"
#include "model/preload.h"
#include "model/world.h"
#include "world.h"

TEST_WORLD(2)
{
        t.fleet_settings.active_process_max = 8;
        t.fleet_settings.latency_target = (char *)"30s mail=5min";
        t.fleet_settings.scale_down_after = USEC_PER_MIN;
        t.fleet_settings.ready_after = 0;
}

static void serve(struct fleet *fleet, const char *names, size_t size)
{
        char *copy = malloc(size);

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, names, size);
        autoscale_serves(fleet, copy);
}
#define SERVE(fleet, names) serve(fleet, names "\0", sizeof(names) + 1)

static struct queues *one_queue(const char *name, uint64_t size, usec_t age)
{
        struct queues *queues = calloc(1, sizeof(*queues));

        ck_assert_ptr_nonnull(queues);
        struct queue *queue = queues_add(queues, name, strlen(name));
        ck_assert_ptr_nonnull(queue);
        queue->size = size;
        queue->latency_known = true;
        queue->latency = age;
        return queues;
}

/* Polls the queue once, with whatever else was read, and finds size jobs. */
static bool look_with(struct autoscale_reading *reading, uint64_t size, usec_t age)
{
        FLEET_FOREACH_WORKER(t.fleet, worker)
                worker->heartbeat.concurrency = 5;
        reading->queues = one_queue("default", size, age);
        return autoscale_observe(t.fleet, reading, t.now);
}

/* The same, of jobs of one second each. */
static bool look(uint64_t size, double age)
{
        return look_with(&(struct autoscale_reading){.service = USEC_PER_SEC}, size,
                         (usec_t)(age * USEC_PER_SEC));
}

/* Looks for so many seconds, one each second. */
static void poll_for(unsigned seconds, uint64_t size, double age)
{
        for (unsigned i = 0; i < seconds; i++) {
                test_tick(&t, 1);
                (void)look(size, age);
        }
}

static void begin(void)
{
        test_settle(&t);
        SERVE(t.fleet, "default");
        poll_for(5, 0, 0);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
}

TEST(without_active_process_max_the_count_is_the_configured_one)
{
        t.fleet_settings.active_process_max = 0;
        t.fleet->automatic_count = 7;
        ck_assert(!fleet_scales(t.fleet));
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
        ck_assert_uint_eq(fleet_max_processes(t.fleet), 6);
        t.fleet_settings.active_process_max = 8;
        ck_assert_uint_eq(fleet_current_count(t.fleet), 7);
        ck_assert_uint_eq(fleet_max_processes(t.fleet), 24);
        t.fleet_settings.active_process_max = 5;
        ck_assert_uint_eq(fleet_current_count(t.fleet), 5);
}

TEST(what_waits_doubles_the_count_once_for_each_boot)
{
        begin();
        test_tick(&t, 1);
        ck_assert(look(2000, 3));
        ck_assert_uint_eq(fleet_current_count(t.fleet), 4);
        golden_expect("autoscaling", "what waits doubles the count once for each boot",
                      test_event_text(&t, EVENT_SCALED));
        ck_assert(!look(2000, 3));
        poll_for(20, 2000, 3);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 8);
        ck_assert_uint_eq(test_counts(&t).active, 8);
        ck_assert_uint_eq(t.fleet->totals.events[EVENT_SCALED], 2);
}

TEST(threads_of_a_deaf_worker_do_not_count)
{
        begin();
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->threads, 10, 0.001);
        test_worker(&t, 1)->deaf.found_at = t.now;
        poll_for(1, 0, 0);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->threads, 5, 0.001);
}

/* Workers leave one at a time, each drained before the next. */
TEST(the_calm_takes_it_back_one_by_one)
{
        begin();
        poll_for(20, 2000, 3);
        ck_assert_uint_eq(test_counts(&t).active, 8);
        poll_for(55, 0, 0);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 8);
        for (unsigned i = 0; i < 300; i++) {
                unsigned before = fleet_current_count(t.fleet);

                poll_for(1, 0, 0);
                ck_assert_uint_ge(fleet_current_count(t.fleet) + 1, before);
                ck_assert_uint_ge(test_counts(&t).ready, fleet_current_count(t.fleet));
                ck_assert_uint_le(test_counts(&t).quiet + test_counts(&t).stopping, 1);
        }
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
        ck_assert_uint_eq(test_counts(&t).live, 2);
        ck_assert_uint_eq(t.kills, 0);
}

/* However rare looks are, fewer may be found to be enough. */
TEST(rare_looks_take_it_back_too)
{
        t.settings.check_interval = 5 * USEC_PER_MIN;
        begin();
        poll_for(20, 2000, 3);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 8);
        for (unsigned i = 0; i < 20; i++) {
                test_run(&t, 300);
                (void)look(0, 0);
        }
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
}

/* A wrapper that starts its program anew, or one whose start no sqmgr saw: what lies between is no boot. */
TEST(what_took_longer_than_boots_may_is_no_boot)
{
        begin();
        usec_t boot = autoscale_of(t.fleet)->boot;

        FLEET_FOREACH_WORKER(t.fleet, worker)
                worker->active_at = worker->spawned_at + USEC_PER_HOUR;
        (void)look(0, 0);
        ck_assert_uint_eq(autoscale_of(t.fleet)->boot, boot);
}

static void expect_hold(enum scaling_hold hold)
{
        ck_assert_int_eq(autoscale_of(t.fleet)->verdict.cause, SCALING_HELD);
        ck_assert_int_eq(autoscale_of(t.fleet)->verdict.hold, hold);
}

static const char *line_of(const char *word)
{
        static char text[AUTOSCALE_TEXT_MAX];

        for (size_t i = 0; autoscale_line(t.fleet, i, text); i++)
                if (strstr(text, word))
                        return text;
        return NULL;
}

TEST(a_boot_that_is_not_known_is_not_reported)
{
        begin();
        golden_expect("autoscaling", "a boot that is not known is not reported", line_of("a worker runs"));
        /* All were adopted, and nobody saw them boot. */
        t.fleet->autoscale->boot = 0;
        FLEET_FOREACH_WORKER(t.fleet, worker)
                worker->active_at = worker->spawned_at + USEC_PER_HOUR;
        (void)look(0, 0);
        golden_expect("autoscaling", "a boot that is not known is not reported, 2", line_of("a worker runs"));
}

TEST(of_a_fleet_that_is_to_take_no_jobs_nothing_old_is_reported)
{
        struct problems problems = {0};
        char text[AUTOSCALE_TEXT_MAX];

        t.fleet_settings.latency_target = (char *)"30s";
        begin();
        poll_for(40, 20000, 60);
        autoscale_problems(NULL, t.fleet, t.now, &problems);
        ck_assert_uint_gt(problems.n, 0);
        golden_expect("autoscaling", "of a fleet that is to take no jobs nothing old is reported",
                      problems.list[0].text);
        problems_clear(&problems);
        ck_assert_uint_ne(autoscale_of(t.fleet)->read_at, 0);
        ck_assert_int_eq(command_quiet_fleet(t.fleet, NULL, t.now), COMMAND_DONE);
        (void)look(0, 0);
        ck_assert_uint_eq(autoscale_of(t.fleet)->read_at, 0);
        autoscale_problems(NULL, t.fleet, t.now, &problems);
        ck_assert_uint_eq(problems.n, 0);
        golden_expect("autoscaling", "of a fleet that is to take no jobs nothing old is reported, 2",
                      autoscale_text(t.fleet, text));
}

TEST(the_idlest_leaves_first)
{
        begin();
        poll_for(20, 2000, 3);
        for (unsigned i = 1; i <= 8; i++)
                test_process(test_worker(&t, i))->busy = i == 6 ? 0 : 1;
        for (unsigned i = 0; i < 100 && t.quiets == 0; i++)
                poll_for(1, 0, 0);
        ck_assert_uint_eq(t.quiets, 1);
        ck_assert_int_eq(test_worker(&t, 1)->state, WORKER_ACTIVE);
        ck_assert(!test_worker(&t, 6) || test_worker(&t, 6)->state != WORKER_ACTIVE);
}

TEST(a_restart_and_a_redis_that_is_away_keep_the_count)
{
        struct autoscale_reading away = {0};
        char text[AUTOSCALE_TEXT_MAX];

        begin();
        command_restart(t.fleet, NULL, t.now);
        ck_assert(!look(2000, 20));
        expect_hold(SCALING_HELD_ROLLOUT);
        t.fleet->rollout.state = ROLLOUT_HALTED;
        ck_assert(!look(2000, 20));
        expect_hold(SCALING_HELD_HALTED);
        command_abort(t.fleet, NULL, t.now);
        ck_assert(!autoscale_observe(t.fleet, &away, t.now));
        expect_hold(SCALING_HELD_REDIS);
        ck_assert(!autoscale_line(t.fleet, 0, text));
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
}

TEST(the_operators_count_goes_before_it_until_it_is_given_back)
{
        char text[AUTOSCALE_TEXT_MAX];

        begin();
        ck_assert_int_eq(command_scale(t.fleet, 10, NULL, t.now), COMMAND_DONE);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 10);
        ck_assert(fleet_is_scaled(t.fleet));
        test_tick(&t, 1);
        ck_assert(!look(2000, 3));
        ck_assert_uint_eq(fleet_current_count(t.fleet), 10);
        ck_assert_uint_eq(autoscale_wanted(t.fleet), 8);
        golden_expect("autoscaling", "an order of the operator", autoscale_text(t.fleet, text));
        ck_assert_int_eq(command_scale_auto(t.fleet, NULL, t.now), COMMAND_DONE);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 8);
        ck_assert(!fleet_is_scaled(t.fleet));
        t.fleet_settings.active_process_max = 0;
        ck_assert_int_eq(command_scale_auto(t.fleet, NULL, t.now), COMMAND_FIXED);
}

TEST(no_more_are_wanted_than_memory_is_there_for)
{
        begin();
        /* Each holds 200M: one more fits with what must stay free, and a second one does not. */
        t.world->available_bytes = (uint64_t)500 << 20;
        ck_assert(look(2000, 3));
        ck_assert_uint_eq(fleet_current_count(t.fleet), 4);
        command_scale(t.fleet, 2, NULL, t.now);
        command_scale_auto(t.fleet, NULL, t.now);
        t.world->available_bytes = (uint64_t)300 << 20;
        ck_assert(look(2000, 3));
        ck_assert_uint_eq(fleet_current_count(t.fleet), 3);
        golden_expect("autoscaling", "no more are wanted than memory is there for",
                      test_event_text(&t, EVENT_SCALED));
        command_scale(t.fleet, 2, NULL, t.now);
        command_scale_auto(t.fleet, NULL, t.now);
        t.world->available_bytes = (uint64_t)100 << 20;
        ck_assert(!look(2000, 3));
}

TEST(a_fleet_that_is_quieted_neither_grows_nor_shrinks)
{
        char text[AUTOSCALE_TEXT_MAX];

        begin();
        poll_for(20, 2000, 3);
        command_quiet_fleet(t.fleet, NULL, t.now);
        poll_for(200, 0, 0);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 8);
        golden_expect("autoscaling", "a fleet that is quieted neither grows nor shrinks",
                      autoscale_text(t.fleet, text));
        command_start(t.fleet, NULL, t.now);
        poll_for(5, 0, 0);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 8);
}

TEST(queues_without_a_target_and_paused_ones_are_not_looked_at)
{
        struct autoscale_reading reading = {.service = USEC_PER_SEC};
        char text[AUTOSCALE_TEXT_MAX];

        t.fleet_settings.latency_target = (char *)"mail=5min";
        begin();
        ck_assert(!look(2000, 20));
        ck_assert(autoscale_line(t.fleet, 0, text));
        golden_expect("autoscaling", "queues without a target and paused ones are not looked at", text);
        reading.queues = one_queue("mail", 2000, 20 * USEC_PER_SEC);
        reading.queues->list[0].paused = true;
        ck_assert(!autoscale_observe(t.fleet, &reading, t.now));
        ck_assert(autoscale_line(t.fleet, 0, text));
        golden_expect("autoscaling", "queues without a target and paused ones are not looked at, 2", text);
        expect_hold(SCALING_HELD_PAUSED);
}

/* Polls once. Processes of other hosts have `threads` threads, `idle` of them idle, by the count that ended
 * at counted_at; 0: there was no count. */
static void poll_beside(double threads, double idle, usec_t counted_at, uint64_t size)
{
        struct autoscale_reading reading = {
                .service = 10 * USEC_PER_SEC,
                .foreign = {.known = counted_at > 0,
                            .counted_at = counted_at,
                            .any = threads > 0,
                            .serving = threads > 0 ? 2 : 0,
                            .threads = threads,
                            .idle = idle},
        };

        t.fleet->automatic_count = 2;
        (void)look_with(&reading, size, USEC_PER_SEC);
}

TEST(of_jobs_that_other_hosts_take_too_each_takes_its_share)
{
        char text[AUTOSCALE_TEXT_MAX];

        begin();
        const struct scaling_verdict *verdict = &autoscale_of(t.fleet)->verdict;
        t.fleet_settings.active_process_max = 100;
        poll_beside(0, 0, 0, 400);
        double alone = verdict->need;
        ck_assert_double_gt(alone, 10);
        poll_beside(0, 0, 1, 400);
        ck_assert_double_eq_tol(verdict->need, alone, 0.001);
        poll_beside(30, 20, 2, 400);
        ck_assert_double_eq_tol(verdict->need, alone / 4, 0.001);
        ck_assert(autoscale_line(t.fleet, 1, text));
        golden_expect("autoscaling", "of jobs that other hosts take too each takes its share", text);
        golden_expect("autoscaling", "of jobs that other hosts take too each takes its share, 2",
                      autoscale_text(t.fleet, text));
        /* The share is that at the count: others add workers at the same time. */
        test_worker(&t, 1)->deaf.found_at = t.now;
        poll_beside(30, 20, 2, 400);
        ck_assert_double_eq_tol(verdict->need, alone / 4, 0.001);
        poll_beside(30, 20, 3, 400);
        ck_assert_double_eq_tol(verdict->need, alone / 7, 0.001);
        /* No worker was active at the count: the first active worker settles the share. */
        test_worker(&t, 2)->deaf.found_at = t.now;
        poll_beside(30, 20, 4, 400);
        ck_assert_double_eq_tol(verdict->need, alone / 7, 0.001);
        test_worker(&t, 1)->deaf.found_at = test_worker(&t, 2)->deaf.found_at = 0;
        poll_beside(30, 20, 4, 400);
        ck_assert_double_eq_tol(verdict->need, alone / 4, 0.001);
        /* Counts fail: the last share stays. */
        poll_beside(30, 20, 0, 400);
        ck_assert_double_eq_tol(verdict->need, alone / 4, 0.001);
}

TEST(until_the_other_hosts_are_counted_the_count_is_kept)
{
        struct autoscale_reading reading = {.service = USEC_PER_SEC, .foreign.unread = true};
        struct traits traits = *t.fleet_settings.traits;

        begin();
        reading.queues = one_queue("default", 4000, 20 * USEC_PER_SEC);
        ck_assert(!autoscale_observe(t.fleet, &reading, t.now));
        expect_hold(SCALING_HELD_HOSTS);
        /* The first count has failed. */
        reading.queues = one_queue("default", 4000, 20 * USEC_PER_SEC);
        reading.foreign.unread = false;
        ck_assert(autoscale_observe(t.fleet, &reading, t.now));
        traits.records_workers = false;
        t.fleet_settings.traits = &traits;
        reading.foreign.unread = true;
        (void)look_with(&reading, 4000, 20 * USEC_PER_SEC);
        ck_assert_int_ne(autoscale_of(t.fleet)->verdict.cause, SCALING_HELD);
}

TEST(of_hosts_that_serve_only_some_of_the_queues_what_is_idle_is_subtracted)
{
        struct traits traits = *t.fleet_settings.traits;
        struct autoscale_reading reading = {
                .queues = one_queue("default", 40, USEC_PER_SEC),
                .foreign = {.known = true, .counted_at = 1, .idle = 7, .partial_idle = 3},
        };

        begin();
        (void)autoscale_observe(t.fleet, &reading, t.now);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->foreign_idle, 3, 0.001);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->share, 1, 0.001);
        /* Without a share, all idle threads of other processes are subtracted. */
        traits.records_workers = false;
        t.fleet_settings.traits = &traits;
        (void)look_with(&reading, 40, USEC_PER_SEC);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->foreign_idle, 7, 0.001);
}

TEST(where_workers_leave_no_records_the_fleet_scales_as_if_alone)
{
        struct traits traits = *t.fleet_settings.traits;

        begin();
        traits.records_workers = false;
        t.fleet_settings.traits = &traits;
        poll_beside(30, 20, 1, 400);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->share, 1, 0.001);
        struct problems findings = {0};
        autoscaling_subsystem.diagnose(NULL, t.fleet, &findings);
        ck_assert_uint_eq(findings.n, 1);
        ck_assert_int_eq(findings.list[0].severity, PROBLEM_OK);
        golden_expect("autoscaling", "where workers leave no records the fleet scales as if alone",
                      findings.list[0].text);
        problems_clear(&findings);
        traits.records_workers = true;
        autoscaling_subsystem.diagnose(NULL, t.fleet, &findings);
        ck_assert_uint_eq(findings.n, 0);
}

TEST(what_a_forger_reports_of_other_hosts_stays_within_the_limits)
{
        begin();
        poll_beside(1e300, 1e300, 1, 4000);
        ck_assert_uint_eq(autoscale_wanted(t.fleet), 2);
        poll_beside(1, 1e300, 2, 400000);
        ck_assert_uint_le(autoscale_wanted(t.fleet), 8);
}

/* Another fleet beside the one of the world, of two workers of five threads. */
static struct fleet *second_fleet(struct fleet_settings *settings)
{
        struct fleet *fleet = calloc(1, sizeof(*fleet));
        struct fleet **fleets = reallocarray(t.world->fleets, 2, sizeof(*fleets));

        ck_assert(fleet && fleets);
        *settings = t.fleet_settings;
        settings->name = (char *)"second";
        fleet->settings = settings;
        fleet->world = t.world;
        fleet->generation = 1;
        fleet->workers = calloc(2, sizeof(*fleet->workers));
        ck_assert_ptr_nonnull(fleet->workers);
        for (; fleet->n_workers < 2; fleet->n_workers++) {
                struct worker *worker = calloc(1, sizeof(*worker));

                ck_assert_ptr_nonnull(worker);
                *worker = (struct worker){.fleet = fleet,
                                          .index = (unsigned)fleet->n_workers + 1,
                                          .generation = 1,
                                          .state = WORKER_ACTIVE,
                                          .heartbeat.seen = true,
                                          .heartbeat.concurrency = 5};
                fleet->workers[fleet->n_workers] = worker;
        }
        t.world->fleets = fleets;
        fleets[t.world->n_fleets++] = fleet;
        return fleet;
}

TEST(of_a_need_that_two_fleets_follow_each_takes_its_share)
{
        struct fleet_settings settings;
        unsigned alone, shared;

        begin();
        t.fleet_settings.active_process_max = 100;
        struct fleet *second = second_fleet(&settings);
        (void)look(400, 1);
        alone = autoscale_wanted(t.fleet);
        ck_assert_uint_eq(autoscale_of(t.fleet)->fleets, 1);
        t.fleet->automatic_count = 2;
        SERVE(second, "default\0mail");
        (void)look(400, 1);
        shared = autoscale_wanted(t.fleet);
        ck_assert_uint_eq(autoscale_of(t.fleet)->fleets, 2);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->threads, 20, 0.001);
        ck_assert_uint_lt(shared, alone);
        /* One that is held does not follow it, and what it has idle is subtracted. */
        second->rollout.state = ROLLOUT_HALTED;
        t.fleet->automatic_count = 2;
        (void)look(400, 1);
        ck_assert_uint_eq(autoscale_of(t.fleet)->fleets, 1);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->foreign_idle, 10, 0.001);
}

TEST(threads_of_others_are_not_idle_where_the_oldest_job_is_unknown)
{
        struct autoscale_reading reading = {.queues = one_queue("default", 3, 0)};
        struct fleet_settings settings;

        begin();
        /* The second fleet has a fixed count and ten idle threads. */
        struct fleet *second = second_fleet(&settings);
        settings.active_process_max = 0;
        SERVE(second, "default");
        (void)autoscale_observe(t.fleet, &reading, t.now);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->foreign_idle, 10, 0.001);
        ck_assert(!autoscale_of(t.fleet)->verdict.age_unknown);
        reading.queues = one_queue("default", 3, 0);
        reading.queues->list[0].latency_known = false;
        (void)autoscale_observe(t.fleet, &reading, t.now);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->foreign_idle, 0, 0.001);
        ck_assert(autoscale_of(t.fleet)->verdict.age_unknown);
        /* No job waits, whether or not that could be read. */
        reading.queues = one_queue("default", 0, 0);
        reading.queues->list[0].latency_known = false;
        (void)autoscale_observe(t.fleet, &reading, t.now);
        ck_assert_double_eq_tol(autoscale_of(t.fleet)->foreign_idle, 10, 0.001);
        ck_assert(!autoscale_of(t.fleet)->verdict.age_unknown);
}

TEST(a_count_of_all_jobs_done_reports_only_where_one_fleet_serves_the_redis)
{
        struct fleet_settings settings;
        struct autoscale_reading reading = {.done_known = true, .foreign.known = true};

        begin();
        (void)look_with(&reading, 0, 0);
        ck_assert_int_eq(autoscale_of(t.fleet)->source, AUTOSCALE_BY_COUNT);
        reading.foreign.any = true;
        (void)look_with(&reading, 0, 0);
        ck_assert_int_eq(autoscale_of(t.fleet)->source, AUTOSCALE_BY_NOTHING);
        reading.foreign.any = false;
        (void)second_fleet(&settings);
        (void)look_with(&reading, 0, 0);
        ck_assert_int_eq(autoscale_of(t.fleet)->source, AUTOSCALE_BY_NOTHING);
}

/* what: the section of tests/golden/autoscaling; NULL: there is no trouble at i. */
static void expect_trouble(size_t i, const char *what)
{
        struct problems problems = {0};

        autoscale_problems(NULL, t.fleet, t.now, &problems);
        ck_assert(!problems.lost);
        ck_assert((i < problems.n) == !!what);
        if (what)
                golden_expect("autoscaling", what, problems.list[i].text);
        ck_assert(i >= problems.n || problems.list[i].fleet == t.fleet);
        problems_clear(&problems);
}

TEST(what_keeps_targets_from_being_kept_is_reported)
{
        struct autoscale_reading reading = {
                .queues = one_queue("default", 100000, USEC_PER_SEC),
                .service = 40 * USEC_PER_SEC,
        };

        expect_trouble(0, NULL);
        t.fleet_settings.latency_target = (char *)"30s";
        begin();
        expect_trouble(0, NULL);
        t.fleet_settings.latency_target = (char *)"15s mail\x01=5min";
        expect_trouble(0, "trouble: a queue of nobody");
        expect_trouble(1, "trouble: a target shorter than a boot");
        expect_trouble(2, NULL);
        t.fleet_settings.latency_target = (char *)"30s";
        FLEET_FOREACH_WORKER(t.fleet, worker)
                worker->heartbeat.concurrency = 5;
        t.fleet_settings.active_process_max = 3;
        (void)autoscale_observe(t.fleet, &reading, t.now);
        expect_trouble(0, "trouble: a target shorter than a job");
        expect_trouble(2, NULL);
        t.fleet_settings.active_process_max = 0;
        expect_trouble(0, NULL);
}

TEST(jobs_that_wait_while_all_threads_are_idle_are_reported)
{
        t.fleet_settings.latency_target = (char *)"30s";
        begin();
        (void)look(3, 59);
        expect_trouble(0, NULL);
        (void)look(3, 61);
        expect_trouble(0, "trouble: idle threads");
        expect_trouble(1, NULL);
        t.fleet->workers[0]->heartbeat.busy = 1;
        (void)look(3, 61);
        expect_trouble(0, NULL);
}

static bool other_host_takes_it;

static bool foreign_serve(const char *queue _unused_, const void *userdata _unused_)
{
        return other_host_takes_it;
}

/* Checks what is reported of one queue whose 7 jobs have waited for age. */
static void expect_queue(const char *name, usec_t age, bool lost)
{
        struct queues *queues = one_queue(name, 7, age);
        struct problems findings = {0};

        doctor_queues(&findings, t.world, t.fleet->link, queues, foreign_serve, NULL);
        ck_assert(!findings.lost);
        ck_assert_uint_eq(findings.n, lost ? 1 : 0);
        if (lost) {
                golden_expect("autoscaling", "trouble: jobs that nobody takes", findings.list[0].text);
                ck_assert_int_eq(findings.list[0].severity, PROBLEM_WARNING);
        }
        problems_clear(&findings);
        queues_free(queues);
}

TEST(jobs_that_nobody_takes_are_reported)
{
        char names[1024] = "";
        size_t size = 0;

        other_host_takes_it = false;
        /* What the workers serve is not known yet. */
        expect_queue("lo\x01t", 2 * USEC_PER_MIN, false);
        begin();
        expect_queue("lo\x01t", 2 * USEC_PER_MIN, true);
        expect_queue("default", 2 * USEC_PER_MIN, false);
        expect_queue("lo\x01t", USEC_PER_MIN - 1, false);
        other_host_takes_it = true;
        expect_queue("lo\x01t", 2 * USEC_PER_MIN, false);
        other_host_takes_it = false;
        /* Of so many that there may be others. */
        for (unsigned i = 0; i < QUEUES_NAMED_MAX; i++)
                size += (size_t)snprintf(names + size, sizeof(names) - size, "q%u", i) + 1;
        serve(t.fleet, names, size + 1);
        expect_queue("lo\x01t", 2 * USEC_PER_MIN, false);
        SERVE(t.fleet, "default");
        expect_queue("lo\x01t", 2 * USEC_PER_MIN, true);
        t.fleet_settings.active_process_max = 0;
        expect_queue("lo\x01t", 2 * USEC_PER_MIN, false);
}

static void idle_until_asleep(void)
{
        for (unsigned i = 0; i < 600 && fleet_current_count(t.fleet) > 0; i++)
                poll_for(1, 0, 0);
        ck_assert(fleet_sleeps(t.fleet));
}

static void fall_asleep(void)
{
        begin();
        t.fleet_settings.active_process_count = 0;
        idle_until_asleep();
        for (unsigned i = 0; i < 60 && t.fleet->n_workers > 0; i++)
                poll_for(1, 0, 0);
        ck_assert_uint_eq(t.fleet->n_workers, 0);
}

TEST(a_sleeping_fleet_serves_and_keeps_its_template_unless_it_is_stopped)
{
        t.fleet_settings.preload = 1;
        fall_asleep();
        ck_assert(fleet_serves(t.fleet) && fleet_preloads(t.fleet));
        ck_assert_uint_eq(fleet_scale_min(t.fleet), 1);
        t.fleet->order = ORDER_STOP;
        ck_assert(!fleet_serves(t.fleet) && !fleet_preloads(t.fleet));
        t.fleet->order = ORDER_RUN;
        t.fleet->scale = 1;
        ck_assert(!fleet_sleeps(t.fleet) && fleet_serves(t.fleet));
}

TEST(a_restart_of_a_sleeping_fleet_proves_the_release_by_one_worker)
{
        fall_asleep();
        ck_assert_int_eq(command_restart(t.fleet, NULL, t.now), COMMAND_DONE);
        ck_assert_uint_eq(fleet_target(t.fleet), 1);
        for (unsigned i = 0; i < 120 && t.fleet->rollout.state == ROLLOUT_RUNNING; i++)
                poll_for(1, 0, 0);
        ck_assert_int_eq(t.fleet->rollout.state, ROLLOUT_DONE);
        ck_assert_uint_eq(fleet_count(t.fleet, t.now).active, 1);
        idle_until_asleep();
}

TEST(a_sleeping_fleet_is_woken_whether_or_not_other_hosts_are_counted)
{
        for (int unread = 0; unread <= 1; unread++) {
                struct autoscale_reading reading = {.queues = one_queue("default", 1, USEC_PER_SEC),
                                                    .foreign.unread = unread};

                fall_asleep();
                ck_assert(autoscale_observe(t.fleet, &reading, t.now));
                ck_assert_int_eq(autoscale_of(t.fleet)->verdict.cause, SCALING_WAKE);
                ck_assert_uint_eq(fleet_current_count(t.fleet), 1);
                t.fleet_settings.active_process_count = 2;
                poll_for(20, 0, 0);
        }
}

TEST(a_stopped_fleet_is_not_woken_and_a_halted_one_is)
{
        fall_asleep();
        t.fleet->order = ORDER_STOP;
        ck_assert(!look(5, 1));
        t.fleet->order = ORDER_RUN;
        t.fleet->rollout.state = ROLLOUT_HALTED;
        ck_assert(look(5, 1));
        ck_assert_uint_ge(fleet_current_count(t.fleet), 1);
}

/* The next sqmgr has a fleet of its own. */
static const struct autoscale *hand_over(size_t bytes)
{
        struct codec_writer writer = {0};

        autoscale_pack(t.fleet, &writer);
        struct codec_reader reader = {.at = writer.bytes, .left = MIN(bytes, writer.size)};
        autoscale_forget(t.fleet);
        autoscale_unpack(t.fleet, &reader);
        free(writer.bytes);
        return autoscale_of(t.fleet);
}

TEST(the_next_sqmgr_knows_what_wakes_a_sleeping_fleet)
{
        fall_asleep();
        SERVE(t.fleet, "default\0mail");
        const struct autoscale *handed = hand_over(SIZE_MAX);
        ck_assert(queue_names_have(handed->served, "default") && queue_names_have(handed->served, "mail"));
        ck_assert_uint_eq(handed->concurrency, 5);
        ck_assert_uint_eq(handed->boot, t.fleet->autoscale->boot);
}

TEST(a_state_that_is_damaged_or_of_no_sleeper_is_ignored)
{
        begin();
        ck_assert_ptr_null(hand_over(SIZE_MAX)->served);
        fall_asleep();
        for (size_t bytes = 0; bytes < 40; bytes++) {
                SERVE(t.fleet, "default\0mail");
                ck_assert_ptr_null(hand_over(bytes)->served);
        }
}

TEST_MAIN("autoscale", .each = {setup, teardown})
