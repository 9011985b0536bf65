/* SPDX-License-Identifier: MIT */
/* The text for Prometheus, of worlds made by hand; tests/e2e/metrics.bats has promtool read it. */
#include "advice/problem_rules.h"
#include "daemon/api/status.h"
#include "daemon/runtime/subsystem.h"
#include "decide/pass.h"
#include "frameworks/sidekiq/format.h"
#include "model/describe.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/culprits.h"
#include "observe/observe.h"
#include "unit.h"
#include <ctype.h>

#define T0 (1000 * USEC_PER_SEC)

static char name[] = "default";
static struct fleet_settings fleet_settings = {
        .name = name, .traits = &sidekiq_traits, .active_process_count = 2, .max_processes = 5};
static struct fleet_settings *fleets[] = {&fleet_settings};
static struct settings settings = {.check_interval = 5 * USEC_PER_SEC, .fleets = fleets, .n_fleets = 1};
static struct world *world;
static struct fleet *fleet;

static void setup(void)
{
        ck_assert_int_eq(world_new(&settings, 1, &world), 0);
        fleet = world->fleets[0];
        observe_redis(fleet, true, T0);
}

static void teardown(void)
{
        world = world_free(world);
}

static void expect_no_repetition(const char *text)
{
        for (const char *line = text; line; line = strchr(line, '\n')) {
                line += *line == '\n';
                const char *end = strstr(line, "} "), *again;
                _cleanup_free_ char *labels = end && *line != '#' && end < strchr(line, '\n')
                                                      ? strndup(line, (size_t)(end - line + 2))
                                                      : NULL;

                if (labels && (again = strstr(line + 1, labels)))
                        ck_abort_msg("twice: %.200s", again);
        }
}

static bool refused;

static char *render(void)
{
        static char queue_name[] = "a\"b\nc", no_text[] = "b\xff", neither[] = "b\x01";
        static struct queue list[] = {
                {.name = queue_name, .size = 7, .latency_known = true, .latency = 2500000},
                {.name = no_text, .size = 8, .latency_known = true},
                {.name = neither, .size = 9, .latency_known = true}};
        static const struct queues queues = {.list = list, .n = ELEMENTSOF(list), .dead = 3};
        static const struct problem_redis redis[] = {
                {.url = "redis://127.0.0.1:6379/0",
                 .state = READER_STATE_CONNECTED,
                 .rtt_usec = 250,
                 .queues = &queues},
                {.url = "unix:///a\\b\"c\nd", .state = READER_STATE_DOWN},
                {.url = "redis://b", .state = READER_STATE_CONNECTED, .rtt_usec = 1000, .queues = &queues},
                {.url = "redis://b", .state = READER_STATE_DOWN, .rtt_usec = 2000, .queues = &queues},
                {.url = "redis://c", .state = READER_STATE_CONNECTED, .rtt_usec = 1000},
                {.url = "redis://c", .state = READER_STATE_CONNECTED, .rtt_usec = 1000, .queues = &queues},
                {.database = "PostgreSQL",
                 .url = "postgresql://db/app",
                 .state = READER_STATE_CONNECTED,
                 .rtt_usec = 3000},
                {.database = "SQLite", .url = "sqlite3:/srv/queue.sqlite3", .state = READER_STATE_DOWN}};
        const struct status_settings age = {.loaded_at = UINT64_C(1700000000250000), .refused = refused};
        const struct subsystems none = {0};
        const struct status_info info = {
                .instance = "app",
                .version = "1.2.3",
                .started_at = T0,
                .settings = &age,
                .world = world,
                .subsystems = &none,
                .facts = &(struct problem_facts){.redis = redis, .n_redis = ELEMENTSOF(redis)}};
        const struct tick_totals ticks = {.n = 3, .usec = 1500};
        char *text = metrics_collect(&info, &ticks, T0 + 2500 * USEC_PER_MSEC);

        ck_assert_ptr_nonnull(text);
        return text;
}

static void assert_has(const char *text, const char *line)
{
        size_t length = strlen(line);

        for (const char *at = text; at; at = strchr(at, '\n')) {
                at += *at == '\n';
                if (strncmp(at, line, length) == 0 && at[length] == '\n')
                        return;
        }
        ck_abort_msg("'%s' is missing in:\n%s", line, text);
}

TEST(reports_what_the_model_holds)
{
        struct heartbeat heartbeat = {.sent_usec = 5, .busy = 2, .concurrency = 5};
        struct exit_status killed = {.known = true, .by_signal = true, .status = 9};
        struct worker *worker = observe_started(fleet, 1, REASON_NONE, 100, 1, T0);

        observe_heartbeat(worker, &heartbeat, T0 + USEC_PER_SEC);
        worker->memory.bytes = 123456789;
        observe_exit(observe_started(fleet, 2, REASON_MEMORY, 101, 1, T0), &killed, T0);
        observe_started(fleet, 3, REASON_MEMORY, 102, 1, T0);
        world->available_bytes = UINT64_C(8) << 30;
        fleet->rollout.state = ROLLOUT_HALTED;
        fleet->totals.jobs_cut_off[CUT_DRAIN_TIMEOUT] = 4;
        _cleanup_free_ char *text = render();

        assert_has(text, "# TYPE sqmgr_info gauge");
        assert_has(text, "sqmgr_info{version=\"1.2.3\"} 1");
        assert_has(text, "sqmgr_uptime_seconds 2.5");
        assert_has(text, "# TYPE sqmgr_tick_duration_seconds summary");
        assert_has(text, "sqmgr_tick_duration_seconds_sum 0.0015");
        assert_has(text, "sqmgr_tick_duration_seconds_count 3");
        assert_has(text, "sqmgr_available_memory_bytes 8589934592");
        assert_has(text, "sqmgr_redis_up{url=\"redis://127.0.0.1:6379/0\"} 1");
        assert_has(text, "sqmgr_database_up{url=\"postgresql://db/app\"} 1");
        assert_has(text, "sqmgr_database_up{url=\"sqlite3:/srv/queue.sqlite3\"} 0");
        assert_has(text, "sqmgr_database_round_trip_seconds{url=\"postgresql://db/app\"} 0.003");
        ck_assert_ptr_null(strstr(text, "sqmgr_redis_up{url=\"postgresql"));
        assert_has(text, "sqmgr_redis_round_trip_seconds{url=\"redis://127.0.0.1:6379/0\"} 0.00025");
        assert_has(text, "sqmgr_redis_up{url=\"unix:///a\\\\b\\\"c\\nd\"} 0");
        assert_has(text, "sqmgr_queue_jobs{url=\"redis://127.0.0.1:6379/0\",queue=\"a\\\"b\\nc\"} 7");
        assert_has(text,
                   "sqmgr_queue_latency_seconds{url=\"redis://127.0.0.1:6379/0\",queue=\"a\\\"b\\nc\"} 2.5");
        assert_has(text, "sqmgr_redis_up{url=\"redis://b\"} 0");
        assert_has(text, "sqmgr_redis_round_trip_seconds{url=\"redis://b\"} 0.001");
        /* What its first user may not read another one may. */
        assert_has(text, "sqmgr_set_jobs{url=\"redis://c\",set=\"dead\"} 3");
        assert_has(text, "sqmgr_queue_jobs{url=\"redis://c\",queue=\"a\\\"b\\nc\"} 7");
        /* Two samples of the same labels would be refused. */
        expect_no_repetition(text);
        ck_assert_ptr_null(strstr(text, "queue=\"b"));
        assert_has(text, "sqmgr_set_jobs{url=\"redis://127.0.0.1:6379/0\",set=\"dead\"} 3");
        assert_has(text, "sqmgr_fleet_target_workers{fleet=\"default\"} 2");
        assert_has(text, "sqmgr_fleet_max_processes{fleet=\"default\"} 5");
        assert_has(text, "sqmgr_fleet_state{fleet=\"default\",state=\"running\"} 1");
        assert_has(text, "sqmgr_fleet_state{fleet=\"default\",state=\"stopped\"} 0");
        assert_has(text, "sqmgr_rollout_state{fleet=\"default\",state=\"halted\"} 1");
        assert_has(text, "sqmgr_rollout_state{fleet=\"default\",state=\"none\"} 0");
        assert_has(text, "sqmgr_workers{fleet=\"default\",state=\"active\"} 1");
        assert_has(text, "sqmgr_workers{fleet=\"default\",state=\"starting\"} 1");
        assert_has(text, "sqmgr_workers{fleet=\"default\",state=\"stopping\"} 0");
        assert_has(text, "sqmgr_workers{fleet=\"default\",state=\"hung\"} 0");
        assert_has(text, "sqmgr_worker_memory_bytes{fleet=\"default\",worker=\"default/1\"} 123456789");
        assert_has(text, "sqmgr_worker_busy_threads{fleet=\"default\",worker=\"default/1\"} 2");
        assert_has(text, "sqmgr_worker_threads{fleet=\"default\",worker=\"default/1\"} 5");
        assert_has(text, "sqmgr_worker_beat_age_seconds{fleet=\"default\",worker=\"default/1\"} 1.5");
        assert_has(text, "# TYPE sqmgr_worker_starts_total counter");
        assert_has(text, "sqmgr_worker_starts_total{fleet=\"default\",reason=\"none\"} 1");
        assert_has(text, "sqmgr_worker_starts_total{fleet=\"default\",reason=\"memory\"} 2");
        assert_has(text, "sqmgr_worker_ends_total{fleet=\"default\",reason=\"crash\"} 1");
        assert_has(text, "sqmgr_worker_ends_total{fleet=\"default\",reason=\"memory\"} 0");
        assert_has(text, "sqmgr_events_total{fleet=\"default\",event=\"crashed\"} 1");
        assert_has(text, "sqmgr_jobs_cut_off_total{fleet=\"default\",by=\"drain_timeout\"} 4");
        assert_has(text, "sqmgr_jobs_cut_off_total{fleet=\"default\",by=\"order\"} 0");
        assert_has(text, "sqmgr_config_last_reload_successful 1");
        assert_has(text, "sqmgr_config_last_reload_success_timestamp_seconds 1700000000.25");
        assert_has(text, "sqmgr_fleet_configured_workers{fleet=\"default\"} 2");
        assert_has(text, "sqmgr_fleet_info{fleet=\"default\",framework=\"sidekiq\"} 1");
        /* What is not known, and who is gone, is left out. */
        ck_assert_ptr_null(strstr(text, "default/2"));
        ck_assert_ptr_null(strstr(text, "memory_bytes{fleet=\"default\",worker=\"default/3\"}"));
        ck_assert_ptr_null(strstr(text, "round_trip_seconds{url=\"unix"));
}

TEST(what_is_not_set_or_not_known_has_no_number)
{
        static const char *const names[] = {"sqmgr_fleet_memory_threshold_bytes{",
                                            "sqmgr_fleet_memory_limit_bytes{",
                                            "sqmgr_fleet_oldest_job_seconds{", "sqmgr_culprits_total{"};
        struct worker *worker = observe_started(fleet, 1, REASON_NONE, 100, 1, T0);
        struct fleet_settings before = fleet_settings;
        usec_t now = T0 + 2500 * USEC_PER_MSEC;

        _cleanup_free_ char *without = render();
        for (size_t i = 0; i < ELEMENTSOF(names); i++)
                ck_assert_ptr_null(strstr(without, names[i]));
        fleet_settings.memory_threshold = 1 << 20;
        fleet_settings.memory_limit = 1 << 21;
        refused = true;
        worker->state = WORKER_ACTIVE;
        worker->heartbeat.busy = worker->jobs.count = 1;
        worker->jobs.read_at = now;
        worker->jobs.oldest_at = now - 90 * USEC_PER_SEC;
        _cleanup_free_ char *with = render();
        assert_has(with, "sqmgr_fleet_memory_threshold_bytes{fleet=\"default\"} 1048576");
        assert_has(with, "sqmgr_fleet_memory_limit_bytes{fleet=\"default\"} 2097152");
        assert_has(with, "sqmgr_fleet_oldest_job_seconds{fleet=\"default\"} 90");
        assert_has(with, "sqmgr_config_last_reload_successful 0");
        /* Long ago its work list told of it. */
        worker->jobs.read_at = now - 4 * settings.check_interval - 1;
        _cleanup_free_ char *stale = render();
        ck_assert_ptr_null(strstr(stale, "sqmgr_fleet_oldest_job_seconds{"));
        refused = false;
        fleet_settings = before;
}

/* Each breach with one job of this class. */
static void breach(struct worker *worker, const char *class, enum culprits_cause cause)
{
        char name_of_class[JOB_CLASS_MAX], jid[] = "j", queue[] = "q";
        struct job job = {.class = name_of_class, .jid = jid, .queue = queue};
        const struct job_list list = {.jobs = &job, .n_jobs = 1};

        snprintf(name_of_class, sizeof(name_of_class), "%s", class);
        culprits_observe(fleet, worker, cause, &list, T0);
}

TEST(culprits_are_counted_by_class_and_no_more_classes_than_have_room)
{
        struct worker *worker = observe_started(fleet, 1, REASON_NONE, 100, 1, T0);
        char class[32];

        breach(worker, "a\"b\\c", CULPRITS_MEMORY);
        breach(worker, "a\"b\\c", CULPRITS_MEMORY);
        breach(worker, "a\"b\\c", CULPRITS_OOM);
        breach(worker, "X\xff", CULPRITS_OOM);
        for (unsigned i = 2; i < CULPRIT_CLASSES_MAX + 3; i++) {
                snprintf(class, sizeof(class), "Class%u", i);
                breach(worker, class, CULPRITS_MEMORY);
        }
        _cleanup_free_ char *text = render();
        assert_has(text, "sqmgr_culprits_total{fleet=\"default\",class=\"a\\\"b\\\\c\",cause=\"memory\"} 2");
        assert_has(text, "sqmgr_culprits_total{fleet=\"default\",class=\"a\\\"b\\\\c\",cause=\"oom\"} 1");
        assert_has(text, "sqmgr_culprits_total{fleet=\"default\",class=\"Class31\",cause=\"memory\"} 1");
        assert_has(text, "sqmgr_culprits_other_total{fleet=\"default\",cause=\"memory\"} 3");
        ck_assert_ptr_null(strstr(text, "Class32"));
        expect_no_repetition(text);
}

TEST(counters_outlive_the_events_they_count)
{
        for (unsigned i = 0; i < 20000; i++) {
                world_event(world, EVENT_TIME_DOUBT, NULL, NULL, "x");
                world_event(world, EVENT_ORDER, fleet, NULL, "x");
                if (i % 3 == 0)
                        world_events_clear(world);
        }
        _cleanup_free_ char *text = render();

        assert_has(text, "sqmgr_events_total{event=\"time-doubt\"} 20000");
        assert_has(text, "sqmgr_events_total{fleet=\"default\",event=\"order\"} 20000");
}

TEST(each_sample_follows_the_help_and_type_of_its_family_which_come_once)
{
        _cleanup_free_ char *text = render();
        char family[140] = "", begun[8192] = "";
        char *rest = text;

        ck_assert_int_eq(text[strlen(text) - 1], '\n');
        for (char *line; (line = strsep(&rest, "\n")) && *line;) {
                char word[128];

                if (sscanf(line, "# HELP %127s ", word) == 1) {
                        snprintf(family, sizeof(family), " %s ", word);
                        ck_assert_msg(!strstr(begun, family), "%s", line);
                        strcat(begun, family);
                        snprintf(family, sizeof(family), "%s", word);
                        line = strsep(&rest, "\n");
                        ck_assert_int_eq(sscanf(line, "# TYPE %127s ", word), 1);
                        ck_assert_str_eq(word, family);
                        continue;
                }
                ck_assert_msg(strncmp(line, family, strlen(family)) == 0, "%s after %s", line, family);
                ck_assert_msg(isdigit((unsigned char)strrchr(line, ' ')[1]), "%s", line);
        }
}

TEST_MAIN("metrics", .each = {setup, teardown})
