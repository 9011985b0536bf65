/* SPDX-License-Identifier: MIT */
/* Tests of advice/doctor_rules.h: what is found, and how grave it is. */
#include "advice/doctor_rules.h"
#include "advice/problem_rules.h"
#include "frameworks/celery/celery.h"
#include "frameworks/good_job/good_job.h"
#include "frameworks/resque/resque.h"
#include "frameworks/sidekiq/format.h"
#include "frameworks/solid_queue/solid_queue.h"
#include "golden.h"
#include "model/server_facts.h"
#include "model/world.h"
#include "quoting.h"
#include "redis/redis_info.h"
#include "unit.h"
#include <signal.h>

#define T0 (10000 * USEC_PER_SEC)

static struct problems findings;

static void teardown(void)
{
        problems_clear(&findings);
}

/* The findings are those of that section of tests/golden/doctor, each as `LEVEL ABOUT: TEXT`. */
static void expect(const char *section)
{
        static const char *const levels[] = {"ok", "warning", "warning", "problem"};
        char text[4096] = "";

        for (size_t i = 0; i < findings.n; i++) {
                const struct problem *finding = &findings.list[i];
                char about[PROBLEM_ABOUT_MAX];
                size_t length = strlen(text);

                snprintf(text + length, sizeof(text) - length, "%s %s: %s\n", levels[finding->severity],
                         problem_about(finding, about), finding->text);
                ck_assert_int_eq(!!problem_remedy(finding), finding->severity != PROBLEM_OK);
        }
        golden_expect("doctor", section, text);
        ck_assert(!findings.lost);
        problems_clear(&findings);
}

/* The last of them alone. */
static void expect_last(const char *section)
{
        static const struct fleet others;
        struct problems last = {0};

        for (size_t i = 0; i + 1 < findings.n; i++)
                findings.list[i].fleet = &others;
        problems_move(&findings, findings.list[findings.n - 1].fleet, &last);
        problems_clear(&findings);
        findings = last;
        expect(section);
}

#define GOOD "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\nevicted_keys:0\r\n"

static const struct {
        const struct error_report *error;
        const char *info; /* the text of INFO; NULL: refused */
        struct redis_facts facts;
} redis_cases[] = {
        {.error = ERROR_REPORT("connection refused")},
        {.facts = {.info_error.quoted_bytes = "NOPERM"}},
        {.info = GOOD "aof_enabled:1\r\n", .facts = {.config_error.quoted_bytes = "NOPERM"}},
        {.info = GOOD "aof_enabled:0\r\n", .facts = {.has_save = true, .save = "3600 1"}},
        {.info = GOOD "aof_enabled:0\r\n", .facts = {.has_save = true}},
        {.info = GOOD "aof_enabled:0\r\n", .facts = {.config_error.quoted_bytes = "NOPERM x"}},
        {.info = GOOD "aof_enabled:0\r\nrdb_last_bgsave_status:err\r\n",
         .facts = {.has_save = true, .save = "1 1"}},
        {.info = "maxmemory:1024\nmaxmemory_policy:allkeys-lru\nevicted_keys:7\naof_enabled:1\n"},
        {.info = "maxmemory:0\nmaxmemory_policy:volatile-ttl\naof_enabled:1\n"},
        {.info = "aof_enabled:1\n"},
};

TEST_LOOP(what_redis_reports_is_judged_and_what_it_refuses_is_said, ELEMENTSOF(redis_cases))
{
        struct redis_facts facts = redis_cases[_i].facts;
        char section[32];

        if (redis_cases[_i].info)
                redis_info_take(redis_cases[_i].info, &facts);
        snprintf(section, sizeof(section), "redis %d", _i + 1);
        doctor_redis(&findings, "Redis r", redis_cases[_i].error, &facts);
        expect(section);
}

static const struct {
        const struct error_report *error;
        struct database_facts facts;
} database_cases[] = {
        {.error = ERROR_REPORT("connection refused")},
        {.facts = {.version = "15.4"}},
        {.facts = {.read_only = true, .paused_queues = 1}},
        {.facts = {.forking = 1, .has_roles = true, .schedulers = 1, .recurring = 3, .failed = 1}},
        {.facts = {.forking = 2, .has_roles = true, .dispatchers = 1, .recurring = 3, .failed = 7}},
        {.facts = {.has_roles = true, .dispatchers = 2, .paused_queues = 2}},
};

TEST_LOOP(what_a_database_reports_is_judged, ELEMENTSOF(database_cases))
{
        char section[32];

        snprintf(section, sizeof(section), "database %d", _i + 1);
        doctor_database(&findings, "PostgreSQL postgresql://db/app", database_cases[_i].error,
                        &database_cases[_i].facts, &solid_queue_traits);
        expect(section);
}

static char state_file[] = "/run/state", name[] = "web", dyno[] = "DYNO=web.1";
static struct settings settings = {.state_file = state_file};
static struct fleet_settings fleet_settings;
static struct world world;
static struct fleet fleet;
static struct problem_facts facts;
static const struct error_report *start_error;

static void setup(void)
{
        facts = (struct problem_facts){.memory_bytes = UINT64_C(4) << 30};
        world = (struct world){.settings = &settings};
        fleet_settings = (struct fleet_settings){
                .name = name,
                .traits = &sidekiq_traits,
                .active_process_count = 2,
                .max_processes = 4,
                .stop_timeout = 60 * USEC_PER_SEC,
        };
        fleet = (struct fleet){.world = &world, .settings = &fleet_settings, .redis_up = true};
}

/* Compares the remedy as doctor shows it, with the command. */
static void expect_remedy(const char *section, const struct problem *problem)
{
        _cleanup_free_ char *command = problem_command(problem, NULL, facts.refused);
        char text[1024];

        ck_assert_ptr_nonnull(command);
        snprintf(text, sizeof(text), "%s: %s", problem_remedy(problem), command);
        golden_expect("doctor", section, text);
}

static void diagnose_workers(const struct doctor_worker *workers, size_t n)
{
        struct fleet *list[] = {&fleet};
        struct problems problems = {0};

        problems_judge(&problems, &facts, &world, list, 1, T0);
        doctor_fleet(&findings, &problems, &(struct doctor_fleet){&fleet, workers, n, start_error});
        problems_clear(&problems);
}

static void expect_fleet(const char *section)
{
        diagnose_workers(NULL, 0);
        expect(section);
}

TEST(options_of_a_command_that_prevent_supervision_are_found)
{
        static char *const good[] = {(char *)"python3", (char *)"-B",      (char *)"-m",
                                     (char *)"celery",  (char *)"-A",      (char *)"app-n",
                                     (char *)"worker",  (char *)"--quiet", NULL},
                           *const bad[] = {(char *)"/bin/sh", (char *)"-c",
                                           (char *)"exec celery worker -B --autoscale=5,2 '--pidfile' x",
                                           NULL},
                           *const named[] = {(char *)"celery", (char *)"worker", (char *)"--beat",
                                             (char *)"-n",     (char *)"one@%h", NULL};

        fleet_settings.traits = &celery_traits;
        fleet_settings.argv = (char **)good;
        expect_fleet("options 1");
        fleet_settings.argv = (char **)bad;
        expect_fleet("options 2");
        fleet_settings.argv = (char **)named;
        expect_fleet("options 3");
}

TEST(jobs_that_a_drain_cut_off_are_found)
{
        fleet_settings.traits = &solid_queue_traits;
        fleet_settings.command = (char *)"bin/jobs --mode async";
        fleet.abandoned.after = 5 * USEC_PER_SEC;
        expect_fleet("drain 1");
        fleet.abandoned.jobs = 3;
        fleet.abandoned.released = 2;
        expect_fleet("drain 2");
}

TEST(a_fleet_that_is_not_heard_is_found)
{
        struct worker worker = {.fleet = &fleet, .index = 1}, *list[] = {&worker};
        struct doctor_worker of = {.worker = &worker};

        fleet_settings.traits = &good_job_traits;
        fleet_settings.argv = (char *[]){NULL};
        fleet.workers = list;
        fleet.n_workers = 1;
        diagnose_workers(&of, 1);
        expect("unheard 1");
        fleet.crash.count = 2;
        diagnose_workers(&of, 1);
        expect_last("unheard 2");
        worker.heartbeat.seen = true;
        diagnose_workers(&of, 1);
        expect_last("unheard 3");
}

#define ORDERS                                                                                               \
        .orders_why = "the disk does not respond", .orders_file = "/var/lib/sqmgr/shop/orders",              \
        .orders_since = T0 - 3 * USEC_PER_SEC

static const struct {
        const char *section;
        const char *remedy; /* section of the remedy of the first finding; NULL: not shown */
        struct problem_facts facts;
        int overcommit;
        usec_t doubt; /* this long ago; 0: never */
        bool namespaced, tls_unverified;
        enum problem_severity severity; /* of the first finding; PROBLEM_OK: any */
} machines[] = {
        {.section = "machine 1", .overcommit = -1},
        {.section = "machine 2", .overcommit = 1, .doubt = 2 * USEC_PER_HOUR},
        {.section = "machine 3",
         .facts = {.renamed = &fleet_settings, .save_error = ENOSPC},
         .doubt = USEC_PER_MIN},
        {.section = "machine 4",
         .facts = {.renamed = &fleet_settings, .save_error = ENOSPC},
         .doubt = USEC_PER_MIN,
         .namespaced = true},
        {.section = "machine 5", .facts = {ORDERS}, .doubt = USEC_PER_MIN},
        {.section = "files 1", .facts = {.files_limit = 1024, .files_needed = 1024}, .overcommit = -1},
        {.section = "files 2", .facts = {.files_limit = 1024, .files_needed = 1025}, .overcommit = -1},
        {.section = "root",
         .remedy = "root, remedy",
         .facts = {.is_root = true},
         .overcommit = -1,
         .severity = PROBLEM_WARNING},
        {.section = "root in a container",
         .facts = {.is_root = true, .in_container = true},
         .overcommit = -1,
         .severity = PROBLEM_NOTICE},
        {.section = "certificate", .remedy = "certificate, remedy", .overcommit = -1, .tls_unverified = true},
        {.section = "config file",
         .remedy = "config file, remedy",
         .facts = {.refused = "/etc/sqmgr/sqmgr.ini", .refused_since = T0},
         .overcommit = -1},
};

TEST_LOOP(the_machine_is_judged, ELEMENTSOF(machines))
{
        struct problems problems = {0};

        facts = machines[_i].facts;
        fleet_settings.namespaced = machines[_i].namespaced;
        settings.redis.tls_unverified = machines[_i].tls_unverified;
        world.doubt.since = machines[_i].doubt > 0 ? T0 - machines[_i].doubt : 0;
        problems_judge(&problems, &facts, &world, NULL, 0, T0);
        doctor_machine(&findings, machines[_i].overcommit, &facts, &problems, &world);
        problems_clear(&problems);
        if (machines[_i].severity != PROBLEM_OK)
                ck_assert_int_eq(findings.list[0].severity, machines[_i].severity);
        if (machines[_i].remedy)
                expect_remedy(machines[_i].remedy, &findings.list[0]);
        expect(machines[_i].section);
}

TEST(a_fleets_settings_are_judged)
{
        struct worker slow = {.fleet = &fleet, .index = 1}, slower = {.fleet = &fleet, .index = 2};
        struct worker *workers[] = {&slow, &slower};
        char *environment[] = {dyno, NULL};

        expect_fleet("settings 1");
        fleet.workers = workers;
        fleet.n_workers = ELEMENTSOF(workers);
        slow.process.shutdown_usec = 55 * USEC_PER_SEC;
        fleet_settings.memory_threshold = UINT64_C(1) << 30;
        expect_fleet("settings 2");
        slower.process.shutdown_usec = 90 * USEC_PER_SEC;
        fleet_settings.memory_threshold++;
        fleet_settings.environment_list = environment;
        expect_fleet("settings 3");
        fleet_settings.memory_threshold = 0;
        fleet_settings.environment_list = NULL;
        fleet_settings.stop_timeout = 95 * USEC_PER_SEC;
        expect_fleet("settings 4");
        fleet_settings.stop_timeout = 94 * USEC_PER_SEC;
        expect_fleet("settings 5");
}

TEST(a_framework_that_was_never_tried_is_said_to_be)
{
        fleet_settings.traits = &resque_traits;
        expect_fleet("framework 1");
}

static int quits(const struct worker *worker _unused_)
{
        return SIGQUIT;
}

TEST(workers_are_judged)
{
        struct worker *list[11];
        struct worker workers[] = {
                {.fleet = &fleet, .index = 1, .heartbeat.seen = true},
                {.fleet = &fleet, .index = 2, .process.booted = true},
                {.fleet = &fleet, .index = 3, .heartbeat.seen = true, .heartbeat.stale_reported = true},
                {.fleet = &fleet, .index = 4, .process.booted = true},
                {.fleet = &fleet, .index = 5, .heartbeat.seen = true, .orders.succeeded = true},
                {.fleet = &fleet, .index = 6, .heartbeat.seen = true, .heartbeat.ambiguous = true},
                {.fleet = &fleet, .index = 7, .process.booted = true, .heartbeat.ambiguous = true},
                {.fleet = &fleet, .index = 8, .heartbeat.fault = HEARTBEAT_FAULT_KIND},
                {.fleet = &fleet,
                 .index = 9,
                 .heartbeat.seen = true,
                 .heartbeat.stale_reported = true,
                 .heartbeat.fault = HEARTBEAT_FAULT_MISSING},
                {.fleet = &fleet,
                 .index = 10,
                 .heartbeat.seen = true,
                 .heartbeat.fault = HEARTBEAT_FAULT_CHANGES},
                {.fleet = &fleet,
                 .index = 11,
                 .process.pid = 100,
                 .heartbeat.seen = true,
                 .orders.unconfirmed = true}};
        struct doctor_worker asked[ELEMENTSOF(workers)] = {0};

        for (size_t i = 0; i < ELEMENTSOF(workers); i++)
                asked[i].worker = list[i] = &workers[i];
        strcpy(asked[0].version, "7.3.2");
        strcpy(asked[2].version, "4.2.10");
        asked[3].other_namespace = true;
        facts = (struct problem_facts){.stop_signal = quits};
        diagnose_workers(asked, 1);
        expect("workers 1");
        fleet.workers = list;
        fleet.n_workers = ELEMENTSOF(workers);
        diagnose_workers(asked, ELEMENTSOF(asked));
        const struct problem *stop = findings.list;
        while (stop->code != PROBLEM_STOP_UNCONFIRMED)
                stop++;
        expect_remedy("workers 2, remedy", stop);
        expect("workers 2");
}

TEST(a_fleet_that_takes_no_jobs_by_an_order_is_reported)
{
        expect_fleet("order 1");
        fleet.order = ORDER_STOP;
        expect_fleet("order 2");
        fleet.order_at = T0 - 2 * USEC_PER_HOUR;
        fleet.order_by = (struct orderer){.known = true, .uid = 1001, .name = "deploy"};
        diagnose_workers(NULL, 0);
        expect_remedy("order 3, remedy", &findings.list[0]);
        expect("order 3");
        fleet.order = ORDER_QUIET;
        expect_fleet("order 4");
        fleet_settings.removed = true;
        expect_fleet("order 5");
}

TEST(a_crash_loop_is_a_problem)
{
        snprintf(fleet.crash_last, sizeof(fleet.crash_last), "web/1 (pid 7) exited with status 1");
        fleet.crash.count = 2;
        expect_fleet("crash loop 1");
        fleet.crash.count = 3;
        expect_fleet("crash loop 2");
        fleet.order = ORDER_STOP;
        expect_fleet("crash loop 3");
}

TEST(a_start_that_would_fail_is_a_problem_before_it_is_needed)
{
        const struct error_report error = {
                .text = "a rehearsed start has failed",
                .quoted = {"cannot open log '/var/log/web.log': Permission denied"},
        };

        start_error = &error;
        diagnose_workers(NULL, 0);
        start_error = NULL;
        ck_assert(quoted_equal(findings.list[findings.n - 1].quoted, &error.quoted));
        expect("start");
}

TEST(another_count_than_the_files_is_reported)
{
        fleet.scale = 3;
        fleet.scale_at = T0 - 5 * USEC_PER_MIN;
        fleet.scale_by = (struct orderer){.known = true, .uid = 0, .name = "root"};
        expect_fleet("count 1");
        fleet.scale = 2;
        expect_fleet("count 2");
}

TEST(a_fleet_that_recovers_is_no_problem_and_a_halted_restart_is_one)
{
        struct worker list[2], *workers[] = {&list[0], &list[1]};

        for (unsigned i = 0; i < 2; i++)
                list[i] = (struct worker){.fleet = &fleet,
                                          .index = i + 1,
                                          .state = WORKER_ACTIVE,
                                          .active_at = T0 - USEC_PER_SEC - i * USEC_PER_MIN};
        fleet.workers = workers;
        fleet.n_workers = 2;
        snprintf(fleet.crash_last, sizeof(fleet.crash_last), "web/1 (pid 7) exited with status 1");
        fleet.crash = (struct backoff){.count = 3, .failed_at = T0 - USEC_PER_SEC};
        expect_fleet("recovery 1");
        /* All are there, of before. */
        fleet.crash.failed_at = T0;
        fleet.rollout = (struct rollout){.state = ROLLOUT_HALTED, .error = "3 new workers failed in a row"};
        expect_fleet("recovery 2");
}

TEST_MAIN("doctor", .each = {setup, teardown})
