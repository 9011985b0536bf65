/* SPDX-License-Identifier: MIT */
/* Tests of when a record belongs to a process by the time at which it was registered (observe/match.h). */
/* promises: P1 P9 */
#include "model/world.h"
#include "observe/match.h"
#include "observe/observe.h"
#include "unit.h"
#include "world.h"

#define SEC  USEC_PER_SEC
#define WALL (1795344309 * SEC) /* the wall clock at the boot of the machine */
/* The machine was suspended for this long. */
#define SLEPT (40 * SEC)
#define LASTS (480 * SEC)

TEST_WORLD(1)
{
}

/* A tick so much later, by a wall clock that was stepped by so much in all. */
static void tell_time(usec_t later, int64_t stepped)
{
        t.now += later;
        (void)observe_clocks(t.world, t.now, t.now + SLEPT,
                             (usec_t)((int64_t)(WALL + t.now + SLEPT) + stepped));
}

/* A process that was started 5 s ago, and registered 2 s later. */
static struct birth young(int64_t stepped)
{
        return (struct birth){
                .born_usec = (uint64_t)((int64_t)(WALL + t.now + SLEPT - 3 * SEC) + stepped),
                .started_at = t.now + SLEPT - 5 * SEC,
                .booted = true,
                .monotonic = t.now,
                .boottime = t.now + SLEPT,
                .realtime = (usec_t)((int64_t)(WALL + t.now + SLEPT) + stepped),
        };
}

static bool is_own(const struct birth *birth)
{
        return birth_is_own(birth, t.world, LASTS);
}

TEST(a_record_no_older_than_its_process_is_its_own)
{
        struct birth birth = young(0);

        ck_assert(is_own(&birth));
        birth.born_usec = birth.realtime - 5 * SEC;
        ck_assert(is_own(&birth));
        birth.born_usec--; /* by a process that had this pid before */
        ck_assert(!is_own(&birth));
        birth.born_usec = birth.realtime;
        ck_assert(is_own(&birth));
        birth.born_usec++; /* by a host whose clock is ahead */
        ck_assert(!is_own(&birth));
        birth.born_usec = 0;
        ck_assert(!is_own(&birth));
}

TEST(a_process_that_may_not_have_booted_owns_no_record)
{
        struct birth birth = young(0);

        birth.booted = false;
        ck_assert(!is_own(&birth));
        /* Nothing shows whether it has, and it has had the time. */
        birth.started_at = birth.boottime - BIRTH_UNSEEN_BOOT_USEC;
        ck_assert(is_own(&birth));
        birth.started_at++;
        ck_assert(!is_own(&birth));
}

TEST(after_a_step_back_no_record_counts_until_those_of_the_dead_are_gone)
{
        tell_time(SEC, 0);
        struct birth birth = young(-60 * (int64_t)SEC);
        ck_assert(!is_own(&birth)); /* a step that no tick has seen yet */
        tell_time(SEC, -60 * (int64_t)SEC);
        for (usec_t passed = 0; passed < LASTS; passed += 60 * SEC, tell_time(60 * SEC, -60 * (int64_t)SEC)) {
                birth = young(-60 * (int64_t)SEC);
                ck_assert(!is_own(&birth));
        }
        tell_time(1, -60 * (int64_t)SEC);
        birth = young(-60 * (int64_t)SEC);
        ck_assert(is_own(&birth));
}

/* A record from before a step forward looks older than it is, and a suspend moves no start. */
TEST(a_step_forward_and_a_suspend_hold_up_nothing)
{
        tell_time(SEC, 0);
        tell_time(SEC, 60 * (int64_t)SEC);
        struct birth birth = young(60 * (int64_t)SEC);
        ck_assert(is_own(&birth));
        birth.born_usec -= 60 * SEC;
        ck_assert(!is_own(&birth));

        birth = young(60 * (int64_t)SEC);
        birth.boottime += 300 * SEC;
        birth.realtime += 300 * SEC;
        (void)observe_clocks(t.world, birth.monotonic, birth.boottime, birth.realtime);
        ck_assert(is_own(&birth));
}

/* A worker that was started 5 s ago, after the first tick, and the record of another host's process of its
 * pid, which registered 10 s ago and sends heartbeats. */
static struct birth older(int64_t stepped)
{
        struct birth birth = young(stepped);

        birth.born_usec = birth.realtime - 10 * SEC;
        birth.sent_usec = birth.realtime - SEC;
        return birth;
}

static bool is_foreign(const struct birth *birth)
{
        return birth_is_foreign(birth, t.world);
}

TEST(a_record_that_is_older_than_its_process_is_of_another_host)
{
        tell_time(SEC, 0);
        t.now += 20 * SEC;
        struct birth birth = older(0);
        ck_assert(is_foreign(&birth) && !is_own(&birth));
        birth.born_usec = birth.realtime - 6 * SEC - 1;
        ck_assert(is_foreign(&birth));
        birth.born_usec++; /* the clock may have been adjusted by a second without notice */
        ck_assert(!is_foreign(&birth) && !is_own(&birth));
        birth.born_usec = 0;
        ck_assert(!is_foreign(&birth));
}

/* As the first workers of a sqmgr: /proc shows their start up to 10 ms too early. */
TEST(a_start_in_the_first_tick_is_after_it)
{
        struct birth birth;

        tell_time(SEC, 0);
        birth = older(0);
        birth.started_at = birth.boottime - 10 * USEC_PER_MSEC;
        ck_assert(is_foreign(&birth));
        birth.started_at--;
        ck_assert(!is_foreign(&birth));
}

TEST(no_record_is_rejected_by_a_clock_that_was_stepped_since_the_start)
{
        static const int64_t steps[] = {60 * (int64_t)SEC, -60 * (int64_t)SEC};

        for (size_t i = 0; i < ELEMENTSOF(steps); i++) {
                t.world->doubt = (struct doubt){0};
                struct birth birth = older(0);
                ck_assert(!is_foreign(&birth)); /* no tick yet */
                tell_time(SEC, 0);
                birth = older(0);
                ck_assert(!is_foreign(&birth)); /* started before this sqmgr, which saw no step before that */
                t.now += 20 * SEC;
                birth = older(0);
                ck_assert(is_foreign(&birth));
                birth = older(steps[i]);
                ck_assert(!is_foreign(&birth)); /* a step that no tick has seen yet */
                tell_time(0, steps[i]);
                birth = older(steps[i]);
                ck_assert(!is_foreign(&birth));
                t.now += 6 * SEC; /* a process that was started after the step */
                birth = older(steps[i]);
                ck_assert(is_foreign(&birth));
        }
}

/* Each is too short to be reported. */
TEST(short_steps_of_the_clock_add_up)
{
        tell_time(SEC, 0);
        tell_time(20 * SEC, 0);
        usec_t since = t.world->doubt.since;
        for (int64_t step = 0; step <= (int64_t)SEC; step += (int64_t)SEC / 2) {
                tell_time(0, step);
                const struct birth birth = older(step);
                ck_assert(is_foreign(&birth));
        }
        tell_time(0, 3 * (int64_t)SEC / 2);
        const struct birth birth = older(3 * (int64_t)SEC / 2);
        ck_assert(!is_foreign(&birth));
        ck_assert_uint_eq(t.world->doubt.since, since);
}

/* As with times of an application that are not in UTC: its own record looks hours old, too. */
TEST(a_record_by_a_clock_that_shows_another_time_is_not_rejected)
{
        tell_time(SEC, 0);
        t.now += 20 * SEC;
        struct birth birth = older(0);
        birth.sent_usec = birth.realtime - BIRTH_CLOCK_USEC;
        ck_assert(is_foreign(&birth));
        birth.sent_usec--;
        ck_assert(!is_foreign(&birth));
        birth.sent_usec = birth.realtime + BIRTH_CLOCK_USEC;
        ck_assert(is_foreign(&birth));
        birth.sent_usec++;
        ck_assert(!is_foreign(&birth));
}

TEST_MAIN("birth", .each = {setup, teardown})
