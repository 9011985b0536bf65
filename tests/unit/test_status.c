/* SPDX-License-Identifier: MIT */
/* The status object, of worlds made by hand. */
#include "advice/problem_rules.h"
#include "daemon/api/status.h"
#include "decide/command.h"
#include "frameworks/sidekiq/format.h"
#include "model/describe.h"
#include "model/fleets.h"
#include "model/world.h"
#include "observe/culprits.h"
#include "observe/observe.h"
#include "quoting.h"
#include "unit.h"

#define T0 (1000 * USEC_PER_SEC)

static char name[] = "default";
static struct fleet_settings fleet_settings = {
        .traits = &sidekiq_traits,
        .name = name,
        .active_process_count = 2,
        .max_processes = 5,
        .ready_after = 10 * USEC_PER_SEC,
        .boot_timeout = 120 * USEC_PER_SEC,
        .stop_timeout = 60 * USEC_PER_SEC,
};
static struct fleet_settings *fleets[] = {&fleet_settings};
static struct settings settings = {.check_interval = 5 * USEC_PER_SEC,
                                   .shutdown_timeout = USEC_PER_MIN,
                                   .fleets = fleets,
                                   .n_fleets = 1};
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

static struct worker *add_worker(unsigned index, pid_t pid, usec_t now)
{
        struct worker *worker = observe_started(fleet, index, REASON_NONE, pid, 1, now);

        ck_assert_ptr_nonnull(worker);
        return worker;
}

static struct problem_facts facts;

static json_t *render(usec_t now)
{
        static const struct error_report down = {.text = "Connection refused"};
        static const struct problem_redis redis[] = {{.kind = "redis",
                                                      .url = "redis://m/0",
                                                      .server = "10.0.0.7:6379",
                                                      .state = READER_STATE_CONNECTED,
                                                      .rtt_usec = 123},
                                                     {.kind = "redis",
                                                      .url = "unix:///run/redis.sock",
                                                      .state = READER_STATE_DOWN,
                                                      .error = &down}};
        struct status_info info = {.instance = "app",
                                   .version = "1.2.3",
                                   .pid = 77,
                                   .started_at = T0,
                                   .realtime = 1795258100 * USEC_PER_SEC,
                                   .world = world,
                                   .facts = &facts};

        facts.redis = redis;
        facts.n_redis = ELEMENTSOF(redis);
        json_t *status = status_render(&info, world->fleets, world->n_fleets, now);

        ck_assert_ptr_nonnull(status);
        return status;
}

/* The value at a path like "fleets/0/workers/0/pid"; fails the test where there is none. */
static json_t *at(json_t *json, const char *path)
{
        char copy[128], *save = NULL;

        snprintf(copy, sizeof(copy), "%s", path);
        for (char *key = strtok_r(copy, "/", &save); key; key = strtok_r(NULL, "/", &save)) {
                json = json_is_array(json) ? json_array_get(json, (size_t)atoi(key))
                                           : json_object_get(json, key);
                ck_assert_msg(json, "'%s' of '%s' is missing", key, path);
        }
        return json;
}

TEST(a_shutdown_counts_down)
{
        char text[128];

        command_shutdown(world, T0);
        json_t *status = render(T0 + USEC_PER_SEC);
        ck_assert_double_eq(json_real_value(at(status, "shutdown/seconds_left")), 59);
        ck_assert_str_eq(json_string_value(at(status, "shutdown/text")),
                         world_stopping_text(world, T0 + USEC_PER_SEC, text, sizeof(text)));
        json_decref(status);
        command_shutdown(world, T0);
        status = render(T0 + USEC_PER_SEC);
        ck_assert_double_eq(json_real_value(at(status, "shutdown/seconds_left")), 0);
        ck_assert_str_eq(json_string_value(at(status, "shutdown/text")),
                         world_stopping_text(world, T0 + USEC_PER_SEC, text, sizeof(text)));
        json_decref(status);
}

static const struct {
        const char *path;
        json_type type;
} fields[] = {
        {"instance", JSON_STRING},
        {"version", JSON_STRING},
        {"pid", JSON_INTEGER},
        {"uptime_seconds", JSON_REAL},
        {"shutdown", JSON_NULL},
        {"redis/0/url", JSON_STRING},
        {"redis/0/state", JSON_STRING},
        {"redis/0/error", JSON_NULL},
        {"redis/1/error", JSON_STRING},
        {"redis/0/rtt_ms", JSON_REAL},
        {"redis/1/rtt_ms", JSON_NULL},
        {"fleets/0/name", JSON_STRING},
        {"fleets/0/framework", JSON_STRING},
        {"fleets/0/target", JSON_INTEGER},
        {"fleets/0/configured", JSON_INTEGER},
        {"fleets/0/scaled_by", JSON_NULL},
        {"fleets/0/scaled_at", JSON_NULL},
        {"fleets/0/scaled_text", JSON_NULL},
        {"fleets/0/active", JSON_INTEGER},
        {"fleets/0/starting", JSON_INTEGER},
        {"fleets/0/hung", JSON_INTEGER},
        {"fleets/0/quiet", JSON_INTEGER},
        {"fleets/0/stopping", JSON_INTEGER},
        {"fleets/0/max_processes", JSON_INTEGER},
        {"fleets/0/generation", JSON_INTEGER},
        {"fleets/0/memory_bytes", JSON_INTEGER},
        {"fleets/0/memory_threshold_bytes", JSON_NULL},
        {"fleets/0/state", JSON_STRING},
        {"fleets/0/waits_for", JSON_NULL},
        {"fleets/0/waits_for_code", JSON_NULL},
        {"fleets/0/rollout/state", JSON_STRING},
        {"fleets/0/rollout/generation", JSON_INTEGER},
        {"fleets/0/rollout/replaced", JSON_INTEGER},
        {"fleets/0/rollout/outdated", JSON_INTEGER},
        {"fleets/0/rollout/draining", JSON_INTEGER},
        {"fleets/0/rollout/error", JSON_NULL},
        {"fleets/0/crash/count", JSON_INTEGER},
        {"fleets/0/crash/state", JSON_STRING},
        {"fleets/0/crash/next_start_seconds", JSON_NULL},
        {"fleets/0/crash/over_seconds", JSON_NULL},
        {"fleets/0/crash/text", JSON_NULL},
        {"fleets/0/crash/last", JSON_NULL},
        {"fleets/0/culprits", JSON_ARRAY},
        {"fleets/0/workers/0/id", JSON_STRING},
        {"fleets/0/workers/0/index", JSON_INTEGER},
        {"fleets/0/workers/0/pid", JSON_INTEGER},
        {"fleets/0/workers/0/state", JSON_STRING},
        {"fleets/0/workers/0/ready", JSON_FALSE},
        {"fleets/0/workers/0/ready_seconds", JSON_NULL},
        {"fleets/0/workers/0/hung", JSON_FALSE},
        {"fleets/0/workers/0/generation", JSON_INTEGER},
        {"fleets/0/workers/0/outdated", JSON_FALSE},
        {"fleets/0/workers/0/busy", JSON_INTEGER},
        {"fleets/0/workers/0/oldest_job_seconds", JSON_NULL},
        {"fleets/0/workers/0/concurrency", JSON_INTEGER},
        {"fleets/0/workers/0/memory_bytes", JSON_INTEGER},
        {"fleets/0/workers/0/uptime_seconds", JSON_REAL},
        {"fleets/0/workers/0/state_seconds", JSON_REAL},
        {"fleets/0/workers/0/reason", JSON_NULL},
        {"fleets/0/workers/0/reason_text", JSON_NULL},
        {"fleets/0/workers/0/waits_for", JSON_NULL},
        {"fleets/0/workers/0/evidence", JSON_STRING},
        {"fleets/0/workers/0/beat_age_seconds", JSON_NULL},
};

TEST(every_field_of_the_contract_has_its_type)
{
        add_worker(1, 100, T0);
        json_t *status = render(T0 + USEC_PER_SEC);

        for (size_t i = 0; i < ELEMENTSOF(fields); i++)
                ck_assert_msg(json_typeof(at(status, fields[i].path)) == fields[i].type, "%s",
                              fields[i].path);
        json_decref(status);
}

TEST(reports_what_the_model_holds)
{
        struct worker *worker = add_worker(1, 100, T0);
        struct heartbeat heartbeat = {.sent_usec = 5, .busy = 2, .concurrency = 5};

        observe_heartbeat_process(worker, 101, 2, T0);
        observe_heartbeat(worker, &heartbeat, T0 + USEC_PER_SEC);
        worker->memory.bytes = 4096;
        json_t *status = render(T0 + 3500 * USEC_PER_MSEC), *reported = at(status, "fleets/0/workers/0");

        ck_assert_str_eq(json_string_value(at(reported, "id")), "default/1");
        ck_assert_int_eq(json_integer_value(at(reported, "pid")), 101);
        ck_assert_str_eq(json_string_value(at(reported, "state")), "active");
        ck_assert_int_eq(json_integer_value(at(reported, "busy")), 2);
        ck_assert_int_eq(json_integer_value(at(reported, "concurrency")), 5);
        ck_assert_double_eq(json_real_value(at(reported, "uptime_seconds")), 3.5);
        ck_assert_double_eq(json_real_value(at(reported, "state_seconds")), 2.5);
        ck_assert_double_eq(json_real_value(at(reported, "beat_age_seconds")), 2.5);
        ck_assert_str_eq(json_string_value(at(reported, "evidence")), "redis");
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/active")), 1);
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/target")), 2);
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/memory_bytes")), 4096);
        ck_assert_double_eq(json_real_value(at(status, "redis/0/rtt_ms")), 0.123);
        json_decref(status);

        status = render(T0 + 12 * USEC_PER_SEC);
        ck_assert(json_is_true(at(status, "fleets/0/workers/0/ready")));
        json_decref(status);
}

TEST(evidence_is_what_can_be_trusted_now)
{
        struct worker *worker = add_worker(1, 100, T0);
        struct heartbeat heartbeat = {.sent_usec = 5};
        usec_t now = T0 + USEC_PER_SEC;

        observe_heartbeat(worker, &heartbeat, now);
        json_t *status = render(now + USEC_PER_HOUR);
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/workers/0/evidence")), "none");
        json_decref(status);

        worker->evidence.title_known = true;
        status = render(now + USEC_PER_HOUR);
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/workers/0/evidence")), "none");
        json_decref(status);

        observe_redis(fleet, false, now + USEC_PER_SEC);
        status = render(now + USEC_PER_SEC);
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/workers/0/evidence")), "title");
        json_decref(status);
}

TEST(reports_who_asked_for_another_count)
{
        struct orderer deploy = {.known = true, .uid = 1001, .name = "deploy"};
        char text[FLEET_SCALED_MAX];

        command_scale(fleet, 4, &deploy, T0 + USEC_PER_SEC);
        json_t *status = render(T0 + 61 * USEC_PER_SEC);
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/configured")), 2);
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/target")), 4);
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/scaled_by/uid")), 1001);
        ck_assert_double_eq(json_real_value(at(status, "fleets/0/scaled_at")), 1795258040);
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/scaled_text")),
                         fleet_scaled_text(fleet, T0 + 61 * USEC_PER_SEC, text));
        json_decref(status);
}

TEST(reports_crashes_and_rollouts)
{
        add_worker(1, 100, T0)->generation = 1;
        add_worker(2, 101, T0)->generation = 2;
        fleet->generation = 2;
        fleet->rollout = (struct rollout){.state = ROLLOUT_HALTED, .total = 3, .error = "it \xff failed"};
        fleet->crash = (struct backoff){.count = 2, .next_at = T0 + 4 * USEC_PER_SEC};
        fleet->waits_for = WAIT_BACKOFF;
        strcpy(fleet->crash_last, "it died");
        char text[CRASH_TEXT_MAX];
        json_t *status = render(T0 + USEC_PER_SEC);

        ck_assert_str_eq(json_string_value(at(status, "fleets/0/rollout/state")), "halted");
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/rollout/error")), "it ? failed");
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/rollout/outdated")), 1);
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/rollout/replaced")), 1);
        ck_assert_int_eq(json_integer_value(at(status, "fleets/0/crash/count")), 2);
        ck_assert_double_eq(json_real_value(at(status, "fleets/0/crash/next_start_seconds")), 3.0);
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/crash/last")), "it died");
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/crash/state")), "failing");
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/crash/text")),
                         fleet_crash_text(fleet, T0 + USEC_PER_SEC, text, sizeof(text)));
        ck_assert(json_is_true(at(status, "fleets/0/workers/0/outdated")));
        json_decref(status);
}

TEST(reports_why_a_worker_leaves_and_forgets_those_gone)
{
        struct exit_status exited = {.known = true};

        add_worker(1, 100, T0)->verdict.retire_reason = REASON_AGE;
        observe_exit(add_worker(2, 101, T0), &exited, T0 + USEC_PER_SEC);
        json_t *status = render(T0 + USEC_PER_SEC);

        ck_assert_uint_eq(json_array_size(at(status, "fleets/0/workers")), 1);
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/workers/0/reason")), "age");
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/workers/0/reason_text")),
                         reason_text(REASON_AGE));
        json_decref(status);
}

TEST(reports_the_last_culprits)
{
        struct worker *worker = add_worker(3, 100, T0);
        struct job jobs[] = {
                {.class = (char *)"Mail"}, {.class = (char *)"Re\xffport"}, {.class = (char *)"Mail"}};
        const struct job_list list = {.jobs = jobs, .n_jobs = ELEMENTSOF(jobs)};
        char text[CULPRITS_TEXT_MAX];
        json_t *status = render(T0);

        ck_assert_uint_eq(json_array_size(at(status, "fleets/0/culprits")), 0);
        json_decref(status);

        worker->memory.bytes = 520 << 20;
        worker->memory.mark_bytes = 308 << 20;
        worker->memory.mark_at = T0;
        culprits_observe(fleet, worker, CULPRITS_OOM, &(struct job_list){0}, T0 + 2 * USEC_PER_SEC);
        culprits_observe(fleet, worker, CULPRITS_MEMORY, &list, T0 + 40 * USEC_PER_SEC);
        status = render(T0 + 42 * USEC_PER_SEC + 500 * USEC_PER_MSEC);
        ck_assert_uint_eq(json_array_size(at(status, "fleets/0/culprits")), 2);
        json_t *reported = at(status, "fleets/0/culprits/0");
        ck_assert_str_eq(json_string_value(at(reported, "worker")), "default/3");
        ck_assert_int_eq(json_integer_value(at(reported, "pid")), 100);
        ck_assert_str_eq(json_string_value(at(reported, "cause")), "memory");
        ck_assert_int_eq(json_integer_value(at(reported, "memory_bytes")), 520 << 20);
        ck_assert_int_eq(json_integer_value(at(reported, "growth_bytes")), 212 << 20);
        ck_assert_double_eq(json_real_value(at(reported, "growth_seconds")), 40.0);
        ck_assert_double_eq(json_real_value(at(reported, "age_seconds")), 2.5);
        ck_assert_uint_eq(json_array_size(at(reported, "classes")), 2);
        ck_assert_str_eq(json_string_value(at(reported, "classes/0/class")), "Mail");
        ck_assert_int_eq(json_integer_value(at(reported, "classes/0/jobs")), 2);
        ck_assert_str_eq(json_string_value(at(reported, "classes/1/class")), "Re?port");
        ck_assert_int_eq(json_integer_value(at(reported, "more_classes")), 0);
        ck_assert_str_eq(json_string_value(at(reported, "text")),
                         culprits_text(fleet, &fleet->culprits[0], text, sizeof(text)));
        ck_assert_str_eq(json_string_value(at(status, "fleets/0/culprits/1/cause")), "oom");
        ck_assert_uint_eq(json_array_size(at(status, "fleets/0/culprits/1/classes")), 0);
        json_decref(status);
}

TEST_MAIN("status", .each = {setup, teardown})
