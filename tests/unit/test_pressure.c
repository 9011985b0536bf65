/* SPDX-License-Identifier: MIT */
/* When memory counts as short, second by second. */
#include "model/pressure.h"
#include "unit.h"

#define LIMIT    1000
#define GIGABYTE ((uint64_t)1 << 30)

static struct pressure pressure;
static struct pressure_reading reading;
static usec_t now;

static void setup(void)
{
        pressure = (struct pressure){0};
        reading = (struct pressure_reading){
                .avg10 = 2500, .avg60 = 1200, .available_bytes = GIGABYTE, .total_bytes = 16 * GIGABYTE};
        now = USEC_PER_HOUR;
}

/* Seconds until something has come of it, 60 at most. */
static unsigned run_until(enum pressure_outcome outcome)
{
        for (unsigned second = 0; second < 60; second++, now += USEC_PER_SEC)
                if (pressure_observe(&pressure, &reading, LIMIT, now) == outcome)
                        return second;
        return 60;
}

TEST(what_the_kernel_writes_is_read)
{
        struct pressure_reading read = {0};

        ck_assert(
                pressure_parse("some avg10=0.12 avg60=99.99 avg300=0.00 total=123\nfull avg10=7.00", &read));
        ck_assert_uint_eq(read.avg10, 12);
        ck_assert_uint_eq(read.avg60, 9999);
        ck_assert(pressure_parse("some avg10=100.00 avg60=0.00 avg300=", &read));
        ck_assert_uint_eq(read.avg10, 10000);
}

TEST(what_it_does_not_write_is_not)
{
        static const char *const texts[] = {
                "",
                "some",
                "some avg10=",
                "full avg10=0.00 avg60=0.00 avg300=0.00",
                "some avg10=1 avg60=1.00 ",
                "some avg10=1.0 avg60=1.00 ",
                "some avg10=1.00",
                "some avg10=1.00 avg60=1.00",
                "some avg10=-1.00 avg60=1.00 ",
                "some avg10=.00 avg60=1.00 ",
                "some avg10=100.01 avg60=1.00 ",
                "some avg10=1000.00 avg60=1.00 ",
                "some avg10=99999999999999999999.00 avg60=1.00 ",
                " some avg10=1.00 avg60=1.00 ",
        };

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                struct pressure_reading read = {.avg10 = 7, .avg60 = 8};

                ck_assert_msg(!pressure_parse(texts[i], &read), "'%s' was read", texts[i]);
                ck_assert_uint_eq(read.avg10, 7);
                ck_assert_uint_eq(read.avg60, 8);
        }
}

TEST(it_must_last_for_ten_seconds)
{
        ck_assert_uint_eq(run_until(PRESSURE_BEGAN), 10);
        ck_assert(pressure.high);
        ck_assert_uint_eq(run_until(PRESSURE_ENDED), 60);
        reading.avg10 = LIMIT;
        ck_assert_uint_eq(run_until(PRESSURE_ENDED), 10);
        ck_assert(!pressure.high);
}

TEST(one_second_at_ease_begins_it_anew)
{
        for (unsigned i = 0; i < 9; i++, now += USEC_PER_SEC)
                ck_assert_int_eq(pressure_observe(&pressure, &reading, LIMIT, now), PRESSURE_SAME);
        reading.avg10 = 0;
        ck_assert_int_eq(pressure_observe(&pressure, &reading, LIMIT, now), PRESSURE_SAME);
        reading.avg10 = 2500;
        now += USEC_PER_SEC;
        ck_assert_uint_eq(run_until(PRESSURE_BEGAN), 10);
}

TEST(stalls_with_memory_left_are_no_emergency)
{
        reading.available_bytes = 2 * GIGABYTE;
        ck_assert_uint_eq(run_until(PRESSURE_BEGAN), 60);
}

TEST(what_falls_already_is_none)
{
        reading.avg60 = 2600;
        ck_assert_uint_eq(run_until(PRESSURE_BEGAN), 60);
        /* Once it rises it has lasted. */
        reading.avg60 = 2400;
        ck_assert_uint_eq(run_until(PRESSURE_BEGAN), 0);
}

TEST(one_worker_a_minute)
{
        ck_assert(!pressure_acts(&pressure, &reading, now));
        run_until(PRESSURE_BEGAN);
        ck_assert(pressure_acts(&pressure, &reading, now));
        pressure.acted_at = now;
        ck_assert(!pressure_acts(&pressure, &reading, now));
        ck_assert(!pressure_acts(&pressure, &reading, now + USEC_PER_MIN - 1));
        ck_assert(pressure_acts(&pressure, &reading, now + USEC_PER_MIN));
        /* What the last one has left makes it fall. */
        reading.avg60 = 2600;
        ck_assert(!pressure_acts(&pressure, &reading, now + USEC_PER_MIN));
        reading = (struct pressure_reading){
                .avg10 = LIMIT, .avg60 = 0, .available_bytes = 1, .total_bytes = GIGABYTE};
        pressure_observe(&pressure, &reading, LIMIT, now + USEC_PER_MIN);
        ck_assert(!pressure_acts(&pressure, &reading, now + USEC_PER_MIN));
}

TEST_MAIN("pressure", .each = {setup, NULL})
