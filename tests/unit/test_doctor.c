/* SPDX-License-Identifier: MIT */
/* Tests of model/findings.h: what is found, and how grave it is. */
#include "frameworks/sidekiq/format.h"
#include "model/findings.h"
#include "unit.h"

#define T0 (10000 * USEC_PER_SEC)

static struct findings findings;

static void teardown(void)
{
        findings_clear(&findings);
}

/* Each finding as `LEVEL ABOUT: TEXT`, one a line. */
static void expect(const char *expected)
{
        char text[4096] = "";

        for (size_t i = 0; i < findings.n; i++) {
                const struct finding *finding = &findings.list[i];
                size_t length = strlen(text);

                snprintf(text + length, sizeof(text) - length, "%s %s: %s\n",
                         finding_level_name(finding->level), finding->about, finding->text);
                ck_assert_int_eq(!!finding->remedy, finding->level != FINDING_OK);
        }
        ck_assert_str_eq(text, expected);
        ck_assert(!findings.lost);
        findings_clear(&findings);
}

#define GOOD "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nevicted_keys:0\r\n"

static const struct {
        struct doctor_redis redis;
        const char *expected;
} redis_cases[] = {
        {{"r", .error = "connection refused"}, "problem Redis r: it cannot be asked: connection refused\n"},
        {{"r", .info_error = "NOPERM"},
         "warning Redis r: nothing is known of its settings, since it refuses INFO: NOPERM\n"},
        {{"r", .info = GOOD "aof_enabled:1\r\n", .config_error = "NOPERM"},
         "ok Redis r: it throws nothing away (noeviction)\n"
         "ok Redis r: it writes all to disk (appendonly)\n"},
        {{"r", .info = GOOD "aof_enabled:0\r\n", .save = "3600 1"},
         "ok Redis r: it throws nothing away (noeviction)\n"
         "ok Redis r: it writes snapshots to disk (save 3600 1)\n"},
        {{"r", .info = GOOD "aof_enabled:0\r\n", .save = ""},
         "ok Redis r: it throws nothing away (noeviction)\n"
         "problem Redis r: it writes nothing to disk: all jobs are lost when it restarts\n"},
        {{"r", .info = GOOD "aof_enabled:0\r\n", .config_error = "NOPERM x"},
         "ok Redis r: it throws nothing away (noeviction)\n"
         "warning Redis r: whether it writes anything to disk is not known, since it refuses CONFIG: NOPERM "
         "x\n"},
        {{"r", .info = GOOD "aof_enabled:0\r\nrdb_last_bgsave_status:err\r\n", .save = "1 1"},
         "ok Redis r: it throws nothing away (noeviction)\n"
         "problem Redis r: its last snapshot failed: it may refuse to take jobs\n"
         "ok Redis r: it writes snapshots to disk (save 1 1)\n"},
        {{"r", .info = "maxmemory:1024\nmaxmemory_policy:allkeys-lru\nevicted_keys:7\naof_enabled:1\n"},
         "problem Redis r: its maxmemory-policy is allkeys-lru: it may throw jobs away when its memory is "
         "full\n"
         "problem Redis r: it has thrown away 7 keys since it started: it is shared with a cache, or too "
         "small\n"
         "ok Redis r: it writes all to disk (appendonly)\n"},
        {{"r", .info = "maxmemory:0\nmaxmemory_policy:volatile-ttl\naof_enabled:1\n"},
         "warning Redis r: its maxmemory-policy is volatile-ttl: it would, once maxmemory is set, throw jobs "
         "away "
         "when its memory is full\n"
         "ok Redis r: it writes all to disk (appendonly)\n"},
        {{"r", .info = "aof_enabled:1\n"},
         "warning Redis r: it does not tell whether it may throw jobs away\n"
         "ok Redis r: it writes all to disk (appendonly)\n"},
};

START_TEST(what_redis_tells_is_judged_and_what_it_refuses_is_said)
{
        doctor_redis(&findings, &redis_cases[_i].redis);
        expect(redis_cases[_i].expected);
}
END_TEST

static char state_file[] = "/run/state", name[] = "web", user[] = "app", dyno[] = "DYNO=web.1";
static char sidekiq[] = "sidekiq", t[] = "-t", thirty[] = "30", timeout[] = "--timeout=90", joined[] = "-t60";
static struct settings settings = {.state_file = state_file};
static struct fleet_settings fleet_settings;
static struct world world;
static struct fleet fleet;

static void setup(void)
{
        world = (struct world){.settings = &settings};
        fleet_settings = (struct fleet_settings){
                .name = name,
                .user = user,
                .traits = &sidekiq_traits,
                .active_process_count = 2,
                .max_processes = 4,
                .stop_timeout = 60 * USEC_PER_SEC,
        };
        fleet = (struct fleet){.world = &world, .settings = &fleet_settings};
}

START_TEST(the_machine_is_judged)
{
        struct doctor_machine machine = {.overcommit = -1};

        doctor_machine(&findings, &machine, &world, T0);
        expect("ok machine: the clocks agree\nok state file: '/run/state' is written\n");
        machine = (struct doctor_machine){.has_redis = true, .overcommit = 1};
        world.doubt.since = T0 - 2 * USEC_PER_HOUR;
        doctor_machine(&findings, &machine, &world, T0);
        expect("ok machine: vm.overcommit_memory is 1\nok machine: the clocks agree\n"
               "ok state file: '/run/state' is written\n");
        machine = (struct doctor_machine){
                .has_redis = true, .overcommit = 0, .renamed = &sidekiq_traits, .save_error = ENOSPC};
        world.doubt.since = T0 - 60 * USEC_PER_SEC;
        doctor_machine(&findings, &machine, &world, T0);
        expect("warning machine: vm.overcommit_memory is 0: Redis may be unable to save while memory is "
               "short\n"
               "warning machine: DYNO is in the environment: Sidekiq beats under that name, and cannot be "
               "matched\n"
               "warning machine: the time was in doubt 1min ago\n"
               "problem state file: '/run/state' cannot be written: No space left on device\n");
}
END_TEST

static void diagnose(bool is_root)
{
        const struct doctor_machine machine = {.is_root = is_root, .memory_bytes = UINT64_C(4) << 30};

        doctor_fleet(&findings, &machine, &fleet, NULL, 0);
}

START_TEST(a_fleets_settings_are_judged)
{
        char *with_t[] = {sidekiq, t, thirty, NULL}, *with_timeout[] = {sidekiq, timeout, NULL};
        char *with_joined[] = {sidekiq, joined, NULL}, *without_value[] = {sidekiq, t, NULL};
        char *environment[] = {dyno, NULL};

        diagnose(true);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet_settings.argv = with_t;
        fleet_settings.memory_threshold = UINT64_C(1) << 30;
        diagnose(true);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet_settings.argv = with_timeout;
        fleet_settings.memory_threshold++;
        fleet_settings.environment_list = environment;
        fleet_settings.user = NULL;
        diagnose(true);
        expect("warning fleet 'web': its workers run as root\n"
               "problem fleet 'web': stop_timeout is 1min, but its Sidekiq takes up to 90s (-t) to put its "
               "jobs "
               "back: it would be killed meanwhile\n"
               "warning fleet 'web': memory_threshold 1G x max_processes 4 is above the machine's memory "
               "of 4G\n"
               "warning fleet 'web': DYNO is in its environment: Sidekiq beats under that name, and cannot "
               "be "
               "matched\n");
        fleet_settings.memory_threshold = 0;
        fleet_settings.environment_list = NULL;
        fleet_settings.argv = with_joined;
        diagnose(false);
        expect("problem fleet 'web': stop_timeout is 1min, but its Sidekiq takes up to 60s (-t) to put its "
               "jobs "
               "back: it would be killed meanwhile\n");
        fleet_settings.argv = without_value;
        diagnose(false);
        expect("ok fleet 'web': its settings and 0 workers\n");
}
END_TEST

START_TEST(workers_are_judged)
{
        const struct doctor_machine machine = {0};
        struct worker workers[] = {{.fleet = &fleet, .index = 1, .has_beat = true},
                                   {.fleet = &fleet, .index = 2, .booted = true},
                                   {.fleet = &fleet, .index = 3, .has_beat = true, .stale_told = true},
                                   {.fleet = &fleet, .index = 4, .booted = true}};
        struct doctor_worker facts[] = {{.worker = &workers[0], .version = "7.3.2"},
                                        {.worker = &workers[1]},
                                        {.worker = &workers[2], .version = "4.2.10"},
                                        {.worker = &workers[3], .other_namespace = true}};

        doctor_fleet(&findings, &machine, &fleet, facts, 1);
        expect("ok fleet 'web': its settings and 1 worker\n");
        doctor_fleet(&findings, &machine, &fleet, facts, ELEMENTSOF(facts));
        expect("problem web/2: it has booted, but its heartbeat is not to be found\n"
               "warning web/3: its heartbeat has stopped\n"
               "problem web/3: it is Sidekiq 4.2.10, which does not know the signal that quiets it\n"
               "problem web/4: it runs in a pid namespace of its own: its heartbeats cannot be matched\n");
}
END_TEST

START_TEST(a_crash_loop_is_a_problem)
{
        const struct doctor_machine machine = {0};

        snprintf(fleet.crash_last, sizeof(fleet.crash_last), "web/1 (pid 7) exited with status 1");
        fleet.crash.count = 2;
        doctor_fleet(&findings, &machine, &fleet, NULL, 0);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet.crash.count = 3;
        doctor_fleet(&findings, &machine, &fleet, NULL, 0);
        expect("problem fleet 'web': 3 short lives in a row, the last: web/1 (pid 7) exited with status 1\n");
        fleet.order = ORDER_STOP;
        doctor_fleet(&findings, &machine, &fleet, NULL, 0);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet.order = ORDER_RUN;
        fleet.crash.count = 0;
}
END_TEST

int main(void)
{
        Suite *suite = suite_create("doctor");
        TCase *tests = tcase_create("doctor");

        tcase_add_checked_fixture(tests, setup, teardown);
        tcase_add_loop_test(tests, what_redis_tells_is_judged_and_what_it_refuses_is_said, 0,
                            ELEMENTSOF(redis_cases));
        tcase_add_test(tests, the_machine_is_judged);
        tcase_add_test(tests, a_fleets_settings_are_judged);
        tcase_add_test(tests, workers_are_judged);
        tcase_add_test(tests, a_crash_loop_is_a_problem);
        suite_add_tcase(suite, tests);
        return unit_main(suite);
}
