/* SPDX-License-Identifier: MIT */
/* Tests of the figures for scalers outside of sqmgr, and of `scaling = advise`: the need is computed, and the
 * count stays. */
/* promises: P2 */
#include "advice/problem.h"
#include "autoscaling/autoscale_rules.h"
#include "autoscaling/demand_rules.h"
#include "autoscaling/scaling_peer_rules.h"
#include "autoscaling/trouble_rules.h"
#include "decide/command.h"
#include "golden.h"
#include "model/fleet.h"
#include "model/fleets.h"
#include "model/queues.h"
#include "model/world.h"
#include "wire/demand.h"
#include "world.h"
#include <stdlib.h>
#include <string.h>

TEST_WORLD(2)
{
        t.fleet_settings.active_process_max = 8;
        t.fleet_settings.latency_target = (char *)"30s reports=none";
        t.fleet_settings.scale_down_after = USEC_PER_MIN;
        t.fleet_settings.ready_after = 0;
}

static void add_queue(struct queues *queues, const char *name, uint64_t size, usec_t age)
{
        struct queue *queue = queues_add(queues, name, strlen(name));

        ck_assert_ptr_nonnull(queue);
        queue->size = size;
        queue->latency_known = age != USEC_INFINITY;
        queue->latency = queue->latency_known ? age : 0;
}

static struct queues *make_queues(uint64_t size, usec_t age)
{
        struct queues *queues = calloc(1, sizeof(*queues));

        ck_assert_ptr_nonnull(queues);
        add_queue(queues, "default", size, age);
        add_queue(queues, "reports", 1000, USEC_PER_HOUR);
        return queues;
}

/* Polls the queues once. A job takes `service`; 0: unknown. */
static bool look(struct queues *queues, usec_t service)
{
        struct autoscale_reading reading = {.queues = queues, .service = service};

        FLEET_FOREACH_WORKER(t.fleet, worker)
                worker->heartbeat.concurrency = 5;
        return autoscale_observe(t.fleet, &reading, t.now);
}

static void poll_for(unsigned seconds, uint64_t size, usec_t age)
{
        for (unsigned i = 0; i < seconds; i++) {
                test_tick(&t, 1);
                (void)look(make_queues(size, age), USEC_PER_SEC);
        }
}

static void begin(void)
{
        static const char names[] = "default\0reports\0";
        char *copy = malloc(sizeof(names));

        ck_assert_ptr_nonnull(copy);
        memcpy(copy, names, sizeof(names));
        test_settle(&t);
        autoscale_serves(t.fleet, copy);
        poll_for(5, 0, 0);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
}

static struct demand derive(void)
{
        struct demand demand;

        demand_derive(t.fleet, &demand);
        return demand;
}

TEST(before_the_first_reading_nothing_is_known)
{
        struct demand demand = derive();

        ck_assert(!demand.waiting_known && !demand.latency_known && !demand.backlog_known &&
                  !demand.needed_known);
}

/* 23 s pass until another worker runs jobs, and its boot takes 3 of them. */
static const struct {
        const char *target;
        bool preload, advised;
} preloads[] = {{"21s", false, true}, {"21s", true, false}, {"15s", false, false}};

TEST_LOOP(preload_is_advised_where_it_helps, ELEMENTSOF(preloads))
{
        struct problems problems = {0};

        begin();
        t.fleet_settings.latency_target = (char *)preloads[_i].target;
        t.fleet_settings.preload = preloads[_i].preload;
        autoscale_problems(NULL, t.fleet, t.now, &problems);
        const struct problem *problem = problems_find(&problems, PROBLEM_TARGET_BELOW_BOOT);
        ck_assert_ptr_nonnull(problem);
        ck_assert_int_eq(!!strstr(problem_remedy(problem), "preload"), preloads[_i].advised);
        problems_clear(&problems);
}

TEST(more_workers_are_needed_than_the_maximum_allows)
{
        begin();
        poll_for(3, 2000, 3 * USEC_PER_SEC);
        struct demand demand = derive();

        ck_assert_uint_eq(demand.waiting, 2000);
        ck_assert_double_eq_tol(demand.latency_seconds, 3, 0.001);
        ck_assert_double_eq_tol(demand.backlog_seconds, 2000, 0.001);
        /* 27 s are left for 2000 jobs of 1 s: 72 threads or more. */
        ck_assert(demand.needed_known);
        ck_assert_double_gt(demand.needed_threads, 70);
        ck_assert_uint_eq(demand.needed, autoscale_of(t.fleet)->verdict.needed);
        ck_assert_double_le(demand.needed_threads, 5.0 * demand.needed);
        ck_assert_uint_gt(demand.needed, 8);
        ck_assert_uint_le(autoscale_wanted(t.fleet), 8);
}

TEST(empty_queues_need_no_worker)
{
        begin();
        struct demand demand = derive();

        ck_assert(demand.needed_known && demand.needed == 0);
        ck_assert(demand.latency_known && demand.latency_seconds <= 0);
        ck_assert(demand.backlog_known && demand.backlog_seconds <= 0);
        ck_assert_uint_eq(demand.waiting, 0);
}

TEST(an_unknown_time_per_job_leaves_the_backlog_unknown)
{
        begin();
        (void)look(make_queues(7, USEC_PER_SEC), 0);
        ck_assert(!derive().backlog_known);
        ck_assert_uint_eq(derive().waiting, 7);
        (void)look(make_queues(0, 0), 0);
        ck_assert(derive().backlog_known);
}

TEST(an_oldest_job_that_cannot_be_read_leaves_the_latency_unknown)
{
        struct queues *queues = make_queues(7, 5 * USEC_PER_SEC);

        begin();
        add_queue(queues, "mail", 1, USEC_INFINITY);
        (void)look(queues, USEC_PER_SEC);
        ck_assert(!derive().latency_known && derive().latency_seconds <= 0);
        ck_assert_uint_eq(derive().waiting, 8);
        queues = make_queues(7, 5 * USEC_PER_SEC);
        add_queue(queues, "mail", 1, USEC_INFINITY);
        queues->list[2].paused = true;
        (void)look(queues, USEC_PER_SEC);
        ck_assert_double_eq_tol(derive().latency_seconds, 5, 0.001);
        ck_assert_uint_eq(derive().waiting, 7);
}

TEST(while_the_count_is_held_the_need_is_unknown)
{
        begin();
        t.fleet->rollout.state = ROLLOUT_HALTED;
        (void)look(make_queues(7, USEC_PER_SEC), USEC_PER_SEC);
        ck_assert(!derive().needed_known);
        ck_assert_uint_eq(derive().waiting, 7);
        t.fleet->rollout.state = ROLLOUT_NONE;
        (void)look(NULL, USEC_PER_SEC);
        ck_assert(!derive().needed_known && !derive().waiting_known && !derive().backlog_known);
        (void)look(make_queues(7, USEC_PER_SEC), USEC_PER_SEC);
        ck_assert(derive().needed_known);
        command_quiet_fleet(t.fleet, NULL, t.now);
        (void)look(make_queues(7, USEC_PER_SEC), USEC_PER_SEC);
        ck_assert(!derive().needed_known);
}

TEST(a_fleet_without_workers_needs_one_for_the_first_job)
{
        begin();
        t.fleet_settings.active_process_count = 0;
        t.fleet_settings.scaling = SCALING_ADVISE;
        (void)look(make_queues(0, 0), 0);
        ck_assert(derive().needed_known && derive().needed == 0);
        (void)look(make_queues(1, 0), 0);
        ck_assert(derive().needed_known && derive().needed == 1);
        ck_assert_double_ge(derive().needed_threads, 1);
        (void)look(NULL, 0);
        ck_assert(!derive().needed_known);
        /* No worker has ever named the queues. */
        autoscale_serves(t.fleet, NULL);
        (void)look(calloc(1, sizeof(struct queues)), 0);
        ck_assert(!derive().needed_known && !derive().waiting_known && !derive().backlog_known);
}

static void advise(void)
{
        t.fleet_settings.scaling = SCALING_ADVISE;
}

static size_t scaled_events(void)
{
        return t.fleet->totals.scaled_up + t.fleet->totals.scaled_down;
}

TEST(an_advice_changes_no_count)
{
        char text[AUTOSCALE_TEXT_MAX];

        advise();
        begin();
        poll_for(20, 2000, 3 * USEC_PER_SEC);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
        ck_assert_uint_eq(t.fleet->automatic_count, 0);
        ck_assert_uint_eq(test_counts(&t).live, 2);
        ck_assert_uint_eq(scaled_events(), 0);
        /* The number of booted workers does not bound an advice: no worker boots. */
        ck_assert_uint_eq(autoscale_wanted(t.fleet), 8);
        ck_assert_int_eq(autoscale_of(t.fleet)->verdict.cause, SCALING_WAITING);
        golden_expect("autoscaling", "an advice", autoscale_text(t.fleet, text));
        /* Its limits keep no worker from starting, so they are no problem. */
        struct problems problems = {0};
        autoscale_problems(NULL, t.fleet, t.now, &problems);
        for (size_t i = 0; i < problems.n; i++)
                ck_assert_int_ne(problems.list[i].code, PROBLEM_AUTOSCALING_AT_MAX);
        problems_clear(&problems);
}

/* As long as a count that follows would be kept. */
TEST(an_advice_falls_once_fewer_have_sufficed_for_long_enough)
{
        char text[AUTOSCALE_TEXT_MAX];

        advise();
        begin();
        poll_for(5, 2000, 3 * USEC_PER_SEC);
        poll_for(50, 0, 0);
        ck_assert_uint_eq(autoscale_wanted(t.fleet), 8);
        golden_expect("autoscaling", "an advice, for what was needed", autoscale_text(t.fleet, text));
        poll_for(90, 0, 0);
        ck_assert_uint_eq(autoscale_wanted(t.fleet), 2);
        ck_assert_uint_eq(scaled_events(), 0);
        /* Fewer than an operator has ordered. */
        command_scale(t.fleet, 6, NULL, t.now);
        poll_for(90, 0, 0);
        ck_assert_uint_eq(autoscale_wanted(t.fleet), 2);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 6);
        ck_assert(fleet_is_scaled(t.fleet));
        ck_assert_int_eq(command_scale_auto(t.fleet, NULL, t.now), COMMAND_FIXED);
}

TEST(a_reload_switches_both_ways)
{
        struct fleet_settings applies = t.fleet_settings, advised = t.fleet_settings;
        struct fleet_settings *list[1];
        const struct settings *before_reload = t.world->settings;
        struct settings settings = *before_reload;

        advised.scaling = SCALING_ADVISE;
        settings.fleets = list;
        settings.n_fleets = 1;
        begin();
        poll_for(20, 2000, 3 * USEC_PER_SEC);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 8);
        size_t before = scaled_events();
        list[0] = &advised;
        ck_assert_int_eq(world_reload(t.world, &settings, NULL, t.now), 0);
        ck_assert_uint_eq(t.fleet->automatic_count, 0);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
        (void)look(make_queues(2000, 3 * USEC_PER_SEC), USEC_PER_SEC);
        ck_assert_uint_eq(fleet_current_count(t.fleet), 2);
        ck_assert_uint_eq(autoscale_wanted(t.fleet), 8);
        ck_assert_uint_eq(scaled_events(), before);
        list[0] = &applies;
        ck_assert_int_eq(world_reload(t.world, &settings, NULL, t.now), 0);
        ck_assert(look(make_queues(2000, 3 * USEC_PER_SEC), USEC_PER_SEC));
        ck_assert_uint_gt(fleet_current_count(t.fleet), 2);
        t.fleet->settings = &t.fleet_settings;
        t.world->settings = before_reload;
}

/* The share of this host, as another host reads it. */
static struct peer_share exchanged(char text[static PEER_TEXT_MAX])
{
        struct peer_share mine, read;

        autoscale_share(t.fleet, 0, &mine);
        size_t n = peer_encode(&mine, text);
        ck_assert_int_eq(peer_decode(text, n, &read), 0);
        ck_assert(read.advises == mine.advises && read.weight == mine.weight);
        return read;
}

static unsigned hosts_beside(bool advises)
{
        char text[PEER_TEXT_MAX + 1];
        const struct peer_share other = {
                .weight = 8, .threads = 10, .busy = 10, .advises = advises, .queues = "default\0"};
        struct peers peers = {0};
        struct autoscale_reading reading = {
                .queues = make_queues(200, USEC_PER_SEC), .service = USEC_PER_SEC, .peers = &peers};
        size_t n = peer_encode(&other, text);

        text[n] = '\0';
        ck_assert_int_eq(peers_add(&peers, "other", text, n, t.now), 0);
        (void)autoscale_observe(t.fleet, &reading, t.now);
        peers_clear(&peers);
        return autoscale_of(t.fleet)->hosts;
}

/* Else the jobs that it should take would wait for workers that never start. */
TEST(an_advice_takes_no_part_from_a_host_that_follows)
{
        char text[PEER_TEXT_MAX];

        begin();
        ck_assert(!exchanged(text).advises);
        ck_assert_uint_eq(hosts_beside(false), 2);
        ck_assert_uint_eq(hosts_beside(true), 1);
        advise();
        ck_assert(exchanged(text).advises && exchanged(text).weight == 8);
        ck_assert_uint_eq(hosts_beside(false), 2);
        ck_assert_uint_eq(hosts_beside(true), 2);
        /* Together they report the need once: an outer scaler adds the figures of all. */
        const double need = autoscale_of(t.fleet)->verdict.backlog;
        ck_assert_double_gt(need, 5);
        ck_assert_double_eq_tol(2 * derive().needed_threads, need, 0.001);
}

TEST(a_reply_that_lacks_figures_has_nulls)
{
        static const char reply[] =
                "{\"fleets\":[{\"name\":\"a\",\"framework\":\"rq\",\"active\":2,\"scaling\":null},"
                "{\"name\":\"b\",\"active\":1,\"scaling\":{\"wanted\":3,\"min\":1,\"max\":4,\"because\":"
                "\"c\"}},7]}";
        _cleanup_json_ json_t *status = json_loads(reply, 0, NULL), *fleets = demand_fleets(status),
                              *none = demand_fleets(NULL);

        ck_assert(status && fleets && none);
        ck_assert_uint_eq(json_array_size(none), 0);
        ck_assert_uint_eq(json_array_size(fleets), 3);
        char *text = json_dumps(fleets, JSON_INDENT(1));
        golden_expect("autoscaling", "demand of an older sqmgr", text);
        free(text);
}

/* Allocations of jansson that may still succeed. */
static size_t allocations_left;

static void *allocate(size_t size)
{
        return allocations_left > 0 && allocations_left-- > 0 ? malloc(size) : NULL;
}

TEST(without_memory_there_is_no_list)
{
        _cleanup_json_ json_t *status = json_loads("{\"fleets\":[{\"name\":\"a\"},{}]}", 0, NULL);
        json_t *fleets = NULL;
        size_t n;

        for (n = 0; !fleets; n++) {
                allocations_left = n;
                json_set_alloc_funcs(allocate, free);
                fleets = demand_fleets(status);
                json_set_alloc_funcs(malloc, free);
        }
        ck_assert_uint_gt(n, 10);
        ck_assert_uint_eq(json_array_size(fleets), 2);
        json_decref(fleets);
}

TEST_MAIN("demand", .each = {setup, teardown})
