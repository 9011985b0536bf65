/* SPDX-License-Identifier: MIT */
/* Tests of what the ini may say of a count that follows its queues. */
/* promises: P10 */
#include "golden.h"
#include "settings_text.h"
#include "unit.h"

static const char *const refused[] = {
        "active_process_max=4\nmax_processes=4",
        "active_process_max=4\nmax_processes=3\nrestart_surge=0",
        "active_process_max=4\nactive_process_count=5",
        "framework=bullmq\nactive_process_max=4\nactive_process_count=0",
        "active_process_max=0",
        "active_process_max=4\nlatency_target=none low=none",
        "latency_target=low=5",
        "latency_target=low:5",
        "scale_down_after=0s",
        "framework=native\nactive_process_max=4",
};

TEST(what_could_not_work_is_refused)
{
        char text[512];

        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(refused); i++) {
                snprintf(text, sizeof(text), "[fleet:a]\ncommand=run\n%s", refused[i]);
                add_refused_settings(&root_surroundings, text, refused[i]);
        }
        golden_end("settings-errors", "autoscaling");
}

/* What is inherited from [fleet] is for other fleets. */
TEST(what_stands_for_all_fleets_is_for_those_that_can)
{
        _cleanup_settings_ struct settings *settings = read_good(
                "[fleet]\nactive_process_max=4\nlatency_target=30s low=5min\n[fleet:a]\ncommand=run\n"
                "[fleet:b]\ncommand=run\nframework=plain\n"
                "[fleet:c]\ncommand=run\nframework=celery\nactive_process_max=3\n");

        ck_assert_uint_eq(settings->fleets[0]->active_process_max, 4);
        ck_assert_str_eq(settings->fleets[0]->latency_target, "30s low=5min");
        ck_assert_uint_eq(settings->fleets[0]->scale_down_after, 10 * USEC_PER_MIN);
        ck_assert_uint_eq(settings->fleets[1]->active_process_max, 0);
        ck_assert_uint_eq(settings->fleets[2]->active_process_max, 3);
}

TEST_MAIN("scaling settings")
