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
        "framework=bullmq\nredis_url=redis://a\nactive_process_max=4\nactive_process_count=0",
        "active_process_max=0",
        "active_process_max=4\nlatency_target=none low=none",
        "latency_target=low=5",
        "latency_target=low:5",
        "scale_down_after=0s",
        "framework=native\nactive_process_max=4",
        "framework=celery\nactive_process_max=4",
        "framework=bullmq\nlatency_target=5s",
        "framework=celery\nscale_down_after=5min",
};

/* Settings that name the Redis of a broker, and settings that do not. */
static const struct {
        const char *redis; /* in [redis] */
        const char *fleet;
        bool named;
} brokers[] = {
        {"", "framework=celery", false},
        {"", "framework=celery\nredis_url=redis://a", true},
        {"url=redis://a", "framework=celery", true},
        {"sentinels=a:1\nmaster_name=b", "framework=bullmq", true},
        {"namespace=a", "framework=bullmq", false},
        {"url=redis://a", "framework=celery\nenvironment=CELERY_BROKER_URL=amqp://a", false},
        {"url=redis://a", "framework=celery\nenvironment=CELERY_BROKER_URL=sentinel://a", true},
        {"url=redis://a", "framework=celery\nenvironment=CELERY_BROKER_URL=redis+socket:///a", true},
        {"url=redis://a", "framework=celery\nenvironment=CELERY_BROKER_URLS=amqp://a", true},
        {"url=redis://a", "framework=celery\nredis_url=redis://b\nenvironment=CELERY_BROKER_URL=amqp://a",
         true},
};

/* A default, or REDIS_URL of sqmgr itself, may be another Redis, or the broker no Redis. */
TEST_LOOP(queues_of_a_broker_are_read_only_if_the_ini_names_it, ELEMENTSOF(brokers))
{
        struct settings_surroundings surroundings = root_surroundings;
        char text[512];
        char *errors = NULL;

        surroundings.redis_url = "redis://of-sqmgr";
        snprintf(text, sizeof(text), "[redis]\n%s\n[fleet]\nactive_process_max=4\n[fleet:a]\ncommand=run\n%s",
                 brokers[_i].redis, brokers[_i].fleet);
        _cleanup_settings_ struct settings *settings = read_settings(&surroundings, text, &errors);
        ck_assert_ptr_nonnull(settings);
        const struct fleet_settings *fleet = settings->fleets[0];
        ck_assert(fleet_settings_have_broker(fleet) && !fleet_settings_need_server(fleet));
        ck_assert(fleet_settings_need_broker(fleet) == brokers[_i].named);
        ck_assert(fleet_settings_can_scale(fleet) == brokers[_i].named);
        ck_assert_uint_eq(fleet->active_process_max, brokers[_i].named ? 4 : 0);
}

/* url and redis_url are kept by a reload, and so is what they name. */
TEST(a_reload_names_no_broker)
{
        _cleanup_settings_ struct settings *old = read_good("[fleet:a]\ncommand=run\nframework=celery\n");
        _cleanup_settings_ struct settings *new = read_good(
                "[fleet:a]\ncommand=run\nframework=celery\nredis_url=redis://a\nactive_process_max=4\n");
        _cleanup_settings_ struct settings *merged = NULL;

        ck_assert_int_eq(settings_merge(old, new, &merged), 0);
        ck_assert(!fleet_settings_need_broker(merged->fleets[0]) &&
                  !fleet_settings_can_scale(merged->fleets[0]));
        settings_free(merged);
        merged = NULL;
        ck_assert_int_eq(settings_merge(new, old, &merged), 0);
        ck_assert(fleet_settings_need_broker(merged->fleets[0]));
}

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
                "[fleet:c]\ncommand=run\nframework=celery\nactive_process_max=3\nredis_url=redis://a\n"
                "[fleet:d]\ncommand=run\nframework=celery\n");

        ck_assert_uint_eq(settings->fleets[0]->active_process_max, 4);
        ck_assert_str_eq(settings->fleets[0]->latency_target, "30s low=5min");
        ck_assert_uint_eq(settings->fleets[0]->scale_down_after, 10 * USEC_PER_MIN);
        ck_assert_uint_eq(settings->fleets[1]->active_process_max, 0);
        ck_assert_uint_eq(settings->fleets[2]->active_process_max, 3);
        ck_assert_uint_eq(settings->fleets[3]->active_process_max, 0);
}

TEST_MAIN("scaling settings")
