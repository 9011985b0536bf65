/* SPDX-License-Identifier: MIT */
/* Tests of advice/problem_rules.h: what is a problem, how severe, since when, and what is to be done. */
#include "advice/problem_rules.h"
#include "autoscaling/autoscale_rules.h"
#include "decide/command.h"
#include "golden.h"
#include "model/rollout.h"
#include "model/world.h"
#include "observe/observe.h"
#include "quoting.h"
#include "world.h"

static struct problem_facts facts;
static struct problems problems;

TEST_WORLD(2)
{
        facts = (struct problem_facts){.config_path = "/etc/sqmgr/sqmgr.ini"};
        test_settle(&t);
}

static void judge(void)
{
        problems_clear(&problems);
        problems_judge(&problems, &facts, t.world, &t.fleet, 1, t.now);
        problems_sort(&problems);
        ck_assert(!problems.lost);
}

/* The problems are those of that section of tests/golden/problems. */
static void expect(const char *section)
{
        char *text = NULL, about[PROBLEM_ABOUT_MAX];
        size_t size;
        FILE *out = open_memstream(&text, &size);

        judge();
        for (size_t i = 0; i < problems.n; i++) {
                const struct problem *problem = &problems.list[i];
                _cleanup_free_ char *command = problem_command(problem, facts.instance, facts.config_path);

                fprintf(out, "%s %s%s x%u, %s: %s [%s]", problem_severity_name(problem->severity),
                        problem_kinds[problem->code].name, problem->unready ? " unready" : "", problem->count,
                        problem_about(problem, about), problem->text, command);
                if (problem->since != 0)
                        fprintf(out, " since %llds",
                                (long long)((t.now - problem->since + USEC_PER_SEC / 2) / USEC_PER_SEC));
                if (problem->quoted)
                        fprintf(out, " | %s", quoted_reveal(problem->quoted));
                fputc('\n', out);
        }
        fclose(out);
        golden_expect("problems", section, text);
        free(text);
        problems_clear(&problems);
}

TEST(a_healthy_fleet_has_none)
{
        judge();
        ck_assert_uint_eq(problems.n, 0);
        /* In a restart that goes well, too. */
        test_restart(&t);
        for (int i = 0; i < 30; i++) {
                test_run(&t, 1);
                judge();
                ck_assert_uint_eq(problems.n, 0);
        }
}

TEST(missing_workers_are_one_problem_with_their_reason)
{
        test_exit(&t, test_worker(&t, 1), 256);
        test_run(&t, 1);
        expect("a worker has crashed");
        t.newborn.die_usec = USEC_PER_SEC;
        test_exit(&t, test_worker(&t, 2), 256);
        test_run(&t, 120);
        expect("a crash loop");
        t.newborn.die_usec = USEC_INFINITY;
        test_run(&t, 200);
        judge();
        ck_assert_uint_eq(problems.n, 0);
}

TEST(workers_that_start_are_a_warning)
{
        ck_assert_int_eq(command_scale(t.fleet, 4, NULL, t.now), COMMAND_DONE);
        test_tick(&t, 1);
        expect("more are ordered");
}

TEST(a_halted_restart_is_a_problem_until_it_is_acknowledged)
{
        t.newborn.boot_usec = USEC_INFINITY;
        t.fleet_settings.boot_timeout = USEC_PER_HOUR;
        t.fleet_settings.rollout_timeout = 100 * USEC_PER_SEC;
        test_restart(&t);
        test_run(&t, 52);
        expect("a restart without progress");
        (void)test_run_out(&t, 7200);
        expect("a halted restart");
}

TEST(a_fleet_that_has_returned_says_what_its_next_worker_runs)
{
        command_restart(t.fleet, NULL, t.now);
        t.fleet->rollout.limit = 1;
        test_run(&t, 60);
        rollout_reject(t.fleet, "12 of 100 jobs failed", NULL, t.now);
        test_run(&t, 60);
        expect("a rejected release without a template");
        /* While the fleet is stopped, nothing of the old release is left. */
        ck_assert_int_eq(command_stop(t.fleet, false, NULL, t.now), COMMAND_DONE);
        test_run(&t, 60);
        expect("a rejected release without a template and without workers");
}

TEST(a_log_tail_is_quoted_once)
{
        t.newborn.die_usec = USEC_PER_SEC;
        test_exit(&t, test_worker(&t, 2), 256);
        test_run(&t, 120);
        t.fleet->crash_quoted = *QUOTED("cannot load such file");
        expect("a crash loop with a log tail");
        t.fleet->rollout.state = ROLLOUT_HALTED;
        snprintf(t.fleet->rollout.error, sizeof(t.fleet->rollout.error), "3 new workers failed in a row");
        t.fleet->rollout.quoted = t.fleet->crash_quoted;
        expect("a halted restart with the same log tail");
}

TEST(churn_is_a_problem_once_it_repeats)
{
        t.fleet_settings.memory_threshold = 1000;
        t.newborn.memory_bytes = 2000;
        test_process(test_worker(&t, 1))->memory_bytes = 2000;
        test_run(&t, 90);
        ck_assert_uint_ge(t.fleet->churn.count, 2);
        judge();
        const struct problem *churn = problems_find(&problems, PROBLEM_MEMORY_CHURN);
        ck_assert_ptr_nonnull(churn);
        ck_assert_uint_gt(churn->since, 0);
        ck_assert_uint_le(churn->since, t.fleet->churn.failed_at);
}

TEST(a_thousand_workers_are_one_problem)
{
        test_world_close(&t);
        test_world_open(&t, 1000);
        t.fleet_settings.max_processes = 1000;
        test_settle(&t);
        FLEET_FOREACH_WORKER(t.fleet, worker)
                test_process(worker)->hung = true;
        test_run(&t, 300);
        judge();
        ck_assert_uint_le(problems.n, 2);
        ck_assert_uint_eq(problems_find(&problems, PROBLEM_WORKER_STALE)->count, 1000);
        ck_assert_int_eq(problem_of_worker(test_worker(&t, 1)), PROBLEM_WORKER_STALE);
}

TEST(what_an_operator_ordered_is_no_shortage)
{
        ck_assert_int_eq(command_stop(t.fleet, false, NULL, t.now), COMMAND_DONE);
        test_run(&t, 60);
        expect("stopped");
}

TEST(the_next_start_that_fails_and_redis_are_problems_of_sqmgr)
{
        const struct error_report refusal = {.text = "it refuses", .quoted = {"NOPERM for user secret"}};
        struct problem_redis redis[] = {{.url = "redis://a/0", .state = READER_STATE_CONNECTED},
                                        {.url = "redis://b/0",
                                         .state = READER_STATE_DOWN,
                                         .error = ERROR_REPORT("Connection refused")},
                                        {.url = "redis://c/0", .state = READER_STATE_DOWN, .error = &refusal},
                                        {.url = "redis://d/0"},
                                        {.database = "PostgreSQL",
                                         .url = "postgresql://e/app",
                                         .state = READER_STATE_DOWN,
                                         .error = ERROR_REPORT("Connection refused")},
                                        {.database = "SQLite", .url = "sqlite3:/srv/queue.sqlite3"}};

        facts.redis = redis;
        facts.n_redis = ELEMENTSOF(redis);
        facts.refused = facts.config_path;
        facts.refused_since = t.now - 5 * USEC_PER_SEC;
        facts.instance = "my app";
        expect("of sqmgr");
        /* Only what ends or lacks workers makes sqmgr unready. */
        t.world->shutting_down = true;
        t.world->shutdown_at = t.now;
        judge();
        ck_assert(problems_find(&problems, PROBLEM_SHUTTING_DOWN)->unready);
        ck_assert(!problems_find(&problems, PROBLEM_REDIS_DOWN)->unready);
}

TEST(a_process_of_the_service_that_belongs_to_no_worker_is_a_problem)
{
        const struct problem_process unknown[] = {
                {.pid = 4711, .leads = true, .command = "[celeryd: x\x1b[0m"},
                {.pid = 4712, .command = "sleep"}};

        facts.unknown = unknown;
        facts.n_unknown = ELEMENTSOF(unknown);
        expect("unknown processes");
}

TEST(one_server_is_one_problem_which_explains_the_missing_workers)
{
        struct problem_redis redis[] = {{.url = "redis://a/0", .state = READER_STATE_SLOW},
                                        {.url = "redis://a/1", .state = READER_STATE_SLOW},
                                        {.url = "redis://ab/0", .state = READER_STATE_CONNECTED},
                                        {.url = "redis://a", .state = READER_STATE_DOWN},
                                        {.url = "unix:///a", .state = READER_STATE_DOWN},
                                        {.url = "unix:///b?db=1", .state = READER_STATE_REFUSING}};

        facts.redis = redis;
        facts.n_redis = ELEMENTSOF(redis);
        redis[1].link = t.fleet->link = (struct link *)&redis[1];
        t.redis_up = false;
        observe_server(t.fleet, READER_STATE_SLOW, t.now);
        expect("of a slow server");
        t.newborn.die_usec = 100 * USEC_PER_MSEC;
        test_exit(&t, test_worker(&t, 1), 1);
        test_exit(&t, test_worker(&t, 2), 1);
        test_run(&t, 120);
        expect("of a slow server without workers");
        t.fleet->link = NULL;
}

/* A server that also has heartbeats is a problem as before. */
TEST(a_server_from_which_only_queues_are_read_is_a_warning)
{
        static const struct problem_redis redis[] = {
                {.url = "redis://a/0", .state = READER_STATE_DOWN, .for_queues = true},
                {.url = "redis://c/0", .state = READER_STATE_REFUSING, .for_queues = true},
                {.url = "redis://b/0", .state = READER_STATE_DOWN, .for_queues = true},
                {.url = "redis://b/1", .state = READER_STATE_DOWN},
        };

        facts.redis = redis;
        facts.n_redis = ELEMENTSOF(redis);
        expect("of servers with queues");
}

/* All connections to the server are in quarantine, whether they are open at the moment or not. */
TEST(a_server_whose_data_ends_sqmgr_is_one_problem)
{
        struct problem_redis redis[] = {
                {.url = "redis://a/0", .state = READER_STATE_CONNECTED, .quarantined = true},
                {.url = "redis://a/1",
                 .state = READER_STATE_DOWN,
                 .quarantined = true,
                 .error = ERROR_REPORT("in quarantine")},
                {.url = "redis://b/0", .state = READER_STATE_CONNECTED},
                {.url = "redis://c/0",
                 .state = READER_STATE_CONNECTED,
                 .quarantined = true,
                 .for_queues = true}};

        facts.redis = redis;
        facts.n_redis = ELEMENTSOF(redis);
        redis[1].link = t.fleet->link = (struct link *)&redis[1];
        t.redis_up = false;
        observe_server(t.fleet, READER_STATE_DOWN, t.now);
        expect("of a server in quarantine");
        t.fleet->link = NULL;
}

TEST(commands_are_for_a_shell)
{
        const struct problem problem = {.code = PROBLEM_FLEET_STOPPED, .fleet = t.fleet};
        struct {
                const char *name, *instance, *command;
        } cases[] = {{"default", NULL, "sqmgrctl start default"},
                     {"a b;$(reboot)", NULL, "sqmgrctl start 'a b;$(reboot)'"},
                     {"default", "shop", "sqmgrctl -i shop start default"},
                     {"it's", "/srv/x", "sqmgrctl -s /srv/x start 'it'\\''s'"},
                     {"-s", NULL, "sqmgrctl start '-s'"}};

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char *kept = t.fleet_settings.name;

                t.fleet_settings.name = (char *)cases[i].name;
                _cleanup_free_ char *command = problem_command(&problem, cases[i].instance, "");
                t.fleet_settings.name = kept;
                ck_assert_str_eq(command, cases[i].command);
        }
}

/* Another worker runs jobs after 23 s, 3 s of which are its boot. */
static const struct {
        usec_t target;
        bool preload, advised;
} preloads[] = {{21, false, true}, {21, true, false}, {15, false, false}};

TEST_LOOP(preload_is_advised_where_it_helps, ELEMENTSOF(preloads))
{
        struct queues *queues = calloc(1, sizeof(*queues));
        char target[32];

        ck_assert(queues && queues_add(queues, "default", strlen("default")));
        snprintf(target, sizeof(target), "%llus", (unsigned long long)preloads[_i].target);
        t.fleet_settings.active_process_max = 8;
        t.fleet_settings.latency_target = target;
        t.fleet_settings.preload = preloads[_i].preload;
        autoscale_keep(t.fleet, queues, t.now);
        t.fleet->autoscale->boot = 3 * USEC_PER_SEC;
        problems_clear(&problems);
        autoscale_problems(NULL, t.fleet, t.now, &problems);
        const struct problem *problem = problems_find(&problems, PROBLEM_TARGET_BELOW_BOOT);
        ck_assert_ptr_nonnull(problem);
        ck_assert_int_eq(!!strstr(problem_remedy(problem), "preload"), preloads[_i].advised);
        problems_clear(&problems);
}

TEST_MAIN("problems", .each = {setup, teardown})
