/* SPDX-License-Identifier: MIT */
/* Advice on leaks by the memory of real Ruby processes, recorded by tests/unit/curves/record: a leak is
 * reported with about the right hour, and growth that only resembles a leak is not, whenever watching begins.
 */
#include "advice/leak.h"
#include "model/fleet.h"
#include "model/trend.h"
#include "observe/observe_memory.h"
#include "observe/observe_time.h"
#include "world.h"

#define LINES_MAX 400
#define SIBLINGS  3
#define EARLY     8 /* of the made-up starts of the watch, so many lines apart */
#define APART     6

static uint64_t curve[LINES_MAX][SIBLINGS]; /* bytes */
static size_t n_lines;
static usec_t step;
static struct test_world t;

static void read_curve(const char *name)
{
        const char *source = getenv("srcdir");
        char path[512], line[256];
        unsigned long long kilobytes[SIBLINGS];

        snprintf(path, sizeof(path), "%s/tests/unit/curves/%s.txt", source ? source : ".", name);
        FILE *file = fopen(path, "re");
        ck_assert_msg(file, "%s: %m", path);
        n_lines = step = 0;
        while (fgets(line, sizeof(line), file)) {
                if (line[0] == '#')
                        continue;
                if (step == 0) {
                        step = strtoull(line, NULL, 10) * USEC_PER_SEC;
                        continue;
                }
                ck_assert_uint_lt(n_lines, LINES_MAX);
                ck_assert_int_eq(sscanf(line, "%llu %llu %llu", &kilobytes[0], &kilobytes[1], &kilobytes[2]),
                                 3);
                for (size_t i = 0; i < SIBLINGS; i++)
                        curve[n_lines][i] = kilobytes[i] * 1024;
                n_lines++;
        }
        fclose(file);
        ck_assert(step > 0 && step <= TREND_POINT_USEC / 3);
        ck_assert_uint_gt(n_lines * step, 4 * USEC_PER_HOUR);
}

static usec_t time_of(size_t line)
{
        return USEC_PER_DAY + line * step;
}

/* Returns the line at which the workers from first on agree that they grow; n_lines: they never do. */
static size_t reported_at(size_t first, size_t n, size_t from)
{
        struct trend trends[SIBLINGS] = {0};
        struct trend_fit fits[SIBLINGS], fit;

        for (size_t line = from; line < n_lines; line++) {
                for (size_t i = 0; i < n; i++) {
                        trend_add(&trends[i], curve[line][first + i], time_of(line));
                        fits[i] = trend_fit(&trends[i]);
                }
                if (trend_agree(fits, n, &fit))
                        return line;
        }
        return n_lines;
}

/* All of them, and each as the only one of its fleet, watched from the first line on and from later ones. */
static unsigned reported(const char *name)
{
        unsigned n = 0;

        read_curve(name);
        for (size_t from = 0; from < EARLY * APART; from += APART) {
                n += reported_at(0, SIBLINGS, from) < n_lines;
                for (size_t i = 0; i < SIBLINGS; i++)
                        n += reported_at(i, 1, from) < n_lines;
        }
        return n;
}

TEST(a_leak_is_reported_of_whenever_one_begins_to_watch)
{
        ck_assert_uint_eq(reported("leak"), EARLY * (SIBLINGS + 1));
}

TEST(the_hour_is_about_right)
{
        char text[LEAK_TEXT_MAX];
        size_t line = 0;

        read_curve("leak");
        test_world_open(&t, SIBLINGS);
        /* All workers exceed the threshold only in the final lines of the curve. */
        t.fleet_settings.memory_threshold = curve[n_lines - 4][0];
        test_settle(&t);
        for (; line < n_lines && !t.fleet->leak.grows; line++) {
                for (size_t i = 0; i < SIBLINGS; i++)
                        observe_memory(t.fleet->workers[i], curve[line][i], time_of(line));
                observe_time(t.world, time_of(line));
        }
        ck_assert_uint_lt(line * step, 3 * USEC_PER_HOUR);
        ck_assert_uint_eq(test_events(&t, EVENT_MEMORY_GROWTH), 1);
        ck_assert_ptr_nonnull(strstr(leak_text(t.fleet, text), "reaches memory_threshold"));
        double left = (double)((n_lines - 4 - line) * step);
        ck_assert_double_eq_tol((double)leak_reaches(t.fleet->workers[0]), left, left / 10);
        test_world_close(&t);
}

TEST(what_only_looks_like_a_leak_is_not_reported_of)
{
        static const char *const names[] = {"flat", "sawtooth", "jump", "fragmentation"};
        unsigned false_alarms = 0;

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                unsigned n = reported(names[i]);

                if (n > 0)
                        printf("# %s: told of in %u of %u\n", names[i], n, EARLY * (SIBLINGS + 1));
                false_alarms += n;
        }
        ck_assert_uint_eq(false_alarms, 0);
}

/* One that fills for more than two hours cannot be told from a leak by then; it is as soon as it is full. */
TEST(a_bounded_cache_is_no_leak_once_it_is_full)
{
        unsigned n = 0;

        read_curve("plateau");
        for (size_t from = 0; from < EARLY * APART; from += APART) {
                size_t line = reported_at(0, SIBLINGS, from);

                n += line < n_lines;
                ck_assert(line == n_lines || line * step < 3 * USEC_PER_HOUR);
        }
        ck_assert_uint_le(n, 3);
}

/* Of jobs that need ten times for a moment what the leak leaves in an hour nothing can be concluded. */
TEST(a_leak_that_noise_drowns_is_not_guessed_at)
{
        ck_assert_uint_eq(reported("drowned-leak"), 0);
}

/* Of the workers of which jobs need up to 10 MB for a moment, late, and not of all. */
TEST(a_slow_leak_under_noise_is_reported_of_where_it_shows)
{
        ck_assert_uint_gt(reported("slow-leak"), 0);
}

TEST_MAIN("curves")
