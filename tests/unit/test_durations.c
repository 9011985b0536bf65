/* SPDX-License-Identifier: MIT */
/* Tests of what jobs take by Sidekiq's own metrics (frameworks/sidekiq/durations.h). */
#include "frameworks/sidekiq/durations.h"
#include "unit.h"

static struct durations durations;

/* How long a job of these queues takes. names: each name ends with a NUL, the list with two. */
static usec_t service(const char *names)
{
        struct queues *queues = calloc(1, sizeof(*queues));

        ck_assert_ptr_nonnull(queues);
        for (; *names != '\0'; names += strlen(names) + 1)
                ck_assert_ptr_nonnull(queues_add(queues, names, strlen(names)));
        durations_fill(&durations, queues);
        usec_t usec = queues_service(queues);
        queues_free(queues);
        return usec;
}

static void take(const char *name, const char *value)
{
        durations_take(&durations, &(struct field){name, strlen(name)},
                       &(struct field){value, strlen(value)});
}

static void setup(void)
{
        durations_clear(&durations);
}

/* 2026-11-23 09:05:30 UTC: the minute before is 9:04. */
TEST(a_key_is_that_of_the_minute_before)
{
        usec_t at = 1795424730 * USEC_PER_SEC;
        char key[DURATIONS_KEY_MAX];

        ck_assert_str_eq(durations_key(at, false, key), "j|20261123|9:4");
        ck_assert_str_eq(durations_key(at, true, key), "j|261123|9:04");
        /* Of midnight, on New Year's. */
        ck_assert_str_eq(durations_key(1798761600 * USEC_PER_SEC, true, key), "j|261231|23:59");
}

TEST(jobs_that_failed_have_no_time)
{
        ck_assert_uint_eq(service("default\0"), 0);
        take("Mail|ms", "9000");
        take("Mail|p", "12");
        take("Mail|f", "3");
        ck_assert_uint_eq(service("default\0"), USEC_PER_SEC);
}

TEST(a_queue_is_judged_by_the_classes_that_were_seen_there)
{
        take("Mail|ms", "1000");
        take("Mail|p", "10");
        take("A::B|C|ms", "30000");
        take("A::B|C|p", "10");
        ck_assert_uint_eq(service("default\0"), 1550 * USEC_PER_MSEC);
        durations_see(&durations, "default", "Mail");
        durations_see(&durations, "slow", "A::B|C");
        durations_see(&durations, "slow", "Unknown");
        ck_assert_uint_eq(service("default\0"), 100 * USEC_PER_MSEC);
        ck_assert_uint_eq(service("slow\0"), 3 * USEC_PER_SEC);
        ck_assert_uint_eq(service("default\0slow\0"), 1550 * USEC_PER_MSEC);
        /* The last ones count. */
        for (unsigned i = 0; i < DURATIONS_SEEN; i++)
                durations_see(&durations, "slow", "Mail");
        ck_assert_uint_eq(service("slow\0"), 100 * USEC_PER_MSEC);
}

TEST(what_is_older_counts_for_less)
{
        take("Mail|ms", "4000");
        take("Mail|p", "4");
        durations_age(&durations);
        take("Mail|ms", "4000");
        take("Mail|p", "2");
        ck_assert_uint_eq(service("\0"), 1500 * USEC_PER_MSEC);
}

TEST(what_is_left_of_long_ago_makes_no_time_without_end)
{
        take("Mail|ms", "4000");
        take("Mail|p", "4");
        for (unsigned i = 0; i < 100; i++)
                durations_age(&durations);
        take("Mail|ms", "1000000000000");
        ck_assert_uint_eq(service("\0"), 30 * USEC_PER_DAY);
        durations_see(&durations, "default", "Mail");
        ck_assert_uint_eq(service("default\0"), 30 * USEC_PER_DAY);
}

TEST(what_is_no_number_or_name_is_left_out)
{
        char text[300];

        memset(text, 'x', sizeof(text));
        memcpy(text + sizeof(text) - 4, "|ms", 4);
        take(text, "5");
        take("|ms", "5");
        take("Mail", "5");
        take("Mail|q", "5");
        take("Mail|ms", "-5");
        take("Mail|ms", "5000000000000000");
        durations_take(&durations, &(struct field){"M\0l|ms", 6}, &(struct field){"5", 1});
        ck_assert_uint_eq(durations.n_classes, 0);
        for (unsigned i = 0; i < 2 * DURATIONS_CLASSES_MAX; i++) {
                snprintf(text, sizeof(text), "Class%u|p", i);
                take(text, "1");
                snprintf(text, sizeof(text), "queue%u", i);
                durations_see(&durations, text, "Mail");
        }
        ck_assert_uint_eq(durations.n_classes, DURATIONS_CLASSES_MAX);
        ck_assert_uint_eq(durations.n_queues, DURATIONS_QUEUES_MAX);
}

TEST(classes_that_have_no_place_of_their_own_count_together)
{
        char text[64];

        for (unsigned i = 0; i < DURATIONS_CLASSES_MAX + 100; i++) {
                bool is_slow = i >= DURATIONS_CLASSES_MAX;

                snprintf(text, sizeof(text), "Class%u|p", i);
                take(text, "2");
                snprintf(text, sizeof(text), "Class%u|ms", i);
                take(text, is_slow ? "8000" : "2000");
        }
        usec_t mean = (DURATIONS_CLASSES_MAX * USEC_PER_SEC + 100 * 4 * USEC_PER_SEC) /
                      (DURATIONS_CLASSES_MAX + 100);
        ck_assert_uint_eq(service("default\0") / USEC_PER_MSEC, mean / USEC_PER_MSEC);
        durations_see(&durations, "default", "Class300");
        ck_assert_uint_eq(service("default\0"), 4 * USEC_PER_SEC);
        durations_see(&durations, "default", "Class5");
        ck_assert_uint_eq(service("default\0"), 2500 * USEC_PER_MSEC);
        durations_age(&durations);
        ck_assert_uint_eq(service("default\0"), 2500 * USEC_PER_MSEC);
}

TEST_MAIN("durations", .each = {setup, setup})
