/* SPDX-License-Identifier: MIT */
/* Tests of the settings: the table of keys, reading into a draft, checks and printing. */
/* promises: P10 */
#include "base/parse.h"
#include "config.h"
#include "golden.h"
#include "settings/errors.h"
#include "settings_text.h"
#include "unit.h"
#include <stdarg.h>
#include <syslog.h>

/* Allocations that may still succeed, in code linked with --wrap; below 0: all. */
static int allocations_left = -1;

static bool allocation_fails(void)
{
        return allocations_left >= 0 && allocations_left-- == 0;
}

/* clang-format off */
#define WRAP(type, name, parameters, arguments) \
        type __real_##name parameters;          \
        type __wrap_##name parameters;          \
        type __wrap_##name parameters           \
        {                                       \
                if (allocation_fails())         \
                        return NULL;            \
                return __real_##name arguments; \
        }
/* clang-format on */
WRAP(void *, malloc, (size_t size), (size))
WRAP(void *, calloc, (size_t n, size_t size), (n, size))
WRAP(void *, realloc, (void *p, size_t size), (p, size))
WRAP(void *, reallocarray, (void *p, size_t n, size_t size), (p, n, size))
WRAP(char *, strdup, (const char *s), (s))

int __real_vasprintf(char **ret, const char *format, va_list args);
int __wrap_vasprintf(char **ret, const char *format, va_list args);
int __wrap_vasprintf(char **ret, const char *format, va_list args)
{
        return allocation_fails() ? -1 : __real_vasprintf(ret, format, args);
}

int __wrap_asprintf(char **ret, const char *format, ...) _printf_(2, 3);
int __wrap_asprintf(char **ret, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        int length = __wrap_vasprintf(ret, format, args);
        va_end(args);
        return length;
}

TEST(table_is_in_order)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];

                ck_assert_ptr_eq(settings_key_find(key->scope, key->name), key);
                ck_assert_msg(i == 0 || key->scope >= settings_keys[i - 1].scope, "%s", key->name);
                ck_assert_msg((!key->fallback) != (!key->unset), "%s", key->name);
                /* Beside a default, the unset value is what `none` stands for. */
                ck_assert_msg(!key->unset_value || key->unset || key->type == SETTINGS_DURATION, "%s",
                              key->name);
                ck_assert_msg((key->type == SETTINGS_CHOICE) == (!!key->choices), "%s", key->name);
        }
}

TEST(each_default_can_be_read_and_written)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                union {
                        struct settings settings;
                        struct fleet_settings fleet;
                } room = {0}, copy = {0};
                _cleanup_free_ char *text = NULL;
                char why[SETTINGS_WHY_MAX] = "";

                settings_values_clear(settings_key_is_of_fleet(key), &room);
                if (key->fallback)
                        ck_assert_msg(
                                settings_value_parse(key, key->fallback, &root_surroundings, &room, why) == 0,
                                "%s: %s", key->name, why);
                ck_assert_int_eq(settings_value_text(key, &room, &text), 0);
                if (!key->fallback)
                        ck_assert_msg(!text, "%s is unset, but shown as '%s'", key->name, text);
                ck_assert_int_eq(settings_value_copy(key, &room, &copy), 0);
                ck_assert(settings_value_equal(key, &room, &copy));
                settings_values_clear(settings_key_is_of_fleet(key), &room);
                settings_values_clear(settings_key_is_of_fleet(key), &copy);
        }
}

/* The manual has the others: tests/check-docs compares it with the table of keys. */
TEST(has_defaults_that_are_not_in_the_table)
{
        _cleanup_settings_ struct settings *s = read_good("[fleet:a]\ncommand=run me");
        const struct fleet_settings *f = s->fleets[0];

        ck_assert_str_eq(s->socket, "/run/sqmgr/own/control.sock");
        ck_assert_str_eq(s->state_file, "/run/sqmgr/own/state");
        ck_assert_ptr_null(s->socket_group);
        ck_assert_str_eq(s->redis.url, "redis://127.0.0.1:6379/0");
        ck_assert_uint_eq(s->n_fleets, 1);
        ck_assert_str_eq(f->name, "a");
        ck_assert_uint_eq(f->line, 1);
        ck_assert_str_eq(f->argv[1], "me");
        ck_assert_ptr_null(f->environment_list);
        ck_assert_ptr_eq(f->traits, &sidekiq_traits);
        ck_assert_ptr_null(f->log);
        ck_assert_ptr_null(f->redis_url);
        ck_assert_uint_eq(f->max_processes, 0);
        ck_assert_int_eq(f->stop_signal, 0);
}

static const char everything[] =
        "[sqmgr]\n"
        "SOCKET=/tmp/s/c.sock\nSocket_Group=ops\nstate_file=/var/x\n"
        "check_interval=250ms\nlog_level=DEBUG\nshutdown_timeout=0s\non_stop=leave\n"
        "[Redis]\n"
        "url=unix:///run/r.sock?db=3\nusername=u\npassword=p w\nnamespace=ns\n"
        "[fleet]\n"
        "ACTIVE_PROCESS_COUNT=4\ndirectory=/app\nmemory_threshold=25%\n"
        "[fleet:a]\n"
        "command=/bin/sh -c 'exec \"$0\"; x'\nframework=Sidekiq\ndirectory=/srv\n"
        "environment=A=1 B='x y' "
        "C=\nenvironment_file=env\nlog=/var/log/a.log\nredis_url=redis://u:secret@h:1/2\n"
        "max_processes=9\nrestart_surge=2\nready_after=0s\nboot_timeout=1min\n"
        "rollout_timeout=1h\nmemory_limit=3G\nmax_age=1d\n"
        "drain_timeout=2h\nstop_timeout=30s\n"
        "[fleet:B.c-d_1]\n"
        "command=run\nactive_process_count=2\nmemory_threshold=none\nlog=journal\n"
        "restart_surge=0%\nmax_processes=2\n";

TEST(reads_keys_of_all_types_and_sections)
{
        _cleanup_settings_ struct settings *s = read_good(everything);
        const struct fleet_settings *a = settings_find_fleet(s, "a"), *b = settings_find_fleet(s, "B.c-d_1");

        ck_assert_str_eq(s->socket, "/tmp/s/c.sock");
        ck_assert_str_eq(s->socket_group, "ops");
        ck_assert_uint_eq(s->check_interval, 250 * USEC_PER_MSEC);
        ck_assert_int_eq(s->log_level, LOG_DEBUG);
        ck_assert_int_eq(s->on_stop, ON_STOP_LEAVE);
        ck_assert_str_eq(s->redis.url, "unix:///run/r.sock?db=3");
        ck_assert_str_eq(s->redis.password, "p w");

        ck_assert_uint_eq(s->n_fleets, 2);
        ck_assert_ptr_eq(s->fleets[0], a);
        ck_assert_uint_eq(a->line, 18);
        ck_assert_str_eq(a->argv[2], "exec \"$0\"; x");
        ck_assert_str_eq(a->directory, "/srv");
        ck_assert_str_eq(a->environment_list[1], "B=x y");
        ck_assert_str_eq(a->environment_list[2], "C=");
        ck_assert_str_eq(a->redis_url, "redis://u:secret@h:1/2");
        ck_assert_uint_eq(a->active_process_count, 4);
        ck_assert_uint_eq(a->restart_surge.value, 2);
        ck_assert(!a->restart_surge.percent);
        ck_assert_uint_eq(a->memory_threshold, 2 * GIB);
        ck_assert_uint_eq(a->memory_limit, 3 * GIB);

        ck_assert_uint_eq(b->active_process_count, 2);
        ck_assert_uint_eq(b->memory_threshold, 0);
        ck_assert_str_eq(b->directory, "/app");
        ck_assert_ptr_null(settings_find_fleet(s, "c"));
}

/* One bad line in an otherwise good file. */
struct line_case {
        const char *section, *pair;
};

static const struct line_case line_cases[] = {
        {"fleet:a", "active_process_count=10001"},
        {"fleet:a", "active_process_count=-1"},
        {"fleet:a", "active_process_count=four"},
        {"fleet:a", "active_process_count="},
        {"fleet:a", "max_processes=0"},
        {"sqmgr", "socket=run/s"},
        {"fleet:a", "directory=\"/srv\""},
        {"redis", "queue_warn_size=100 low"},
        {"redis", "queue_warn_latency=low=5"},
        {"sqmgr", "log_level=loud"},
        {"sqmgr", "on_stop=kill"},
        {"sqmgr", "check_interval=5"},
        {"sqmgr", "check_interval=1ms"},
        {"sqmgr", "check_interval=99999999999999d"},
        {"sqmgr", "check_interval=none"},
        {"fleet:a", "max_age=7"},
        {"fleet:a", "max_age=1ms"},
        {"fleet:a", "memory_threshold=5X"},
        {"fleet:a", "memory_threshold=512"},
        {"fleet:a", "memory_limit=200%"},
        {"fleet:a", "restart_surge=-1"},
        {"fleet:a", "restart_surge=%"},
        {"fleet:a", "restart_surge=5%%"},
        {"fleet:a", "restart_surge=10001"},
        {"fleet:a", "restart_surge=1111111111111111111111111%"},
        {"fleet:a", "log=journald"},
        {"fleet:a", "framework=cron"},
        {"fleet:a", "stop_signal=TERM"},
        {"fleet:a", "preset=puma"},
        {"fleet:a", "heartbeat=redis"},
        {"fleet:a", "rescue_jobs=requeue\nframework=resque"},
        {"fleet:a", "environment=A"},
        {"fleet:a", "environment=A=1 B C=2"},
        {"fleet:a", "environment=1A=1"},
        {"fleet:a", "environment=A-B=1"},
        {"fleet:a", "environment==1"},
        {"fleet:a", "environment=A='1"},
        {"redis", "url=http://h"},
        {"redis", "url=redis://user:secret@h:99999"},
        {"redis", "sentinels=h:1"},
        {"redis", "master_name=m"},
        {"redis", "sentinel_password=hush"},
        {"redis", "username=u"},
        {"fleet:a", "memory_treshold=1G"},
        {"fleet:a", "Memory-Thresholds=1G"},
        {"redis", "uri=x"},
        {"fleet:a", "colour=red"},
        {"sqmgr", "user=x"},
        {"fleet:a", "url=x"},
        {"sqmrg", "socket=/x"},
        {"sidekiq", "x=y"},
        {"fleet:a b", "x=y"},
        {"fleet:", "x=y"},
        {"fleet:..", "x=y"},
        {"fleet:abcdefghijabcdefghijabcdefghijabcdefghij1", "x=y"},
};

static const struct line_case tls_cases[] = {
        {"redis", "tls_ca_file=ca"},
        {"redis", "tls_cert_file=/cert"},
        {"redis", "tls_key_file=/key"},
        {"redis", "tls_verify=0"},
};

static void add_line_errors(const struct line_case *cases, size_t n)
{
        char text[512], label[256];

        for (size_t i = 0; i < n; i++) {
                snprintf(text, sizeof(text), "[%s]\n%s\n[fleet:a]\ncommand=run", cases[i].section,
                         cases[i].pair);
                snprintf(label, sizeof(label), "[%s]\n%s", cases[i].section, cases[i].pair);
                add_refused_settings(&root_surroundings, text, label);
        }
}

TEST(names_the_line_and_what_would_be_right)
{
        golden_begin();
        add_line_errors(line_cases, ELEMENTSOF(line_cases));
        golden_end("settings-errors", "a line");
        golden_begin();
        add_line_errors(tls_cases, ELEMENTSOF(tls_cases));
        golden_end("settings-errors", "TLS");
}

#define A50  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A103 A50 A50 "aaa"

/* Whole files, with all that is wrong with them. */
static const char *const file_cases[] = {
        "",
        "x=1\n[fleet:a]\ncommand=run",
        "[fleet]\ncommand=run",
        "[fleet:a]\nmax_age=1d",
        "[fleet:a]\ncommand=''",
        "[fleet:a]\ncommand=a 'b",
        "[fleet:a]\ncommand=run\nframework=native\nheartbeat=file\nredis_url=redis://h",
        "[fleet:a]\ncommand=run\nframework=native\njob_warn_after=1h",
        "[fleet:a]\ncommand=run\nCommand=run",
        "[fleet:a]\ncommand=run\n[fleet:b]\ncommand=run\n[fleet:a]\ncommand=run",
        "[fleet:a]\ncommand=run\n[redis]\nurl=x\nurl=y",
        "[fleet:a]\ncommand=run\nactive_process_count=4\nmax_processes=4",
        "[fleet]\nmax_processes=4\n[fleet:a]\ncommand=run\nactive_process_count=5\nrestart_surge=0",
        "[fleet:a]\ncommand=run\nmemory_limit=1G\nmemory_threshold=2G",
        "[fleet:a]\ncommand=run\nstop_timeout=29s",
        "[fleet:a]\nstop_timeout=60s\ncommand=sidekiq -t 90",
        "[fleet]\nstop_timeout=60s\n[fleet:a]\ncommand=sh -c 'exec sidekiq -t 56'",
        "[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=h:0",
        "[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=h,",
        "[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=::1",
        "[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=h\nurl=unix:///run/redis.sock",
        "[fleet:a]\ncommand=run\nenvironment_file=env",
        "[redis]\npassword=a\npassword_file=/b\n[fleet:a]\ncommand=run",
        "[fleet:a]\ncommand=bin/jobs --mode async\nframework=solid_queue",
        "[fleet:a]\ncommand=bin/jobs --mode async\nframework=solid_queue\ndatabase_url=mysql2://u:secret@h/d",
        "[fleet:a]\ncommand=bin/jobs --mode async\nframework=solid_queue\ndatabase_url=sqlite3:/q.db\n"
        "database_url_file=/f\nredis_url=redis://h",
        "[fleet:a]\ncommand=good_job "
        "start\nframework=good_job\ndatabase_url=sqlite3:/q.db\nrescue_jobs=requeue",
        "[fleet:a]\ncommand=sidekiq\ndatabase_url=postgres://h/d\ndatabase_url_file=/f",
        "[sqmgr]\nsocket=/" A103 "\n[fleet:a]\ncommand=run",
        /* All at once, by line; a bad value has no further consequences. */
        "[fleet:a]\nstop_timeout=x\nactive_process_count=9\nmax_processes=9\n[nope]\nx=1\n[fleet:b]\n"
        "max_age=99",
#define RUN "[fleet:a]\ncommand=run\n"
        RUN "framework=solid_queue\nrollout_trial=1h",
        RUN "framework=good_job\nrollout_trial=1h",
        RUN "framework=plain\nrollout_trial=1h",
        RUN "framework=native\npreload=no",
        RUN "framework=rq\npreload=no",
        RUN "framework=resque\npreload=no",
        RUN "framework=plain\npreload=no",
        RUN "framework=plain\nnamespaced=yes",
        RUN "framework=native\nheartbeat=file\nnamespaced=yes",
        RUN "namespaced=yes\npreload=yes",
        "[fleet]\nnamespaced=yes\n" RUN "preload=yes",
        RUN "preload=true\nnamespaced=1",
        /* Keys that are gone. */
        "[fleet:a]\ncommand=run\nUser=app\ngroup=app",
        "[fleet:a]\ncommand=run\nUMask=022\nnice=5\ncpu_affinity=0\noom_score_adj=1\nlimit_as=1G\nlimit_core="
        "0\n"
        "limit_fsize=1G\nlimit_memlock=1G\nlimit_nofile=99\nlimit_nproc=99\nlimit_stack=8M",
};

TEST(collects_all_errors_by_line)
{
        golden_begin();
        for (size_t i = 0; i < ELEMENTSOF(file_cases); i++)
                add_refused_settings(&root_surroundings, file_cases[i], file_cases[i]);
        golden_end("settings-errors", "a file");
}

TEST(accepts_a_section_in_parts_and_a_count_without_surge)
{
        _cleanup_settings_ struct settings *s = read_good(
                "[fleet:a]\ncommand=run\n[fleet]\nrestart_surge=0\n[fleet:a]\nactive_process_count=3\n"
                "[fleet]\nmax_processes=3");

        ck_assert_uint_eq(s->n_fleets, 1);
        ck_assert_uint_eq(s->fleets[0]->active_process_count, 3);
        ck_assert_uint_eq(s->fleets[0]->max_processes, 3);
}

static const struct {
        const char *fleet;
        unsigned seconds;
} stop_timeouts[] = {
        {"command=sidekiq", 60},
        {"command=sidekiq -t 55", 60},
        {"command=sidekiq -t 56", 61},
        {"command=bundle exec sidekiq -t 90", 95},
        {"command=sidekiq -t 90\nstop_timeout=95s", 95},
        {"command=sidekiq -t 90\nstop_timeout=2min", 120},
        {"command=sidekiq\nstop_timeout=30s", 30},
        {"command=sidekiq -t 8\nstop_timeout=13s", 13},
};

TEST_LOOP(stop_timeout_follows_the_command_unless_it_is_set, ELEMENTSOF(stop_timeouts))
{
        char text[256];

        snprintf(text, sizeof(text), "[fleet:a]\n%s", stop_timeouts[_i].fleet);
        _cleanup_settings_ struct settings *s = read_good(text);
        ck_assert_uint_eq(s->fleets[0]->stop_timeout, stop_timeouts[_i].seconds * USEC_PER_SEC);
}

TEST(stop_timeout_may_be_none)
{
        static const char *const texts[] = {"[fleet:a]\ncommand=sidekiq -t 90\nstop_timeout=none",
                                            "[fleet:a]\nframework=plain\ncommand=run\nstop_timeout=none"};

        for (size_t i = 0; i < ELEMENTSOF(texts); i++) {
                _cleanup_settings_ struct settings *s = read_good(texts[i]);

                ck_assert_uint_eq(s->fleets[0]->stop_timeout, USEC_INFINITY);
                ck_assert(!s->fleets[0]->stop_bounded);
                _cleanup_free_ char *value = NULL;
                const struct settings_key *key = settings_key_find(SETTINGS_FLEET, "stop_timeout");
                ck_assert_int_ge(settings_value_text(key, s->fleets[0], &value), 0);
                ck_assert_str_eq(value, "none");
        }
}

static void assert_orders(const struct settings_surroundings *around, const char *lines, const char *path,
                          bool make_folder)
{
        struct settings_surroundings surroundings = *around;
        char text[256], *errors = NULL;

        surroundings.frameworks = framework_traits;
        snprintf(text, sizeof(text), "[sqmgr]\n%s\n[fleet:a]\ncommand=run", lines);
        _cleanup_settings_ struct settings *s = read_settings(&surroundings, text, &errors);
        ck_assert_ptr_nonnull(s);
        ck_assert_str_eq(s->orders_file, path);
        ck_assert_int_eq(s->orders_make_folder, make_folder);
}

TEST(orders_are_kept_in_the_directory_of_the_unit_or_of_the_user)
{
        const struct settings_surroundings unit = {.service_dir = "/run/sqmgr/shop:/run/other",
                                                   .state_dir = "/var/lib/sqmgr/shop:/var/lib/other",
                                                   .state_home = "/not/this"};
        const struct settings_surroundings user = {.runtime_dir = "/run/user/7", .home = "/home/shop"};
        const struct settings_surroundings set = {
                .runtime_dir = "/run/user/7", .home = "/home/shop", .state_home = "/kept"};
        const struct settings_surroundings homeless = {.runtime_dir = "/run/user/7", .home = "relative"};

        assert_orders(&unit, "", "/var/lib/sqmgr/shop/orders", true);
        assert_orders(&unit, "state_file=/disk/state", "/var/lib/sqmgr/shop/orders", true);
        assert_orders(&unit, "socket=/tmp/one.sock", "/var/lib/sqmgr/shop/orders", true);
        assert_orders(&user, "", "/home/shop/.local/state/sqmgr/orders", true);
        assert_orders(&set, "", "/kept/sqmgr/orders", true);
        /* The directory of the socket is made with another mode. */
        assert_orders(&set, "state_file=/disk/state", "/disk/state.orders", false);
        assert_orders(&set, "socket=/tmp/one.sock", "/tmp/state.orders", false);
        assert_orders(&homeless, "", "/run/user/7/sqmgr/state.orders", false);
}

TEST(takes_defaults_from_its_surroundings)
{
        const struct settings_surroundings user = {.frameworks = framework_traits,
                                                   .redis_url = "redis://outer:1/5",
                                                   .runtime_dir = "/run/user/7"};
        const struct settings_surroundings bare = {.frameworks = framework_traits, .redis_url = ""};
        const struct settings_surroundings bad = {
                .frameworks = framework_traits, .redis_url = "nonsense", .runtime_dir = "/r"};
        const struct settings_surroundings unit = {.frameworks = framework_traits,
                                                   .service_dir = "/run/sqmgr/shop:/run/other",
                                                   .runtime_dir = "/run/user/7"};
        const struct {
                const struct settings_surroundings *surroundings;
                const char *text, *socket, *state_file, *url;
        } cases[] = {
                {&user, "", "/run/user/7/sqmgr/control.sock", "/run/user/7/sqmgr/state", "redis://outer:1/5"},
                {&unit, "", "/run/sqmgr/shop/control.sock", "/run/sqmgr/shop/state",
                 "redis://127.0.0.1:6379/0"},
                {&user, "[redis]\nurl=redis://own\n", "/run/user/7/sqmgr/control.sock",
                 "/run/user/7/sqmgr/state", "redis://own"},
                {&bare, "[sqmgr]\nsocket=/s\n", "/s", "/state", "redis://127.0.0.1:6379/0"},
        };
        char *errors = NULL;

        for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
                char text[128];

                snprintf(text, sizeof(text), "%s[fleet:a]\ncommand=run", cases[i].text);
                _cleanup_settings_ struct settings *s = read_settings(cases[i].surroundings, text, &errors);
                ck_assert_ptr_nonnull(s);
                ck_assert_str_eq(s->socket, cases[i].socket);
                ck_assert_str_eq(s->state_file, cases[i].state_file);
                ck_assert_str_eq(s->redis.url, cases[i].url);
        }

        const struct settings_surroundings database = {
                .frameworks = framework_traits, .database_url = "postgres://u:p@h/d", .runtime_dir = "/r"};
        static const char of_database[] = "[fleet:a]\ncommand=good_job start\nframework=good_job";
        _cleanup_settings_ struct settings *good_job = read_settings(&database, of_database, &errors);
        ck_assert_ptr_nonnull(good_job);
        ck_assert_str_eq(settings_fleet_url(good_job, good_job->fleets[0]), "postgres://u:p@h/d");
        ck_assert(!fleet_settings_need_redis(good_job->fleets[0]));
        _cleanup_settings_ struct settings *sidekiq =
                read_settings(&database, "[fleet:a]\ncommand=sidekiq", &errors);
        ck_assert_ptr_null(sidekiq->fleets[0]->database_url);
        ck_assert(!fleet_settings_need_database(sidekiq->fleets[0]));

        const struct settings_surroundings bad_database = {
                .frameworks = framework_traits, .database_url = "sqlite3:x", .runtime_dir = "/r"};

        golden_begin();
        add_refused_settings(&bad_database, of_database, "a bad DATABASE_URL in the environment");
        add_refused_settings(&bare, "[fleet:a]\ncommand=run\nmemory_limit=25%", "nothing is known");
        add_refused_settings(&bare, "[sqmgr]\nsocket=s\n[fleet:a]\ncommand=run", "socket=s");
        add_refused_settings(&bad, "[fleet:a]\ncommand=run", "a bad REDIS_URL in the environment");
        golden_end("settings-errors", "surroundings");
}

TEST(warns_of_a_preset_that_a_framework_supersedes)
{
        static const char *const names[] = {"celery", "dramatiq"};

        golden_begin();

        for (size_t i = 0; i < ELEMENTSOF(names); i++) {
                _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
                _cleanup_settings_draft_ struct settings_draft *draft = NULL;

                ck_assert_int_eq(settings_draft_new(&root_surroundings, &errors, &warnings, &draft), 0);
                ck_assert_int_eq(settings_draft_section(draft, "fleet:a", 1), 0);
                ck_assert_int_eq(settings_draft_set(draft, "command", "run", 2), 0);
                ck_assert_int_eq(settings_draft_set(draft, "framework", "plain", 3), 0);
                ck_assert_int_eq(settings_draft_set(draft, "preset", names[i], 4), 0);
                ck_assert_int_eq(settings_draft_finish(draft), 0);
                _cleanup_free_ char *text = settings_errors_text(&warnings, "f");
                golden_add(names[i], *text ? text : "none\n");
        }
        golden_end("settings-errors", "presets");
}

TEST(knows_the_lines_of_keys)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;
        struct fleet_settings stranger = {0};

        ck_assert_int_eq(settings_draft_new(&root_surroundings, &errors, &warnings, &draft), 0);
        ck_assert_int_eq(settings_draft_section(draft, "fleet", 1), 0);
        ck_assert_int_eq(settings_draft_set(draft, "log", "journal", 2), 0);
        ck_assert_int_eq(settings_draft_section(draft, "fleet:a", 3), 0);
        ck_assert_int_eq(settings_draft_set(draft, "command", "run", 4), 0);
        ck_assert_int_eq(settings_draft_section(draft, "redis", 5), 0);
        ck_assert_int_eq(settings_draft_set(draft, "password_file", "/p", 6), 0);
        ck_assert_int_eq(settings_draft_finish(draft), 0);
        const struct fleet_settings *fleet = settings_draft_settings(draft)->fleets[0];
        ck_assert_uint_eq(settings_draft_line(draft, fleet, "log"), 2);
        ck_assert_uint_eq(settings_draft_line(draft, fleet, "command"), 4);
        ck_assert_uint_eq(settings_draft_line(draft, fleet, "directory"), 3);
        ck_assert_uint_eq(settings_draft_line(draft, NULL, "password_file"), 6);
        ck_assert_uint_eq(settings_draft_line(draft, NULL, "url"), 0);
        ck_assert_uint_eq(settings_draft_line(draft, &stranger, "log"), 0);
}

TEST(prints_what_it_can_read_again)
{
        _cleanup_settings_ struct settings *s = read_good(everything);
        _cleanup_free_ char *text = settings_print(s);

        ck_assert_ptr_nonnull(text);
        ck_assert_ptr_null(strstr(text, "secret"));
        ck_assert_ptr_null(strstr(text, "p w"));
        ck_assert_ptr_nonnull(strstr(text, "\npassword = ***\n"));
        ck_assert_ptr_nonnull(strstr(text, "\nredis_url = redis://***@h:1/2\n"));
        ck_assert_ptr_nonnull(strstr(text, "\n[fleet:B.c-d_1]\n"));
        ck_assert_ptr_nonnull(strstr(text, "\n# before_start: none\n"));

        /* Without blanks around the '=', as read_settings() has it. */
        for (char *p = text; (p = strstr(p, " = "));)
                memmove(p, p + 1, strlen(p)), memmove(p + 1, p + 2, strlen(p + 1));
        _cleanup_settings_ struct settings *again = read_good(text);
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];
                if (key->scope == SETTINGS_FLEET && !key->secret)
                        ck_assert_msg(settings_value_equal(key, s->fleets[0], again->fleets[0]), "%s",
                                      key->name);
                if (key->scope == SETTINGS_SQMGR)
                        ck_assert_msg(settings_value_equal(key, s, again), "%s", key->name);
        }
}

TEST(shows_signals_and_plain_secrets)
{
        struct fleet_settings fleet = {.stop_signal = 15, .redis_url = (char *)"nonsense"};
        _cleanup_free_ char *signal = NULL, *url = NULL;
        char why[SETTINGS_WHY_MAX];
        int r;

        ck_assert_int_eq(
                settings_value_text(settings_key_find(SETTINGS_FLEET, "stop_signal"), &fleet, &signal), 0);
        ck_assert_str_eq(signal, "TERM");
        ck_assert_int_eq(settings_value_text(settings_key_find(SETTINGS_FLEET, "redis_url"), &fleet, &url),
                         0);
        ck_assert_str_eq(url, "nonsense");
        r = settings_value_parse(settings_key_find(SETTINGS_FLEET, "stop_signal"), "HUP", &root_surroundings,
                                 &fleet, why);
        ck_assert_int_eq(r, 0);
        ck_assert_int_eq(fleet.stop_signal, 1);
        r = settings_value_parse(settings_key_find(SETTINGS_FLEET, "stop_signal"), "BANG", &root_surroundings,
                                 &fleet, why);
        ck_assert_int_eq(r, -EINVAL);
        golden_expect("settings-errors", "a signal", why);
}

/* What 0 means is the key's to say, not its type's. */
TEST(shows_what_is_unset_by_the_key)
{
        static const struct {
                const char *name, *text;
        } keys[] = {
                {"active_process_count", "0"}, {"heartbeat", NULL},   {"max_processes", NULL},
                {"max_age", "none"},           {"stop_signal", NULL},
        };
        struct fleet_settings fleet = {0};

        settings_values_clear(true, &fleet);
        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                const struct settings_key *key = settings_key_find(SETTINGS_FLEET, keys[i].name);
                _cleanup_free_ char *text = NULL;

                ck_assert_int_eq(settings_value_text(key, &fleet, &text), 0);
                ck_assert_pstr_eq(text, keys[i].text);
        }
        ck_assert_int_eq(fleet.heartbeat, HEARTBEAT_UNSET);
}

TEST(says_when_errors_were_lost)
{
        _cleanup_settings_errors_ struct settings_errors errors = {.lost = true};

        settings_errors_add(&errors, 3, "a\nb %d", 7);
        settings_errors_add(&errors, 0, "whole");
        _cleanup_free_ char *text = settings_errors_text(&errors, "f");
        golden_expect("settings-errors", "errors that were lost", text);
        ck_assert(settings_errors_any(&errors));
}

/* Reads, prints, compares and merges, without an assertion, since these allocate too. Returns 1, or -errno.
 */
static int use_settings(void)
{
        static const char *const pairs[][2] = {{"socket_group", "g"},
                                               {"[redis", ""},
                                               {"[fleet", ""},
                                               {"directory", "/app"},
                                               {"[fleet:a", ""},
                                               {"command", "run 'this that' x"},
                                               {"environment", "A=1 B=2"},
                                               {"redis_url", "redis://u:p@h"},
                                               {"[fleet:b", ""},
                                               {"command", "run"},
                                               {"memory_limit", "1G"},
                                               {"max_processes", "7"}};
        const struct settings_surroundings surroundings = {
                .frameworks = framework_traits, .user = "root", .redis_url = "redis://outer"};
        _cleanup_settings_errors_ struct settings_errors errors = {0}, warnings = {0};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;
        _cleanup_settings_ struct settings *settings = NULL, *merged = NULL;

        int r = settings_draft_new(&surroundings, &errors, &warnings, &draft);
        if (r == 0)
                r = settings_draft_section(draft, "sqmgr", 1);
        for (unsigned i = 0; i < ELEMENTSOF(pairs) && r == 0; i++)
                r = pairs[i][0][0] == '[' ? settings_draft_section(draft, pairs[i][0] + 1, i + 2)
                                          : settings_draft_set(draft, pairs[i][0], pairs[i][1], i + 2);
        if (r == 0)
                r = settings_draft_finish(draft);
        if (r < 0)
                return r;
        if (settings_errors_any(&errors))
                return errors.lost ? -ENOMEM : -EINVAL;
        settings = settings_draft_take(draft);

        settings_errors_add(&errors, 1, "an error");
        _cleanup_free_ char *reported = settings_errors_text(&errors, "f"),
                            *printed = settings_print(settings);
        if (errors.lost || !reported || !printed)
                return -ENOMEM;
        r = settings_merge(settings, settings, &merged);
        if (r < 0)
                return r;

        struct fleet_settings *fleet = merged->fleets[1];
        free(fleet->directory);
        fleet->directory = NULL;
        char text[NOTES_MAX] = "";
        r = settings_diff(settings, merged, note_change, text);
        if (r < 0)
                return r;
        return strcmp(text, "fleet:b directory: /app -> sqmgr's own (outdates)\n") == 0 ? 1 : -EINVAL;
}

TEST(survives_a_failure_of_each_allocation)
{
        int n = 0, refused = 0;
        bool failed;

        do {
                allocations_left = n++;
                int r = use_settings();
                failed = allocations_left < 0;
                allocations_left = -1;
                ck_assert_msg(r == 1 || (failed && r == -ENOMEM), "allocation %d: %d", n, r);
                refused += r < 0;
        } while (failed);
        ck_assert_int_gt(refused, 100);
        /* Only hiding a URL's password knows a way without memory. */
        ck_assert_int_le(n - refused, 20);
}

TEST(frees_nothing)
{
        ck_assert_ptr_null(settings_free(NULL));
        ck_assert_ptr_null(fleet_settings_free(NULL));
        ck_assert_ptr_null(settings_draft_free(NULL));
}

TEST_MAIN("settings")
