/* SPDX-License-Identifier: MIT */
/* The rings of the history: what is folded into which slot, whatever the clock does. */
#include "unit.h"
#include "web/history.h"
#include "wire/json.h"
#include <math.h>

#define NOON (1800000000 * USEC_PER_SEC) /* a whole number of each step */
#define NOTHING                                                                                              \
        {                                                                                                    \
                .socket = "a.sock", .fleet = "web", .memory_bytes = NAN, .active = NAN, .busy = NAN,         \
                .latency_seconds = NAN                                                                       \
        }

static struct history *history;
static json_t *seen;

static void setup(void)
{
        history = history_new();
        ck_assert_ptr_nonnull(history);
        seen = NULL;
}

static void teardown(void)
{
        json_decref(seen);
        free(history);
}

static void add(usec_t at, const char *fleet, double value)
{
        const struct history_sample sample = {"a.sock", fleet, value, value, value, value};

        history_add(history, at, &sample, 1);
}

static void look(enum history_range range, usec_t now)
{
        json_decref(seen);
        seen = history_json(history, range, now);
        ck_assert_ptr_nonnull(seen);
}

static const json_t *fleet_seen(const char *name)
{
        const json_t *fleet;
        size_t i;

        json_array_foreach(json_object_get(seen, "fleets"), i,
                           fleet) if (strcmp(json_string_value(json_object_get(fleet, "name")), name) ==
                                      0) return fleet;
        return NULL;
}

/* So many slots before the last; NAN: null. */
static double value(const char *fleet, const char *series, size_t before)
{
        const json_t *array = json_object_get(fleet_seen(fleet), series);

        ck_assert_uint_gt(json_array_size(array), before);
        const json_t *number = json_array_get(array, json_array_size(array) - 1 - before);
        return json_is_null(number) ? NAN : json_number_value(number);
}

TEST(says_which_range_and_when_it_ends)
{
        static const struct {
                const char *name;
                int step;
                size_t length;
        } ranges[] = {{"hour", 5, 720}, {"day", 60, 1440}, {"month", 600, 4320}};

        add(NOON, "web", 1);
        for (int i = 0; i < _HISTORY_RANGE_MAX; i++) {
                ck_assert_int_eq(history_range_find(ranges[i].name), i);
                look(i, NOON + 3 * USEC_PER_SEC);
                ck_assert_str_eq(json_string_value(json_object_get(seen, "range")), ranges[i].name);
                ck_assert_int_eq(json_integer_value(json_object_get(seen, "step_seconds")), ranges[i].step);
                ck_assert_int_eq(json_integer_value(json_object_get(seen, "end")), NOON / USEC_PER_SEC);
                ck_assert_uint_eq(json_array_size(json_object_get(fleet_seen("web"), "busy")),
                                  ranges[i].length);
        }
        ck_assert_int_eq(history_range_find("year"), -EINVAL);
        ck_assert_int_eq(history_range_find(""), -EINVAL);
}

TEST(knows_nothing_of_what_was_not_seen)
{
        struct history_sample sample = NOTHING;

        history_add(history, NOON, &sample, 1);
        look(HISTORY_HOUR, NOON);
        ck_assert_double_nan(value("web", "memory_bytes", 0));
        ck_assert_double_nan(value("web", "busy", 0));
        /* One known value does not wait for the others, and one that is unknown takes none away. */
        sample.busy = 0;
        history_add(history, NOON, &sample, 1);
        sample.busy = -1;
        sample.active = INFINITY;
        sample.memory_bytes = 1e300;
        history_add(history, NOON, &sample, 1);
        look(HISTORY_HOUR, NOON);
        ck_assert_double_eq(value("web", "busy", 0), 0);
        ck_assert_double_nan(value("web", "active", 0));
        ck_assert_double_nan(value("web", "memory_bytes", 0));
        look(HISTORY_HOUR, NOON + 2 * USEC_PER_HOUR);
        ck_assert_ptr_null(fleet_seen("web"));
        look(HISTORY_DAY, NOON + 2 * USEC_PER_HOUR);
        ck_assert_double_eq(value("web", "busy", 120), 0);
}

static size_t left_out(void)
{
        return (size_t)json_integer_value(json_object_get(seen, "left_out"));
}

static void add_many(usec_t at, unsigned first, unsigned n)
{
        char names[HISTORY_FLEETS + 8][16];
        struct history_sample samples[HISTORY_FLEETS + 8];

        for (unsigned i = 0; i < n; i++) {
                snprintf(names[i], sizeof(names[i]), "f%u", first + i);
                samples[i] = (struct history_sample){"a.sock", names[i], first + i, 1, 1, 1};
        }
        history_add(history, at, samples, n);
}

TEST(those_not_seen_for_longest_give_way)
{
        add_many(NOON, 0, 1);
        add_many(NOON + USEC_PER_SEC, 1, HISTORY_FLEETS - 1);
        /* Nobody has been away for long. */
        add_many(NOON + USEC_PER_MIN, 1, HISTORY_FLEETS + 1);
        look(HISTORY_HOUR, NOON + USEC_PER_MIN);
        ck_assert_uint_eq(left_out(), 2);
        ck_assert_uint_eq(json_array_size(json_object_get(seen, "fleets")), HISTORY_FLEETS);
        add_many(NOON + 11 * USEC_PER_MIN, 1, HISTORY_FLEETS + 1);
        look(HISTORY_HOUR, NOON + 11 * USEC_PER_MIN);
        ck_assert_uint_eq(left_out(), 1);
        ck_assert_ptr_null(fleet_seen("f0"));
        ck_assert_ptr_nonnull(fleet_seen("f64"));
        ck_assert_ptr_null(fleet_seen("f65"));
        /* It begins with nothing of the other's. */
        ck_assert_double_eq(value("f64", "memory_bytes", 0), 64);
        for (size_t i = 1; i < 720; i++)
                ck_assert_double_nan(value("f64", "memory_bytes", i));
}

TEST(takes_strings_of_any_kind)
{
        char longest[1000];
        struct history_sample sample = NOTHING;

        for (size_t i = 0; i + 2 < sizeof(longest); i += 2)
                memcpy(longest + i, "\xc3\xa4", 3);
        sample.fleet = sample.socket = longest;
        history_add(history, NOON, &sample, 1);
        sample.fleet = "\033[31m\xff\n";
        history_add(history, NOON, &sample, 1);
        history_mark(history, NOON, longest, longest, longest, longest);
        history_mark(history, NOON, "", NULL, "\x80", "\033]0;title\007\n");
        look(HISTORY_HOUR, NOON);
        _cleanup_free_ char *text = json_dumps(seen, 0);
        ck_assert_ptr_nonnull(text);
        ck_assert_ptr_null(strstr(text, "\\u001b"));
        ck_assert_ptr_nonnull(fleet_seen("?[31m??"));
        ck_assert_uint_eq(json_array_size(json_object_get(seen, "marks")), 2);
        /* What was replaced and cut is known again. */
        history_add(history, NOON, &sample, 1);
        look(HISTORY_HOUR, NOON);
        ck_assert_uint_eq(json_array_size(json_object_get(seen, "fleets")), 2);
}

static const char *mark_text(size_t i, const char *key)
{
        return json_string_value(json_object_get(json_array_get(json_object_get(seen, "marks"), i), key));
}

TEST(marks_come_by_time_and_from_the_range_alone)
{
        history_mark(history, NOON - USEC_PER_MIN, "a.sock", "web", "restart", "second");
        history_mark(history, NOON - 2 * USEC_PER_MIN, "a.sock", "web", "crash", "first");
        history_mark(history, NOON - 2 * USEC_PER_HOUR, "a.sock", NULL, "reload", "of today");
        history_mark(history, NOON + USEC_PER_MIN, "a.sock", "web", "crash", "not yet");
        look(HISTORY_HOUR, NOON);
        ck_assert_uint_eq(json_array_size(json_object_get(seen, "marks")), 2);
        ck_assert_str_eq(mark_text(0, "text"), "first");
        ck_assert_str_eq(mark_text(1, "text"), "second");
        ck_assert_str_eq(mark_text(1, "fleet"), "web");
        ck_assert_str_eq(mark_text(1, "event"), "restart");
        look(HISTORY_DAY, NOON);
        ck_assert_str_eq(mark_text(0, "text"), "of today");
        ck_assert_ptr_null(mark_text(0, "fleet"));
        ck_assert_uint_eq(history_newest_mark(history, "a.sock", NOON), NOON - USEC_PER_MIN);
        ck_assert_uint_eq(history_newest_mark(history, "b.sock", NOON), 0);
}

TEST(who_crashes_all_day_leaves_the_marks_of_others)
{
        history_mark(history, NOON, "a.sock", "mail", "halt", "kept");
        for (unsigned i = 0; i < 3 * HISTORY_MARKS; i++)
                history_mark(history, NOON + i * USEC_PER_SEC, "a.sock", "web", "crash", "once more");
        look(HISTORY_DAY, NOON + USEC_PER_HOUR);
        ck_assert_uint_eq(json_array_size(json_object_get(seen, "marks")), HISTORY_MARKS);
        ck_assert_str_eq(mark_text(0, "text"), "kept");
        const json_t *second = json_array_get(json_object_get(seen, "marks"), 1);
        ck_assert_double_eq(json_number_value(json_object_get(second, "at")),
                            (double)(NOON / USEC_PER_SEC + 2 * HISTORY_MARKS + 1));
}

/* As a plain list of all that was ever added tells it: most memory and latency, fewest active workers, the
 * mean of busy threads. A wrong clock costs only the slots that it wrote. */
#define N_SAMPLES 300
struct reported {
        usec_t at;
        unsigned fleet;
        double value;
};

static double expected(const struct reported *all, unsigned fleet, usec_t step, usec_t length, usec_t number,
                       const char *series)
{
        double sum = 0, most = NAN, fewest = NAN;
        unsigned n = 0;

        for (size_t i = 0; i < N_SAMPLES; i++) {
                usec_t its = all[i].at / step;

                if (all[i].fleet != fleet || its % length != number % length)
                        continue;
                if (its != number) {
                        n = 0;
                        continue;
                }
                sum = n == 0 ? all[i].value : sum + all[i].value;
                most = n == 0 ? all[i].value : fmax(most, all[i].value);
                fewest = n == 0 ? all[i].value : fmin(fewest, all[i].value);
                n++;
        }
        if (n == 0)
                return NAN;
        return strcmp(series, "busy") == 0 ? sum / n : strcmp(series, "active") == 0 ? fewest : most;
}

static void compare(const struct reported *all, enum history_range range, usec_t now)
{
        static const char *const series[] = {"memory_bytes", "active", "busy", "latency_seconds"};
        static const usec_t steps[] = {5, 60, 600}, lengths[] = {720, 1440, 4320};
        usec_t step = steps[range] * USEC_PER_SEC, length = lengths[range];

        look(range, now);
        for (unsigned fleet = 0; fleet < 3; fleet++) {
                const char name[] = {(char)('a' + (int)fleet), '\0'};
                const json_t *found = fleet_seen(name);

                for (size_t i = 0; i < length; i++) {
                        usec_t number = now / step - i;

                        for (size_t j = 0; j < ELEMENTSOF(series); j++) {
                                double want = expected(all, fleet, step, length, number, series[j]);
                                double is = found ? value(name, series[j], i) : NAN;

                                ck_assert_msg(isnan(want) ? isnan(is) : fabs(want - is) < 0.002,
                                              "%s %s, %zu before: %f, not %f", name, series[j], i, is, want);
                        }
                }
        }
}

/* Steps of seconds mostly, and now and then the clock is set forward or back. */
static usec_t step_clock(usec_t now)
{
        static const usec_t far[] = {3600, 86400, 7 * 86400, 40 * 86400, 400 * 86400};
        usec_t step = far[rand() % (int)ELEMENTSOF(far)] * USEC_PER_SEC;

        switch (rand() % 40) {
        case 0:
                return now + step;
        case 1:
                return now - step;
        case 2:
                return now - (usec_t)(rand() % 600) * USEC_PER_SEC;
        default:
                return now + (usec_t)(rand() % 20000) * USEC_PER_MSEC;
        }
}

TEST_LOOP(shows_what_a_plain_list_reports, 4)
{
        static const char *const names[] = {"a", "b", "c"};
        struct reported all[N_SAMPLES];
        usec_t now = NOON;

        srand((unsigned)_i);
        for (size_t i = 0; i < N_SAMPLES; i++) {
                now = step_clock(now);
                all[i] = (struct reported){.at = now, .fleet = (unsigned)rand() % 3, .value = rand() % 1000};
                add(now, names[all[i].fleet], all[i].value);
        }
        for (int range = 0; range < _HISTORY_RANGE_MAX; range++)
                compare(all, range, now);
}

TEST(changes_are_reported_and_forgotten_once_saved)
{
        const struct history_change *changes;

        ck_assert_uint_eq(history_changes(history, &changes), 0);
        add(NOON, "web", 1);
        /* Whose they are is written before them. */
        ck_assert_uint_eq(history_changes(history, &changes), 4);
        for (size_t i = 1; i < 4; i++)
                ck_assert_uint_lt(changes[0].offset, changes[i].offset);
        history_saved(history);
        add(NOON + USEC_PER_SEC, "web", 1);
        ck_assert_uint_eq(history_changes(history, &changes), 3);
        /* Who never saves keeps no list without end. */
        for (unsigned i = 0; i < 1000; i++)
                add(NOON, "web", 1);
        ck_assert_uint_eq(history_changes(history, &changes), 1);
        ck_assert_uint_eq(changes[0].offset + changes[0].size, HISTORY_BYTES);
        ck_assert_uint_eq(changes[0].offset, HISTORY_HEADER);
}

TEST_MAIN("history", .each = {setup, teardown})
