/* SPDX-License-Identifier: MIT */
/* How many workers the queues ask for, reading by reading. Whether that keeps targets is
 * test_scaling_worlds'. */
#include "autoscaling/autoscale_rules.h"
#include "golden.h"
#include "unit.h"

#define BEGIN USEC_PER_HOUR

static struct scaling scaling;
static struct scaling_limits limits;
static struct queue queue;
static struct queues queues;
static struct scaling_reading reading;
static struct scaling_verdict verdict;
static char text[SCALING_TEXT_MAX];
static usec_t now;

static struct queue queue_of(uint64_t size, usec_t age, usec_t target)
{
        return (struct queue){.size = size, .latency_known = true, .latency = age, .target = target};
}

static void setup(void)
{
        scaling = (struct scaling){0};
        limits = (struct scaling_limits){.min = 2, .max = 10, .down_after = 10 * USEC_PER_MIN};
        queue = queue_of(0, 0, 30 * USEC_PER_SEC);
        queues = (struct queues){.list = &queue, .n = 1};
        reading = (struct scaling_reading){
                .queues = &queues,
                .share = 1,
                .part = 1,
                .service = USEC_PER_SEC / 2,
                .boot = 10 * USEC_PER_SEC,
                .count = 2,
                .active = 2,
                .concurrency = 5,
        };
        now = BEGIN;
}

/* One reading, so many seconds after the last; its workers are active, and the count is applied. */
static unsigned poll_after(unsigned seconds)
{
        now += seconds * USEC_PER_SEC;
        reading.threads = reading.active * reading.concurrency;
        reading.done_busy = reading.busy;
        scaling_observe(&scaling, &limits, &reading, now, &verdict);
        reading.count = verdict.wanted;
        return verdict.wanted;
}

static unsigned look(void)
{
        return poll_after(10);
}

/* With so many threads at work. Returns the count. */
static unsigned poll_for(double busy, unsigned seconds)
{
        reading.busy = busy;
        for (unsigned i = 0; i < seconds / 10; i++) {
                look();
                reading.active = reading.count;
        }
        return reading.count;
}

static const char *because(void)
{
        return scaling_text(&verdict, &limits, text);
}

TEST(what_is_enough_is_kept)
{
        ck_assert_uint_eq(poll_for(9, 1200), 2);
        ck_assert_int_eq(verdict.cause, SCALING_KEPT);
        golden_expect("autoscaling", "what is enough is kept", because());
}

TEST(a_burst_asks_for_the_threads_that_begin_it_in_time)
{
        look();
        queue.size = 600;
        queue.latency = 2 * USEC_PER_SEC;
        /* 18 s are left once more have booted: 600 / (1 + 18 / 0.5) threads. */
        ck_assert_uint_eq(poll_after(5), 4);
        ck_assert_int_eq(verdict.cause, SCALING_WAITING);
        ck_assert_double_eq_tol(verdict.backlog, 16.2, 0.05);
        golden_expect("autoscaling", "a burst asks for the threads that begin it in time", because());
}

TEST(no_more_than_twice_what_takes_jobs)
{
        look();
        queue.size = 4000;
        ck_assert_uint_eq(look(), 4);
        ck_assert(verdict.bounded_by_boot);
        golden_expect("autoscaling", "no more than twice what takes jobs", because());
        /* Those that start are counted: while they do, no more are added. */
        ck_assert_uint_eq(look(), 4);
        reading.active = 4;
        ck_assert_uint_eq(look(), 8);
        reading.active = 8;
        ck_assert_uint_eq(look(), 10);
        golden_expect("autoscaling", "no more than twice what takes jobs, 2", because());
        reading.active = 10;
        ck_assert_uint_eq(look(), 10);
}

TEST(none_that_takes_jobs_is_no_reason_for_many)
{
        reading.active = 0;
        look();
        queue.size = 4000;
        ck_assert_uint_eq(look(), 2);
        ck_assert_uint_eq(look(), 2);
}

TEST(a_job_of_hours_asks_for_one_thread)
{
        reading.service = 3 * USEC_PER_HOUR;
        ck_assert_uint_eq(poll_for(10, 120), 2);
        queue.size = 3;
        queue.latency = 9 * USEC_PER_SEC;
        ck_assert_uint_eq(look(), 3);
        ck_assert_double_eq_tol(verdict.backlog, 13, 0.05);
}

TEST(a_load_that_grows_asks_for_what_it_grows_by)
{
        ck_assert_uint_eq(poll_for(10, 60), 2);
        /* 20 jobs a second come, and 10 threads do as many: 10 more would be needed. */
        for (unsigned i = 0; i < 4; i++) {
                queue.size += 20;
                queue.latency += USEC_PER_SEC;
                poll_after(5);
        }
        ck_assert_uint_ge(reading.count, 3);
        ck_assert_int_eq(verdict.cause == SCALING_LOAD || verdict.cause == SCALING_KEPT, 1);
        ck_assert_double_gt(verdict.growing, 0);
}

/* The service time is wrong by far. */
TEST(what_is_late_asks_for_more_whatever_is_known)
{
        reading.service = USEC_PER_MSEC;
        reading.busy = 9.9;
        look();
        queue.size = 100;
        queue.latency = 9 * USEC_PER_SEC;
        ck_assert_uint_eq(look(), 2);
        queue.latency = 13 * USEC_PER_SEC;
        ck_assert_uint_eq(poll_after(4), 3);
        ck_assert_int_eq(verdict.cause, SCALING_LATE);
        golden_expect("autoscaling", "what is late asks for more whatever is known", because());
}

TEST(what_will_be_done_in_time_is_not_late)
{
        reading.service = USEC_PER_MSEC;
        reading.busy = 9.9;
        queue.size = 200;
        look();
        for (unsigned i = 0; i < 4; i++) {
                queue.size -= 44;
                queue.latency += 4 * USEC_PER_SEC;
                ck_assert_uint_eq(poll_after(4), 2);
        }
        ck_assert_uint_gt(queue.latency, queue.target / 3);
        /* Where nothing is taken from it any more it is. */
        for (unsigned i = 0; i < 20; i++) {
                queue.latency += USEC_PER_SEC;
                poll_after(1);
        }
        ck_assert_uint_gt(reading.count, 2);
}

TEST(threads_that_run_nothing_are_not_late)
{
        reading.service = USEC_PER_MSEC;
        reading.busy = 5;
        queue.size = 1;
        queue.latency = 40 * USEC_PER_SEC;
        ck_assert_uint_eq(poll_for(reading.busy, 60), 2);
}

/* The oldest job may have waited for long, as far as is known. */
TEST(fewer_only_while_it_is_known_how_long_jobs_wait)
{
        struct queue two[] = {queue, queue};

        reading.count = reading.active = 5;
        reading.busy = 8;
        queues = (struct queues){.list = two, .n = 2};
        two[1].size = 1;
        two[1].latency_known = false;
        look();
        ck_assert_uint_eq(poll_for(reading.busy, 1200), 5);
        ck_assert(verdict.peak_is_complete && verdict.age_unknown);
        /* In a queue that is ignored it does not matter. */
        two[1].paused = true;
        ck_assert_uint_eq(look(), 4);
        two[1].paused = false;
        ck_assert_uint_eq(look(), 4);
        two[1].latency_known = true;
        ck_assert_uint_eq(look(), 3);
        /* More are added as before. */
        two[1].size = 1000;
        two[1].latency_known = false;
        reading.active = 3;
        ck_assert_uint_gt(look(), 3);
        ck_assert_msg(strncmp(because(), "1000 jobs waiting; at 500ms per job", 35) == 0, "%s", text);
}

/* A burst while the service time is not known: the average of the busy threads rises slowly. */
TEST(fewer_only_while_it_is_known_what_waiting_jobs_need)
{
        reading.service = 0;
        reading.done_known = true;
        reading.count = reading.active = 4;
        limits.down_after = 5 * USEC_PER_SEC;
        queue.size = 400;
        look();
        reading.busy = 20;
        for (unsigned i = 0; i < 19; i++) {
                reading.done += 20;
                queue.size -= 20;
                ck_assert_uint_eq(poll_after(1), 4);
        }
        ck_assert_uint_eq(verdict.service, 0);
        ck_assert_double_lt(verdict.peak, 10);
        queue.size = 0;
        ck_assert_uint_eq(poll_after(1), 3);
}

TEST(fewer_only_after_all_of_the_time)
{
        reading.count = reading.active = 5;
        reading.busy = 8;
        look();
        ck_assert_uint_eq(poll_for(reading.busy, 590), 5);
        ck_assert(!verdict.peak_is_complete);
        ck_assert_uint_eq(look(), 4);
        golden_expect("autoscaling", "fewer only after all of the time", because());
        /* The next one when that one has drained. */
        reading.draining = 1;
        ck_assert_uint_eq(look(), 4);
        reading.draining = 0;
        ck_assert_uint_eq(look(), 3);
        ck_assert_uint_eq(look(), 2);
        /* 8 threads of 5 would be too many; nor is it the least. */
        ck_assert_uint_eq(look(), 2);
}

TEST(one_need_in_between_keeps_the_count_for_all_of_the_time)
{
        reading.count = reading.active = 5;
        poll_for(4, 400);
        queue.size = 800;
        look();
        queue.size = 0;
        ck_assert_uint_eq(poll_for(reading.busy, 590), 5);
        ck_assert_uint_lt(poll_for(reading.busy, 60), 5);
}

TEST(another_time_by_a_reload_is_watched_from_what_is_known)
{
        reading.count = reading.active = 5;
        poll_for(20, 3000);
        ck_assert_uint_eq(poll_for(4, 580), 5);
        limits.down_after = USEC_PER_HOUR;
        ck_assert_uint_eq(poll_for(reading.busy, 3400), 5);
        ck_assert(!verdict.peak_is_complete);
        ck_assert_uint_lt(poll_for(reading.busy, 300), 5);
}

TEST(a_shorter_time_by_a_reload_forgets_nothing_that_was_in_it)
{
        reading.count = reading.active = 5;
        reading.busy = 4;
        limits.down_after = USEC_PER_HOUR;
        poll_for(reading.busy, 230);
        reading.busy = 20;
        look();
        poll_for(4, 300);
        /* The average has come down by then, and one part of an hour is longer than all of that time. */
        double before = verdict.peak;
        limits.down_after = 100 * USEC_PER_SEC;
        ck_assert_uint_eq(look(), 4);
        ck_assert_double_lt(verdict.peak, before);
}

TEST(a_need_that_moves_a_little_moves_nothing)
{
        unsigned changes = 0;

        reading.count = reading.active = 3;
        for (unsigned i = 0; i < 3600; i++) {
                unsigned before = reading.count;

                reading.busy = i % 2 == 0 ? 9.3 : 10.4;
                look();
                reading.active = reading.count;
                changes += reading.count != before;
        }
        ck_assert_uint_eq(changes, 0);
}

TEST(held_keeps_the_count_and_begins_anew)
{
        static const struct {
                enum scaling_hold hold;
                const char *name;
        } holds[] = {
                {SCALING_HELD_REDIS, "Redis"},
                {SCALING_HELD_HOSTS, "hosts"},
                {SCALING_HELD_ROLLOUT, "restart"},
                {SCALING_HELD_HALTED, "halted restart"},
        };

        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(holds); i++) {
                setup();
                reading.count = reading.active = 5;
                poll_for(reading.busy, 590);
                reading.hold = holds[i].hold;
                queue.size = 100000;
                ck_assert_uint_eq(look(), 5);
                ck_assert_int_eq(verdict.cause, SCALING_HELD);
                ck_assert_int_eq(verdict.hold, holds[i].hold);
                golden_add(holds[i].name, because());
                reading.hold = SCALING_FREE;
                queue.size = 0;
                ck_assert_uint_eq(poll_for(reading.busy, 590), 5);
                ck_assert_uint_lt(poll_for(reading.busy, 30), 5);
        }
        golden_end("autoscaling", "held");
}

TEST(what_happened_unseen_is_no_growth)
{
        poll_for(5, 60);
        queue.size = 30;
        poll_after(300);
        ck_assert_double_eq(verdict.growing, 0);
        ck_assert_uint_eq(reading.count, 2);
}

TEST(paused_queues_and_those_without_a_target_are_left_out)
{
        struct queue served[] = {
                queue_of(5, USEC_PER_SEC, 30 * USEC_PER_SEC),
                queue_of(90000, USEC_PER_DAY, 30 * USEC_PER_SEC),
                queue_of(90000, USEC_PER_DAY, 0),
        };

        served[1].paused = true;
        queues = (struct queues){.list = served, .n = 3};
        ck_assert_uint_eq(poll_for(10, 60), 2);
        ck_assert_uint_eq(verdict.waiting, 5);
        served[0].paused = true;
        look();
        ck_assert_int_eq(verdict.hold, SCALING_HELD_PAUSED);
        golden_expect("autoscaling", "paused queues and those without a target are left out", because());
}

TEST(the_queue_closest_to_its_target_is_reported_of)
{
        struct queue served[] = {
                queue_of(5, 10 * USEC_PER_SEC, 30 * USEC_PER_SEC),
                queue_of(1, 40 * USEC_PER_SEC, 300 * USEC_PER_SEC),
        };

        queues = (struct queues){.list = served, .n = 2};
        look();
        ck_assert_uint_eq(verdict.age, 10 * USEC_PER_SEC);
        served[1].latency = 200 * USEC_PER_SEC;
        look();
        ck_assert_uint_eq(verdict.age, 200 * USEC_PER_SEC);
        ck_assert_uint_eq(verdict.waiting, 6);
}

/* 6 threads at work all the time do 3 jobs a second: 2 s each. */
TEST(service_time_by_what_is_done)
{
        reading.service = 0;
        reading.done_known = true;
        reading.busy = 6;
        look();
        reading.done += 30;
        look();
        ck_assert_uint_eq(verdict.service, 0);
        for (unsigned i = 0; i < 10; i++) {
                reading.done += 30;
                look();
        }
        ck_assert_double_eq_tol((double)verdict.service / USEC_PER_SEC, 2, 0.01);
        /* What a hold has taught is not lost. */
        reading.hold = SCALING_HELD_REDIS;
        look();
        reading.hold = SCALING_FREE;
        reading.done = 0;
        poll_for(reading.busy, 60);
        ck_assert_double_ge((double)verdict.service / USEC_PER_SEC, 2);
}

TEST(jobs_that_never_end_take_at_least_what_was_worked)
{
        reading.service = 0;
        reading.done_known = true;
        poll_for(5, 300);
        ck_assert_uint_gt(verdict.service, 100 * USEC_PER_SEC);
}

TEST(a_counter_that_was_reset_is_no_work_done)
{
        reading.service = 0;
        reading.done_known = true;
        reading.done = 1000000;
        reading.busy = 6;
        look();
        reading.done = 0;
        poll_for(reading.busy, 60);
        ck_assert_uint_gt(verdict.service, 60 * USEC_PER_SEC);
        ck_assert_uint_eq(reading.count, 2);
}

TEST(threads_of_others_are_counted_with)
{
        look();
        queue.size = 600;
        reading.foreign_idle = 8;
        ck_assert_uint_eq(poll_after(5), 2);
        ck_assert_double_lt(verdict.need, verdict.backlog);
}

TEST(each_of_those_that_scale_together_takes_its_part)
{
        look();
        queue.size = 2000;
        reading.active = reading.count = 4;
        reading.part = 1.0 / 3;
        /* 54 threads, of which a third. */
        ck_assert_uint_eq(poll_after(5), 4);
        ck_assert_double_eq_tol(verdict.need * 3, verdict.backlog, 0.001);
        queue.size = 3000;
        ck_assert_uint_eq(poll_after(5), 6);
}

TEST(a_reload_puts_the_count_within_its_limits)
{
        reading.count = reading.active = 12;
        ck_assert_uint_eq(look(), 10);
        ck_assert_int_eq(verdict.cause, SCALING_LIMITS);
        golden_expect("autoscaling", "a reload puts the count within its limits", because());
        limits.min = limits.max = 4;
        reading.hold = SCALING_HELD_REDIS;
        ck_assert_uint_eq(look(), 4);
        reading.count = 1;
        ck_assert_uint_eq(look(), 4);
}

TEST(nothing_is_wanted_before_a_worker_has_reported_its_threads)
{
        reading.concurrency = 0;
        queue.size = 100000;
        ck_assert_uint_eq(look(), 2);
        ck_assert_int_eq(verdict.hold, SCALING_HELD_HEARTBEATS);
        golden_expect("autoscaling", "nothing is wanted before a worker has reported its threads", because());
}

/* What is read from Redis may be anything. */
TEST(figures_without_bounds_are_held_within)
{
        static const uint64_t sizes[] = {0, 1, UINT32_MAX, UINT64_MAX};
        static const usec_t ages[] = {0, 1, USEC_PER_DAY, USEC_INFINITY};

        for (size_t i = 0; i < ELEMENTSOF(sizes); i++)
                for (size_t j = 0; j < ELEMENTSOF(ages); j++)
                        for (size_t k = 0; k < ELEMENTSOF(ages); k++) {
                                queue = queue_of(sizes[i], ages[j], MAX(ages[k], (usec_t)1));
                                reading.busy = (double)UINT32_MAX;
                                reading.service = ages[3 - j];
                                reading.boot = ages[3 - k];
                                ck_assert_uint_ge(poll_for(reading.busy, 30), limits.min);
                                ck_assert_uint_le(reading.count, limits.max);
                                ck_assert_uint_lt(strlen(because()), SCALING_TEXT_MAX - 1);
                        }
        limits.down_after = 0;
        poll_for(reading.busy, 30);
        limits.down_after = USEC_INFINITY;
        ck_assert_uint_le(poll_for(reading.busy, 30), limits.max);
}

static void sleep_with(unsigned count)
{
        limits.min = 0;
        reading.count = reading.active = count;
        reading.done_known = true;
}

TEST(the_last_worker_ends_once_nothing_was_there_for_long)
{
        sleep_with(1);
        poll_for(0.5, 60);
        ck_assert_uint_eq(poll_for(0, 590), 1);
        queue.size = 1;
        look();
        queue.size = 0;
        ck_assert_uint_eq(poll_for(0, 590), 1);
        ck_assert_uint_eq(look(), 0);
        ck_assert_int_eq(verdict.cause, SCALING_FEWER);
}

TEST(jobs_that_were_done_between_two_readings_keep_the_last_worker)
{
        sleep_with(1);
        for (unsigned i = 0; i < 70; i++) {
                reading.done++;
                look();
        }
        ck_assert_uint_eq(reading.count, 1);
        ck_assert_uint_eq(poll_for(0, 610), 0);
}

TEST(the_last_worker_does_not_end_while_it_boots)
{
        sleep_with(1);
        for (unsigned i = 0; i < 70; i++) {
                reading.active = 0;
                ck_assert_uint_eq(look(), 1);
        }
        reading.active = 1;
        ck_assert_uint_eq(look(), 0);
}

TEST(a_job_that_is_about_to_fall_due_keeps_the_last_worker)
{
        sleep_with(1);
        queue.due_known = true;
        queue.due_in = 5 * USEC_PER_SEC;
        ck_assert_uint_eq(poll_for(0, 700), 1);
        queue.due_in = USEC_PER_HOUR;
        ck_assert_uint_eq(poll_for(0, 610), 0);
}

static const struct {
        struct queue queue;
        double foreign_idle;
        enum scaling_hold hold;
        unsigned max, count; /* max 0: that of all tests */
        const char *golden;  /* NULL: the reason is not compared */
} sleepers[] = {
        {.count = 0, .golden = "asleep"},
        {.queue.size = 1, .count = 1, .golden = "awake for the first job"},
        /* Many jobs wake two, and no more before a boot. */
        {.queue.size = 100000, .count = 2},
        {.queue.size = 100000, .max = 1, .count = 1},
        /* A job that falls due wakes ahead by a boot. */
        {.queue = {.due_known = true, .due_in = 27 * USEC_PER_SEC}, .count = 0},
        {.queue = {.due_known = true, .due_in = 26 * USEC_PER_SEC},
         .count = 1,
         .golden = "awake for a job that falls due"},
        /* Idle threads elsewhere take as many jobs. */
        {.queue.size = 2, .foreign_idle = 2, .count = 0},
        {.queue.size = 3, .foreign_idle = 2, .count = 1},
        /* A restart does not keep a fleet asleep, but a pause and an outage do. */
        {.queue.size = 1, .hold = SCALING_HELD_ROLLOUT, .count = 1},
        {.queue.size = 1, .hold = SCALING_HELD_HALTED, .count = 1},
        {.queue.size = 1, .hold = SCALING_HELD_HOSTS, .count = 1},
        {.queue.size = 1, .hold = SCALING_HELD_REDIS, .count = 0},
        {.queue = {.size = 1, .paused = true}, .count = 0},
};

TEST_LOOP(what_wakes_a_sleeping_fleet, ELEMENTSOF(sleepers))
{
        usec_t target = queue.target;

        sleep_with(0);
        queue = sleepers[_i].queue;
        queue.target = target;
        queue.latency_known = true;
        reading.foreign_idle = sleepers[_i].foreign_idle;
        reading.hold = sleepers[_i].hold;
        limits.max = sleepers[_i].max ?: limits.max;
        ck_assert_uint_eq(look(), sleepers[_i].count);
        if (sleepers[_i].golden)
                golden_expect("autoscaling", sleepers[_i].golden, because());
}

TEST(what_is_not_known_is_learned_from_one_worker)
{
        sleep_with(0);
        reading.unserved = true;
        queues.n = 0;
        ck_assert_uint_eq(look(), 1);
        golden_expect("autoscaling", "awake to learn the queues", because());
        sleep_with(0);
        reading.unserved = false;
        reading.concurrency = 0;
        ck_assert_uint_eq(look(), 1);
}

TEST(a_long_sleep_changes_nothing)
{
        sleep_with(0);
        look();
        const struct scaling before = scaling;
        for (unsigned i = 0; i < 4 * 3600 * 12; i++) {
                now += USEC_PER_SEC / 4;
                scaling_observe(&scaling, &limits, &reading, now, &verdict);
        }
        ck_assert_mem_eq(&before, &scaling, sizeof(before));
        ck_assert_uint_eq(verdict.wanted, 0);
}

TEST_MAIN("scaling", .each = {setup, NULL})
