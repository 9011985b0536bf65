/* SPDX-License-Identifier: MIT */
/* Tests of base/parse.h. */
#include "base/parse.h"
#include "unit.h"
#include <inttypes.h>
#include <signal.h>

#define GIB (UINT64_C(1) << 30)

static const struct {
        const char *text;
        uint64_t min, max;
        int r;
        uint64_t value;
} unsigned_cases[] = {
        {"0", 0, 10, 0, 0},
        {"10", 0, 10, 0, 10},
        {"007", 0, 10, 0, 7},
        {"18446744073709551615", 0, UINT64_MAX, 0, UINT64_MAX},
        {"18446744073709551616", 0, UINT64_MAX, -ERANGE, 0},
        {"99999999999999999999999", 0, UINT64_MAX, -ERANGE, 0},
        {"11", 0, 10, -ERANGE, 0},
        {"0", 1, 10, -ERANGE, 0},
        {"", 0, 10, -EINVAL, 0},
        {" 1", 0, 10, -EINVAL, 0},
        {"1 ", 0, 10, -EINVAL, 0},
        {"+1", 0, 10, -EINVAL, 0},
        {"-1", 0, 10, -EINVAL, 0},
        {"1x", 0, 10, -EINVAL, 0},
        {"0x1", 0, 10, -EINVAL, 0},
        {"1.0", 0, 10, -EINVAL, 0},
};

TEST_LOOP(reads_whole_numbers_within_bounds, ELEMENTSOF(unsigned_cases))
{
        uint64_t value = 77;

        ck_assert_msg(parse_unsigned(unsigned_cases[_i].text, unsigned_cases[_i].min, unsigned_cases[_i].max,
                                     &value) == unsigned_cases[_i].r,
                      "'%s'", unsigned_cases[_i].text);
        ck_assert_uint_eq(value, unsigned_cases[_i].r == 0 ? unsigned_cases[_i].value : 77);
}

static const struct {
        const char *text;
        int r;
        usec_t value;
} duration_cases[] = {
        {"500ms", 0, 500 * USEC_PER_MSEC},
        {"10s", 0, 10 * USEC_PER_SEC},
        {"5min", 0, 5 * USEC_PER_MIN},
        {"2h", 0, 2 * USEC_PER_HOUR},
        {"1d", 0, USEC_PER_DAY},
        {"0s", 0, 0},
        {"1h 30min", 0, 90 * USEC_PER_MIN},
        {"1h30min", 0, 90 * USEC_PER_MIN},
        {"1d 2h 3min 4s 5ms", 0, USEC_PER_DAY + 2 * USEC_PER_HOUR + 3 * USEC_PER_MIN + 4005 * USEC_PER_MSEC},
        {"10", -EINVAL, 0},
        {"0", -EINVAL, 0},
        {"", -EINVAL, 0},
        {"s", -EINVAL, 0},
        {"10 s", -EINVAL, 0},
        {"10s ", -EINVAL, 0},
        {" 10s", -EINVAL, 0},
        {"-10s", -EINVAL, 0},
        {"1.5s", -EINVAL, 0},
        {"10us", -EINVAL, 0},
        {"10m", -EINVAL, 0},
        {"10S", -EINVAL, 0},
        {"10sec", -EINVAL, 0},
        {"30min 1h", -EINVAL, 0},
        {"1s 1s", -EINVAL, 0},
        {"1h 30", -EINVAL, 0},
        {"infinity", -EINVAL, 0},
        {"99999999999999999999s", -ERANGE, 0},
        {"18446744073709551615s", -ERANGE, 0},
        {"213503982d 99999999999999h", -ERANGE, 0},
        {"213503982d 99999999h", -ERANGE, 0},
};

TEST_LOOP(reads_durations_with_units, ELEMENTSOF(duration_cases))
{
        usec_t value = 77;

        ck_assert_msg(parse_duration(duration_cases[_i].text, &value) == duration_cases[_i].r, "'%s'",
                      duration_cases[_i].text);
        ck_assert_uint_eq(value, duration_cases[_i].r == 0 ? duration_cases[_i].value : 77);
}

static const struct {
        const char *text;
        uint64_t total;
        int r;
        uint64_t value;
} size_cases[] = {
        {"4096", 0, 0, 4096},
        {"64K", 0, 0, 65536},
        {"512M", 0, 0, 512 << 20},
        {"512m", 0, 0, 512 << 20},
        {"1G", 0, 0, GIB},
        {"2T", 0, 0, 2048 * GIB},
        {"0", 0, 0, 0},
        {"25%", 8 * GIB, 0, 2 * GIB},
        {"100%", 12345, 0, 12345},
        {"1%", 199, 0, 1},
        {"50%", UINT64_MAX, 0, UINT64_MAX / 2},
        {"25%", 0, -ENODATA, 0},
        {"0%", GIB, -ERANGE, 0},
        {"101%", GIB, -ERANGE, 0},
        {"25 %", GIB, -EINVAL, 0},
        {"%", GIB, -EINVAL, 0},
        {"512MB", 0, -EINVAL, 0},
        {"512 M", 0, -EINVAL, 0},
        {"1.5G", 0, -EINVAL, 0},
        {"-1", 0, -EINVAL, 0},
        {"M", 0, -EINVAL, 0},
        {"", 0, -EINVAL, 0},
        {"5X", 0, -EINVAL, 0},
        {"16777216T", 0, -ERANGE, 0},
        {"99999999999999999999", 0, -ERANGE, 0},
};

TEST_LOOP(reads_sizes_and_shares_of_memory, ELEMENTSOF(size_cases))
{
        uint64_t value = 77;

        ck_assert_msg(parse_size(size_cases[_i].text, size_cases[_i].total, &value) == size_cases[_i].r,
                      "'%s'", size_cases[_i].text);
        ck_assert_uint_eq(value, size_cases[_i].r == 0 ? size_cases[_i].value : 77);
}

TEST(reads_and_names_signals)
{
        int signo = 0;

        ck_assert_int_eq(parse_signal("TERM", &signo), 0);
        ck_assert_int_eq(signo, SIGTERM);
        ck_assert_int_eq(parse_signal("SIGINT", &signo), 0);
        ck_assert_int_eq(signo, SIGINT);
        ck_assert_int_eq(parse_signal("sigusr2", &signo), 0);
        ck_assert_int_eq(signo, SIGUSR2);
        ck_assert_int_eq(parse_signal("15", &signo), -EINVAL);
        ck_assert_int_eq(parse_signal("SIG", &signo), -EINVAL);
        ck_assert_int_eq(parse_signal("", &signo), -EINVAL);
        ck_assert_int_eq(parse_signal("TERMINATE", &signo), -EINVAL);
        ck_assert_int_eq(signo, SIGUSR2);
}

static const struct {
        usec_t usec;
        const char *text, *exact;
} format_duration_cases[] = {
        {0, "0s", "0s"},
        {999, "0s", "0s"},
        {350 * USEC_PER_MSEC, "350ms", "350ms"},
        {USEC_PER_SEC, "1s", "1s"},
        {1500 * USEC_PER_MSEC, "1.5s", "1500ms"},
        {9999 * USEC_PER_MSEC, "9.9s", "9999ms"},
        {10500 * USEC_PER_MSEC, "10s", "10500ms"},
        {60 * USEC_PER_SEC, "1min", "1min"},
        {90 * USEC_PER_SEC, "1min 30s", "90s"},
        {12 * USEC_PER_MIN, "12min", "12min"},
        {65 * USEC_PER_MIN + 7 * USEC_PER_SEC, "1h 5min", "3907s"},
        {USEC_PER_HOUR, "1h", "1h"},
        {51 * USEC_PER_HOUR, "2d 3h", "51h"},
        {USEC_PER_DAY + USEC_PER_SEC, "1d", "86401s"},
};

TEST_LOOP(writes_durations, ELEMENTSOF(format_duration_cases))
{
        char text[FORMAT_MAX];
        usec_t usec = format_duration_cases[_i].usec, back = 77;

        ck_assert_str_eq(format_duration(usec, text, sizeof(text)), format_duration_cases[_i].text);
        ck_assert_str_eq(format_duration_exact(usec, text, sizeof(text)), format_duration_cases[_i].exact);
        ck_assert_int_eq(parse_duration(text, &back), 0);
        ck_assert_uint_eq(back, usec - usec % USEC_PER_MSEC);
}

TEST(writes_an_endless_duration)
{
        char text[FORMAT_MAX];

        ck_assert_str_eq(format_duration(USEC_INFINITY, text, sizeof(text)), "forever");
}

static const struct {
        uint64_t bytes;
        const char *text, *exact;
} format_size_cases[] = {
        {0, "0 bytes", "0"},
        {1023, "1023 bytes", "1023"},
        {1024, "1K", "1K"},
        {1536, "1.5K", "1536"},
        {512 << 20, "512M", "512M"},
        {(512 << 20) + 1, "512M", "536870913"},
        {GIB + GIB / 5, "1.1G", "1288490188"},
        {10 * GIB + GIB / 2, "10G", "10752M"},
        {2048 * GIB, "2T", "2T"},
};

TEST_LOOP(writes_sizes, ELEMENTSOF(format_size_cases))
{
        char text[FORMAT_MAX];
        uint64_t bytes = format_size_cases[_i].bytes, back = 77;

        ck_assert_str_eq(format_size(bytes, text, sizeof(text)), format_size_cases[_i].text);
        ck_assert_str_eq(format_size_exact(bytes, text, sizeof(text)), format_size_cases[_i].exact);
        ck_assert_int_eq(parse_size(text, 0, &back), 0);
        ck_assert_uint_eq(back, bytes);
}

TEST_MAIN("parse")
