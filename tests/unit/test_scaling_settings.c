/* SPDX-License-Identifier: MIT */
/* Tests of what the ini may say of a count that follows its queues. */
/* promises: P10 */
#include "settings_text.h"
#include "unit.h"

static const struct {
        const char *fleet, *wrong;
} refused[] = {
        {"active_process_max=4\nmax_processes=4",
         "f:4: fleet 'a': max_processes = 4 must exceed active_process_max = 4, since a replacement runs "
         "beside the worker it replaces; or set restart_surge = 0\n"},
        {"active_process_max=4\nmax_processes=3\nrestart_surge=0",
         "f:4: fleet 'a': max_processes = 3 must not be below active_process_max = 4\n"},
        {"active_process_max=4\nactive_process_count=5",
         "f:3: fleet 'a': active_process_max = 4 must not be below active_process_count = 5, which is the "
         "least that run\n"},
        {"active_process_max=4\nactive_process_count=0",
         "f:3: fleet 'a': active_process_max = 4 is given, and active_process_count = 0: set that to the "
         "least that may run, 1 or more, or leave active_process_max out\n"},
        {"active_process_max=0", "f:3: active_process_max = 0: must be a number from 1 to 10000\n"},
        {"active_process_max=4\nlatency_target=none low:none",
         "f:4: fleet 'a': latency_target = none low:none names no queue that could be looked at: write a "
         "duration (30s), or leave active_process_max out\n"},
        {"latency_target=low=5s",
         "f:3: latency_target = low=5s: 'low=5s' must be none, or a duration (90s)\n"},
        {"scale_down_after=0s", "f:3: scale_down_after = 0s: must be from 1s to 30d\n"},
        {"framework=native\nactive_process_max=4",
         "f:4: fleet 'a': 'active_process_max' is for framework 'sidekiq' only, and this is 'native'\n"},
};

TEST_LOOP(what_could_not_work_is_refused, (int)ELEMENTSOF(refused))
{
        char text[512];

        snprintf(text, sizeof(text), "[fleet:a]\ncommand=run\n%s", refused[_i].fleet);
        _cleanup_free_ char *wrong = NULL;
        _cleanup_settings_ struct settings *settings = read_settings(&root_surroundings, text, &wrong);
        ck_assert_ptr_null(settings);
        ck_assert_str_eq(wrong, refused[_i].wrong);
}

/* What is inherited from [fleet] is for other fleets. */
TEST(what_stands_for_all_fleets_is_for_those_that_can)
{
        _cleanup_settings_ struct settings *settings = read_good(
                "[fleet]\nactive_process_max=4\nlatency_target=30s low:5min\n[fleet:a]\ncommand=run\n"
                "[fleet:b]\ncommand=run\nframework=plain\n");

        ck_assert_uint_eq(settings->fleets[0]->active_process_max, 4);
        ck_assert_str_eq(settings->fleets[0]->latency_target, "30s low:5min");
        ck_assert_uint_eq(settings->fleets[0]->scale_down_after, 10 * USEC_PER_MIN);
        ck_assert_uint_eq(settings->fleets[1]->active_process_max, 0);
}

TEST_MAIN("scaling settings")
