/* SPDX-License-Identifier: MIT */
/* Tests of advice/findings.h: what is found, and how grave it is. */
#include "advice/findings.h"
#include "frameworks/resque/resque.h"
#include "frameworks/sidekiq/format.h"
#include "model/fleet.h"
#include "model/world.h"
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

/* The last of them alone. */
static void expect_last(const char *expected)
{
        while (findings.n > 1) {
                struct finding *first = findings.list;

                free(first->about);
                free(first->text);
                free(first->remedy);
                memmove(first, first + 1, --findings.n * sizeof(*first));
        }
        expect(expected);
}

#define GOOD "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nevicted_keys:0\r\n"

static const struct {
        struct doctor_redis redis;
        const char *expected;
} redis_cases[] = {
        {{"r", .error = "connection refused"}, "problem Redis r: it cannot be asked: connection refused\n"},
        {{"r", .error = "memory is short", .left_out = "HGETALL app:a:1:b:work", .n_left_out = 1},
         "problem Redis r: the reply to 'HGETALL app:a:1:b:work' was too large: it is left out for some "
         "minutes, for the connection was lost by it\n"
         "problem Redis r: it cannot be asked: memory is short\n"},
        {{"r", .info = GOOD "aof_enabled:1\n", .left_out = "SMEMBERS queues", .n_left_out = 2},
         "problem Redis r: the reply to 'SMEMBERS queues' was too large, and more of them: it is left out "
         "for "
         "some minutes, for the connection was lost by it\n"
         "ok Redis r: it throws nothing away (noeviction)\n"
         "ok Redis r: it writes all to disk (appendonly)\n"},
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

TEST_LOOP(what_redis_reports_is_judged_and_what_it_refuses_is_said, ELEMENTSOF(redis_cases))
{
        doctor_redis(&findings, &redis_cases[_i].redis);
        expect(redis_cases[_i].expected);
}

static char state_file[] = "/run/state", read_socket[] = "/run/read.sock", name[] = "web", user[] = "app",
            dyno[] = "DYNO=web.1";
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

TEST(memory_pressure_is_judged_where_it_is_watched)
{
        const struct settings watching = {.state_file = (char *)"/run/state", .pressure_limit = 20};
        struct world squeezed = {.settings = &watching};
        struct doctor_machine machine = {.overcommit = -1};

        doctor_machine(&findings, &machine, &squeezed, T0);
        expect("ok machine: the clocks agree\nok state file: '/run/state' is written\n"
               "problem memory pressure: this kernel does not tell of it: pressure_limit has no effect\n"
               "ok read socket: there is none\n");
        machine.pressure = "/proc/pressure/memory";
        doctor_machine(&findings, &machine, &squeezed, T0);
        expect("ok machine: the clocks agree\nok state file: '/run/state' is written\n"
               "ok memory pressure: it is below pressure_limit 20%, by '/proc/pressure/memory'\n"
               "ok read socket: there is none\n");
        squeezed.pressure.high = true;
        squeezed.pressure_reading = (struct pressure_reading){
                .avg10 = 3100, .available_bytes = UINT64_C(1) << 30, .total_bytes = UINT64_C(16) << 30};
        doctor_machine(&findings, &machine, &squeezed, T0);
        expect("ok machine: the clocks agree\nok state file: '/run/state' is written\n"
               "problem memory pressure: 31% of the time something waits for memory (pressure_limit 20%), 1G "
               "of "
               "16G are left\nok read socket: there is none\n");
}

TEST(the_machine_is_judged)
{
        struct doctor_machine machine = {.overcommit = -1};

        doctor_machine(&findings, &machine, &world, T0);
        expect("ok machine: the clocks agree\nok state file: '/run/state' is written\nok read socket: there "
               "is "
               "none\n");
        settings.read_socket = read_socket;
        machine = (struct doctor_machine){.has_redis = true, .overcommit = 1};
        world.doubt.since = T0 - 2 * USEC_PER_HOUR;
        doctor_machine(&findings, &machine, &world, T0);
        expect("ok machine: vm.overcommit_memory is 1\nok machine: the clocks agree\n"
               "ok state file: '/run/state' is written\n"
               "problem read socket: '/run/read.sock' could not be opened: nobody can look there\n");
        machine.has_readers = true;
        doctor_machine(&findings, &machine, &world, T0);
        expect_last(
                "ok read socket: root and sqmgr's own user alone may look on '/run/read.sock', and give no "
                "order there\n");
        machine.readers = "sqmgr-read";
        doctor_machine(&findings, &machine, &world, T0);
        expect_last(
                "ok read socket: members of the group 'sqmgr-read' may look on '/run/read.sock', and give "
                "no order\n");
        settings.read_socket = NULL;
        machine = (struct doctor_machine){
                .has_redis = true, .overcommit = 0, .renamed = &sidekiq_traits, .save_error = ENOSPC};
        world.doubt.since = T0 - 60 * USEC_PER_SEC;
        doctor_machine(&findings, &machine, &world, T0);
        expect("warning machine: vm.overcommit_memory is 0: Redis may be unable to save while memory is "
               "short\n"
               "warning machine: DYNO is in the environment: Sidekiq beats under that name, and cannot be "
               "matched\n"
               "warning machine: the time was in doubt 1min ago\n"
               "problem state file: '/run/state' cannot be written: No space left on device\n"
               "ok read socket: there is none\n");
}

static void diagnose(bool is_root)
{
        const struct doctor_machine machine = {.is_root = is_root, .memory_bytes = UINT64_C(4) << 30};

        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0);
}

TEST(a_fleets_settings_are_judged)
{
        struct worker slow = {.fleet = &fleet, .index = 1}, slower = {.fleet = &fleet, .index = 2};
        struct worker *workers[] = {&slow, &slower};
        char *environment[] = {dyno, NULL};

        diagnose(true);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet.workers = workers;
        fleet.n_workers = ELEMENTSOF(workers);
        slow.process.shutdown_usec = 55 * USEC_PER_SEC;
        fleet_settings.memory_threshold = UINT64_C(1) << 30;
        diagnose(true);
        expect("ok fleet 'web': its settings and 0 workers\n");
        slower.process.shutdown_usec = 90 * USEC_PER_SEC;
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
        fleet_settings.stop_timeout = 95 * USEC_PER_SEC;
        diagnose(false);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet_settings.stop_timeout = 94 * USEC_PER_SEC;
        diagnose(false);
        expect("problem fleet 'web': stop_timeout is 1min 34s, but its Sidekiq takes up to 90s (-t) to put "
               "its jobs back: it would be killed meanwhile\n");
}

TEST(a_framework_that_was_never_tried_is_said_to_be)
{
        fleet_settings.traits = &resque_traits;
        diagnose(true);
        expect("warning fleet 'web': framework 'resque' is untried: the tests of this version run a stand-in "
               "for Resque\n");
}

TEST(workers_are_judged)
{
        const struct doctor_machine machine = {0};
        struct worker workers[] = {
                {.fleet = &fleet, .index = 1, .heartbeat.seen = true},
                {.fleet = &fleet, .index = 2, .process.booted = true},
                {.fleet = &fleet, .index = 3, .heartbeat.seen = true, .heartbeat.stale_reported = true},
                {.fleet = &fleet, .index = 4, .process.booted = true},
                {.fleet = &fleet, .index = 5, .heartbeat.seen = true, .orders.succeeded = true},
                {.fleet = &fleet, .index = 6, .heartbeat.seen = true, .heartbeat.ambiguous = true},
                {.fleet = &fleet, .index = 7, .process.booted = true, .heartbeat.ambiguous = true},
                {.fleet = &fleet, .index = 8, .heartbeat.fault = HEARTBEAT_FAULT_OWNER},
                {.fleet = &fleet,
                 .index = 9,
                 .heartbeat.seen = true,
                 .heartbeat.stale_reported = true,
                 .heartbeat.fault = HEARTBEAT_FAULT_MISSING},
                {.fleet = &fleet,
                 .index = 10,
                 .heartbeat.seen = true,
                 .heartbeat.fault = HEARTBEAT_FAULT_CHANGES}};
        struct doctor_worker facts[] = {{.worker = &workers[0], .version = "7.3.2"},
                                        {.worker = &workers[1]},
                                        {.worker = &workers[2], .version = "4.2.10"},
                                        {.worker = &workers[3], .other_namespace = true},
                                        {.worker = &workers[4]},
                                        {.worker = &workers[5]},
                                        {.worker = &workers[6]},
                                        {.worker = &workers[7]},
                                        {.worker = &workers[8]},
                                        {.worker = &workers[9]}};

        doctor_fleet(&findings, &machine, &fleet, facts, 1, T0);
        expect("ok fleet 'web': its settings and 1 worker\n");
        doctor_fleet(&findings, &machine, &fleet, facts, ELEMENTSOF(facts), T0);
        expect("problem web/2: it has booted, but its heartbeat is not to be found\n"
               "warning web/3: its heartbeat has stopped\n"
               "problem web/3: it is Sidekiq 4.2.10, which does not know the signal that quiets it\n"
               "problem web/4: it runs in a pid namespace of its own: its heartbeats cannot be matched\n"
               "warning web/5: a worker is one Sidekiq: its command has started another one, which takes "
               "jobs, too\n"
               "problem web/6: its process title denies what its heartbeat says: that may be another's\n"
               "problem web/7: several processes beat under its host name and pid: which is its own cannot "
               "be "
               "told\n"
               "problem web/8: its heartbeat does not count: its status file belongs to another user\n"
               "problem web/9: its heartbeat does not count: its status file is gone\n");
}

TEST(a_fleet_that_takes_no_jobs_by_an_order_is_reported)
{
        diagnose(false);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet.order = ORDER_STOP;
        diagnose(false);
        expect("warning fleet 'web': stopped: it takes no jobs\n");
        fleet.order_at = T0 - 2 * USEC_PER_HOUR;
        fleet.order_by = (struct orderer){.known = true, .uid = 1001, .name = "deploy"};
        diagnose(false);
        ck_assert_str_eq(findings.list[0].remedy, "run 'sqmgrctl start web'");
        expect("warning fleet 'web': stopped 2h ago by deploy (uid 1001): it takes no jobs\n");
        fleet.order = ORDER_QUIET;
        diagnose(false);
        expect("warning fleet 'web': quieted 2h ago by deploy (uid 1001): it takes no jobs\n");
        fleet_settings.removed = true;
        diagnose(false);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet_settings.removed = false;
        fleet.order = ORDER_RUN;
}

TEST(a_crash_loop_is_a_problem)
{
        const struct doctor_machine machine = {0};

        snprintf(fleet.crash_last, sizeof(fleet.crash_last), "web/1 (pid 7) exited with status 1");
        fleet.crash.count = 2;
        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0);
        expect("ok fleet 'web': its settings and 0 workers\n");
        fleet.crash.count = 3;
        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0);
        expect("problem fleet 'web': 3 short lives in a row; the last: web/1 (pid 7) exited with status 1\n");
        fleet.order = ORDER_STOP;
        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0);
        expect("warning fleet 'web': stopped: it takes no jobs\n");
        fleet.order = ORDER_RUN;
        fleet.crash.count = 0;
}

TEST(another_count_than_the_files_is_reported)
{
        const struct doctor_machine machine = {0};

        fleet.scale = 3;
        fleet.scale_at = T0 - 5 * USEC_PER_MIN;
        fleet.scale_by = (struct orderer){.known = true, .uid = 0, .name = "root"};
        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0);
        expect("warning fleet 'web': active_process_count is 2, but the count in force is 3: scaled 5min ago "
               "by root (uid 0)\n");
        fleet.scale = 2;
        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0);
        expect("ok fleet 'web': its settings and 0 workers\n");
}

TEST(a_fleet_that_recovers_is_no_problem_and_a_halted_restart_is_one)
{
        const struct doctor_machine machine = {0};
        struct worker list[2], *workers[] = {&list[0], &list[1]};

        for (unsigned i = 0; i < 2; i++)
                list[i] = (struct worker){.fleet = &fleet,
                                          .index = i + 1,
                                          .state = WORKER_ACTIVE,
                                          .active_at = T0 - i * USEC_PER_MIN};
        fleet.workers = workers;
        fleet.n_workers = 2;
        snprintf(fleet.crash_last, sizeof(fleet.crash_last), "web/1 (pid 7) exited with status 1");
        fleet.crash = (struct backoff){.count = 3, .failed_at = T0 - USEC_PER_SEC};
        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0 + USEC_PER_SEC);
        expect("warning fleet 'web': recovering from 3 short lives in a row: over in 59s unless a worker "
               "dies; the "
               "last: web/1 (pid 7) exited with status 1\n");
        /* All are there, of before. */
        fleet.crash.failed_at = T0 + USEC_PER_SEC;
        fleet.rollout = (struct rollout){.state = ROLLOUT_HALTED, .error = "3 new workers in a row failed"};
        doctor_fleet(&findings, &machine, &fleet, NULL, 0, T0 + USEC_PER_SEC);
        expect("problem fleet 'web': its restart halted: 3 new workers in a row failed\n");
}

TEST_MAIN("doctor", .each = {setup, teardown})
