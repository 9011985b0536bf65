/* SPDX-License-Identifier: MIT */
/* Tests of the settings: the table of keys, reading into a draft, checks and printing. */
/* promises: P10 */
#include "base/parse.h"
#include "config.h"
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

static void assert_errors(const struct settings_surroundings *surroundings, const char *text,
                          const char *expected)
{
        _cleanup_free_ char *errors = NULL;
        _cleanup_settings_ struct settings *settings = read_settings(surroundings, text, &errors);

        ck_assert_msg(!settings, "accepted: %s", text);
        ck_assert_str_eq(errors, expected);
}

TEST(table_is_in_order)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                const struct settings_key *key = &settings_keys[i];

                ck_assert_ptr_eq(settings_key_find(key->scope, key->name), key);
                ck_assert_msg(i == 0 || key->scope >= settings_keys[i - 1].scope, "%s", key->name);
                ck_assert_msg((!key->fallback) != (!key->unset), "%s", key->name);
                ck_assert_msg(!key->unset_value || key->unset, "%s", key->name);
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

TEST(has_defaults)
{
        _cleanup_settings_ struct settings *s = read_good("[fleet:a]\ncommand=run me");
        const struct fleet_settings *f = s->fleets[0];

        ck_assert_str_eq(s->socket, "/run/sqmgr/control.sock");
        ck_assert_str_eq(s->state_file, "/run/sqmgr/state");
        ck_assert_uint_eq(s->socket_mode, 0660);
        ck_assert_ptr_null(s->socket_group);
        ck_assert_uint_eq(s->check_interval, 5 * USEC_PER_SEC);
        ck_assert_int_eq(s->log_level, LOG_INFO);
        ck_assert_uint_eq(s->shutdown_timeout, 60 * USEC_PER_SEC);
        ck_assert_int_eq(s->on_stop, ON_STOP_DRAIN);
        ck_assert_str_eq(s->redis.url, "redis://127.0.0.1:6379/0");
        ck_assert_uint_eq(s->redis.connect_timeout, USEC_PER_SEC);
        ck_assert_uint_eq(s->redis.command_timeout, USEC_PER_SEC);
        ck_assert_uint_eq(s->n_fleets, 1);
        ck_assert_str_eq(f->name, "a");
        ck_assert_uint_eq(f->line, 1);
        ck_assert_str_eq(f->argv[1], "me");
        ck_assert_ptr_null(f->environment_list);
        ck_assert_ptr_eq(f->traits, &sidekiq_traits);
        ck_assert_uint_eq(f->umask, SETTINGS_UMASK_UNSET);
        ck_assert_int_eq(f->nice, SETTINGS_NICE_UNSET);
        ck_assert_int_eq(f->oom_score_adj, 0);
        ck_assert_ptr_null(f->limit_nofile);
        ck_assert_ptr_null(f->limit_core);
        ck_assert_ptr_null(f->cpu_affinity);
        ck_assert_str_eq(f->log, "inherit");
        ck_assert_ptr_null(f->redis_url);
        ck_assert_uint_eq(f->active_process_count, 1);
        ck_assert_uint_eq(f->max_processes, 0);
        ck_assert_uint_eq(f->restart_surge.value, 100);
        ck_assert(f->restart_surge.percent);
        ck_assert_uint_eq(f->ready_after, 30 * USEC_PER_SEC);
        ck_assert_uint_eq(f->boot_timeout, 120 * USEC_PER_SEC);
        ck_assert_uint_eq(f->rollout_timeout, 10 * USEC_PER_MIN);
        ck_assert_uint_eq(f->memory_threshold, 0);
        ck_assert_uint_eq(f->memory_limit, 0);
        ck_assert_int_eq(f->memory_metric, MEMORY_RSS);
        ck_assert_uint_eq(f->max_age, 0);
        ck_assert_uint_eq(f->drain_timeout, 0);
        ck_assert_uint_eq(f->stop_timeout, 60 * USEC_PER_SEC);
        ck_assert_int_eq(f->stop_signal, 0);
        ck_assert_uint_eq(f->backoff_min, USEC_PER_SEC);
        ck_assert_uint_eq(f->backoff_max, 60 * USEC_PER_SEC);
}

static const char everything[] =
        "[sqmgr]\n"
        "SOCKET=/tmp/s/c.sock\nSocket_Mode=0600\nsocket_group=ops\nstate_file=/var/x\n"
        "check_interval=250ms\nlog_level=DEBUG\nshutdown_timeout=0s\non_stop=leave\n"
        "[Redis]\n"
        "url=unix:///run/r.sock?db=3\nusername=u\npassword=p w\nnamespace=ns\n"
        "connect_timeout=2s\ncommand_timeout=300ms\n"
        "[fleet]\n"
        "ACTIVE_PROCESS_COUNT=4\nuser=app\nmemory_threshold=25%\nnice=5\n"
        "[fleet:a]\n"
        "command=/bin/sh -c 'exec \"$0\"; x'\nframework=Sidekiq\ndirectory=/srv\ngroup=g\n"
        "environment=A=1 B='x y' C=\nenvironment_file=env\numask=0027\noom_score_adj=-5\n"
        "limit_nofile=1024\nlog=/var/log/a.log\nredis_url=redis://u:secret@h:1/2\n"
        "max_processes=9\nrestart_surge=2\nready_after=0s\nboot_timeout=1min\n"
        "rollout_timeout=1h\nmemory_limit=3G\nmemory_metric=pss\nmax_age=1d\n"
        "drain_timeout=2h\nstop_timeout=30s\nbackoff_min=2s\nbackoff_max=2s\n"
        "[fleet:B.c-d_1]\n"
        "command=run\nactive_process_count=2\nmemory_threshold=none\nnice=-20\nlog=journal\n"
        "restart_surge=0%\nmax_processes=2\n";

TEST(reads_every_key)
{
        _cleanup_settings_ struct settings *s = read_good(everything);
        const struct fleet_settings *a = settings_find_fleet(s, "a"), *b = settings_find_fleet(s, "B.c-d_1");

        ck_assert_str_eq(s->socket, "/tmp/s/c.sock");
        ck_assert_uint_eq(s->socket_mode, 0600);
        ck_assert_str_eq(s->socket_group, "ops");
        ck_assert_str_eq(s->state_file, "/var/x");
        ck_assert_uint_eq(s->check_interval, 250 * USEC_PER_MSEC);
        ck_assert_int_eq(s->log_level, LOG_DEBUG);
        ck_assert_uint_eq(s->shutdown_timeout, 0);
        ck_assert_int_eq(s->on_stop, ON_STOP_LEAVE);
        ck_assert_str_eq(s->redis.url, "unix:///run/r.sock?db=3");
        ck_assert_str_eq(s->redis.username, "u");
        ck_assert_str_eq(s->redis.password, "p w");
        ck_assert_str_eq(s->redis.namespace, "ns");
        ck_assert_uint_eq(s->redis.connect_timeout, 2 * USEC_PER_SEC);
        ck_assert_uint_eq(s->redis.command_timeout, 300 * USEC_PER_MSEC);

        ck_assert_uint_eq(s->n_fleets, 2);
        ck_assert_ptr_eq(s->fleets[0], a);
        ck_assert_uint_eq(a->line, 22);
        ck_assert_str_eq(a->argv[2], "exec \"$0\"; x");
        ck_assert_str_eq(a->directory, "/srv");
        ck_assert_str_eq(a->user, "app");
        ck_assert_str_eq(a->group, "g");
        ck_assert_str_eq(a->environment_list[1], "B=x y");
        ck_assert_str_eq(a->environment_list[2], "C=");
        ck_assert_str_eq(a->environment_file, "env");
        ck_assert_uint_eq(a->umask, 027);
        ck_assert_int_eq(a->nice, 5);
        ck_assert_int_eq(a->oom_score_adj, -5);
        ck_assert_str_eq(a->limit_nofile, "1024");
        ck_assert_str_eq(a->log, "/var/log/a.log");
        ck_assert_str_eq(a->redis_url, "redis://u:secret@h:1/2");
        ck_assert_uint_eq(a->active_process_count, 4);
        ck_assert_uint_eq(a->max_processes, 9);
        ck_assert_uint_eq(a->restart_surge.value, 2);
        ck_assert(!a->restart_surge.percent);
        ck_assert_uint_eq(a->ready_after, 0);
        ck_assert_uint_eq(a->boot_timeout, USEC_PER_MIN);
        ck_assert_uint_eq(a->rollout_timeout, USEC_PER_HOUR);
        ck_assert_uint_eq(a->memory_threshold, 2 * GIB);
        ck_assert_uint_eq(a->memory_limit, 3 * GIB);
        ck_assert_int_eq(a->memory_metric, MEMORY_PSS);
        ck_assert_uint_eq(a->max_age, USEC_PER_DAY);
        ck_assert_uint_eq(a->drain_timeout, 2 * USEC_PER_HOUR);
        ck_assert_uint_eq(a->stop_timeout, 30 * USEC_PER_SEC);
        ck_assert_uint_eq(a->backoff_min, 2 * USEC_PER_SEC);
        ck_assert_uint_eq(a->backoff_max, 2 * USEC_PER_SEC);

        ck_assert_uint_eq(b->active_process_count, 2);
        ck_assert_uint_eq(b->memory_threshold, 0);
        ck_assert_str_eq(b->user, "app");
        ck_assert_int_eq(b->nice, -20);
        ck_assert_str_eq(b->log, "journal");
        ck_assert_ptr_null(settings_find_fleet(s, "c"));
}

/* One bad line in an otherwise good file: `section`, then on line 2 the key, and the error. */
static const struct {
        const char *section, *pair, *error;
} line_cases[] = {
#define COUNT_ERROR "must be a number from 0 to 10000"
        {"fleet:a", "active_process_count=10001", "active_process_count = 10001: " COUNT_ERROR},
        {"fleet:a", "active_process_count=-1", "active_process_count = -1: " COUNT_ERROR},
        {"fleet:a", "active_process_count=four", "active_process_count = four: " COUNT_ERROR},
        {"fleet:a",
         "active_process_count=", "'active_process_count' is empty: give it a value, or leave the line out"},
        {"fleet:a", "max_processes=0", "max_processes = 0: must be a number from 1 to 30000"},
        {"fleet:a", "nice=20", "nice = 20: must be a number from -20 to 19"},
        {"fleet:a", "oom_score_adj=1001", "oom_score_adj = 1001: must be a number from -1000 to 1000"},
#define LIMIT_ERROR "must be a number from 16, infinity, or the soft and the hard limit: 1024:65536"
#define SIZE_ERROR  "must be a size (512M), infinity, or the soft and the hard limit: 0:infinity"
        {"fleet:a", "limit_nofile=1", "limit_nofile = 1: " LIMIT_ERROR},
        {"fleet:a", "limit_nofile=4096:1024", "limit_nofile = 4096:1024: " LIMIT_ERROR},
        {"fleet:a", "limit_nofile=1K", "limit_nofile = 1K: " LIMIT_ERROR},
        {"fleet:a", "limit_nofile=64:", "limit_nofile = 64:: " LIMIT_ERROR},
        {"fleet:a", "limit_nofile=infinity:64", "limit_nofile = infinity:64: " LIMIT_ERROR},
        {"fleet:a", "limit_core=none", "limit_core = none: " SIZE_ERROR},
        {"fleet:a", "limit_core=25%", "limit_core = 25%: " SIZE_ERROR},
        {"fleet:a", "limit_core=-1", "limit_core = -1: " SIZE_ERROR},
        {"fleet:a", "limit_core=18446744073709551615", "limit_core = 18446744073709551615: " SIZE_ERROR},
#define CPUS_ERROR "must be numbers or ranges of processors, below 1024: 0-3 5"
        {"fleet:a", "cpu_affinity=all", "cpu_affinity = all: " CPUS_ERROR},
        {"fleet:a", "cpu_affinity=3-1", "cpu_affinity = 3-1: " CPUS_ERROR},
        {"fleet:a", "cpu_affinity=1024", "cpu_affinity = 1024: " CPUS_ERROR},
        {"fleet:a", "cpu_affinity=1-", "cpu_affinity = 1-: " CPUS_ERROR},
        {"fleet:a", "cpu_affinity=,", "cpu_affinity = ,: " CPUS_ERROR},
        {"fleet:a", "umask=0888", "umask = 0888: must be an octal number from 0 to 0777 (0027)"},
        {"sqmgr", "socket_mode=rw", "socket_mode = rw: must be an octal number from 0 to 0777 (0027)"},
        {"sqmgr", "socket=run/s",
         "socket = run/s: must be an absolute path, without quotes: it begins with '/'"},
        {"fleet:a", "directory=\"/srv\"",
         "directory = \"/srv\": must be an absolute path, without quotes: it begins with '/'"},
        {"redis", "queue_warn_size=100 low",
         "queue_warn_size = 100 low: 'low' must be none, or a whole number (1000)"},
        {"redis", "queue_warn_latency=low=5",
         "queue_warn_latency = low=5: '5' must be none, or a duration (90s)"},
        {"sqmgr", "log_level=loud", "log_level = loud: must be one of debug, info, notice, warning, error"},
        {"sqmgr", "on_stop=kill", "on_stop = kill: must be one of drain, leave"},
        {"sqmgr", "check_interval=5",
         "check_interval = 5: must be a number with ms, s, min, h or d (10s, 1h 30min)"},
        {"sqmgr", "check_interval=1ms", "check_interval = 1ms: must be from 100ms to 1h"},
        {"sqmgr", "check_interval=99999999999999d",
         "check_interval = 99999999999999d: must be from 100ms to 1h"},
        {"sqmgr", "check_interval=none",
         "check_interval = none: must be a number with ms, s, min, h or d (10s, 1h 30min)"},
        {"fleet:a", "max_age=7",
         "max_age = 7: must be none, or a number with ms, s, min, h or d (10s, 1h 30min)"},
        {"fleet:a", "max_age=1ms", "max_age = 1ms: must be none, or from 1s to 3650d"},
        {"fleet:a", "memory_threshold=5X",
         "memory_threshold = 5X: must be none, or a number of bytes, also with K, M, G or T (512M), or a "
         "share of the "
         "memory (25%)"},
        {"fleet:a", "memory_threshold=512",
         "memory_threshold = 512: must be from 1M to 1024T, or from 1% to 100%: is the unit (512M) missing?"},
        {"fleet:a", "memory_limit=200%",
         "memory_limit = 200%: must be from 1M to 1024T, or from 1% to 100%: is the unit (512M) missing?"},
        {"fleet:a", "memory_metric=uss", "memory_metric = uss: must be one of rss, pss"},
#define SURGE_ERROR "must be a number of workers (2) or a share of the count (50%), at most 10000"
        {"fleet:a", "restart_surge=-1", "restart_surge = -1: " SURGE_ERROR},
        {"fleet:a", "restart_surge=%", "restart_surge = %: " SURGE_ERROR},
        {"fleet:a", "restart_surge=5%%", "restart_surge = 5%%: " SURGE_ERROR},
        {"fleet:a", "restart_surge=10001", "restart_surge = 10001: " SURGE_ERROR},
        {"fleet:a", "restart_surge=1111111111111111111111111%",
         "restart_surge = 1111111111111111111111111%: " SURGE_ERROR},
        {"fleet:a", "log=journald",
         "log = journald: must be inherit, journal, or an absolute path: it begins with '/'"},
        {"fleet:a", "framework=celery",
         "framework = celery: must be one of sidekiq, native, rq, resque, plain"},
        {"fleet:a", "stop_signal=TERM",
         "fleet 'a': 'stop_signal' is for framework 'plain' only, and this is 'sidekiq'"},
        {"fleet:a", "preset=puma",
         "fleet 'a': 'preset' is for framework 'plain' only, and this is 'sidekiq'"},
        {"fleet:a", "heartbeat=redis",
         "fleet 'a': 'heartbeat' is for framework 'native' only, and this is 'sidekiq'"},
        {"fleet:a", "rescue_jobs=requeue\nframework=resque",
         "fleet 'a': 'rescue_jobs' is for workers whose jobs can be put back only, and this is 'resque'"},
        {"fleet:a", "environment=A",
         "environment: word 1 has no '=': write K=V, a value with spaces as K='a b'"},
        {"fleet:a", "environment=A=1 B C=2",
         "environment: word 2 has no '=': write K=V, a value with spaces as K='a b'"},
        {"fleet:a", "environment=1A=1",
         "environment: word 1: a name has letters, digits and '_', and no digit first"},
        {"fleet:a", "environment=A-B=1",
         "environment: word 1: a name has letters, digits and '_', and no digit first"},
        {"fleet:a", "environment==1",
         "environment: word 1: a name has letters, digits and '_', and no digit first"},
        {"fleet:a", "environment=A='1",
         "environment: a single quote is not closed: add the missing ', or write \\' for the "
         "character itself"},
        {"redis", "url=http://h",
         "url: not the URL of a Redis: it must begin with redis://, rediss:// or unix://"},
        {"redis", "url=redis://user:secret@h:99999",
         "url: not the URL of a Redis: the port must be a number from 1 to 65535"},
#if !HAVE_TLS
        {"redis", "url=rediss://h",
         "url: rediss:// (TLS) is not supported by this build, whose hiredis has none: write redis:// or "
         "unix://"},
        {"fleet:a", "redis_url=rediss://h",
         "redis_url: rediss:// (TLS) is not supported by this build, whose hiredis has none: write redis:// "
         "or unix://"},
#define NO_TLS "TLS is not supported by this build, whose hiredis has none"
        {"redis", "tls_ca_file=/ca", "'tls_ca_file': " NO_TLS},
        {"redis", "tls_cert_file=/cert", "'tls_cert_file': " NO_TLS},
        {"redis", "tls_key_file=/key", "'tls_key_file': " NO_TLS},
#else
        {"redis", "tls_ca_file=ca",
         "tls_ca_file = ca: must be an absolute path, without quotes: it begins with '/'"},
        {"redis", "tls_cert_file=/cert",
         "tls_cert_file is given without tls_key_file: a certificate needs its key"},
        {"redis", "tls_key_file=/key",
         "tls_key_file is given without tls_cert_file: a certificate needs its key"},
#endif
        {"redis", "sentinels=h:1",
         "sentinels is given without master_name: add the name that they know the "
         "master by"},
        {"redis", "master_name=m", "master_name is given without sentinels: add them, or leave it out"},
        {"redis", "sentinel_password=hush",
         "sentinel_password is given without sentinels: add them, or leave it out"},
        {"redis", "username=u", "username is given without a password: add password or password_file"},

        {"fleet:a", "memory_treshold=1G", "unknown key 'memory_treshold', did you mean 'memory_threshold'?"},
        {"fleet:a", "Memory-Thresholds=1G",
         "unknown key 'Memory-Thresholds', did you mean 'memory_threshold'?"},
        {"redis", "uri=x", "unknown key 'uri', did you mean 'url'?"},
        {"fleet:a", "colour=red", "unknown key 'colour': section [fleet] has none like it, see sqmgr.ini(5)"},
        {"sqmgr", "user=x", "unknown key 'user' in section [sqmgr]: it belongs in [fleet] or [fleet:NAME]"},
        {"fleet:a", "url=x", "unknown key 'url' in section [fleet]: it belongs in [redis]"},
        {"sqmrg", "socket=/x", "!unknown section [sqmrg], did you mean '[sqmgr]'?"},
        {"sidekiq", "x=y",
         "!unknown section [sidekiq]: there are [sqmgr], [redis], [fleet] and [fleet:NAME]"},
        {"fleet:a b", "x=y",
         "![fleet:a b]: the name of a fleet must consist of letters, digits, '_', '.' and '-'"},
        {"fleet:", "x=y", "![fleet:]: the name of a fleet must consist of letters, digits, '_', '.' and '-'"},
        {"fleet:abcdefghijabcdefghijabcdefghijabcdefghij1", "x=y",
         "![fleet:abcdefghijabcdefghijabcdefghijabcdefghij1]: the name of a fleet must be at most 40 letters "
         "long"},
};

TEST_LOOP(names_the_line_and_what_would_be_right, ELEMENTSOF(line_cases))
{
        char text[512], expected[512];
        const char *error = line_cases[_i].error;
        unsigned line = 2;

        /* What is wrong with the section itself is told of its line. */
        if (*error == '!') {
                error++;
                line = 1;
        }
        snprintf(text, sizeof(text), "[%s]\n%s\n[fleet:a]\ncommand=run", line_cases[_i].section,
                 line_cases[_i].pair);
        snprintf(expected, sizeof(expected), "f:%u: %s\n", line, error);
        assert_errors(&root_surroundings, text, expected);
}

#define A50  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
#define A103 A50 A50 "aaa"

/* Whole files, and all that is wrong with them. */
static const struct {
        const char *text, *errors;
} file_cases[] = {
        {"", "f: there is no fleet: add a section [fleet:NAME] with its command\n"},
        {"x=1\n[fleet:a]\ncommand=run",
         "f:1: 'x' stands before any section: put [sqmgr], [redis] or [fleet:NAME] above it\n"},
        {"[fleet]\ncommand=run", "f: there is no fleet: add a section [fleet:NAME] with its command\n"},
        {"[fleet:a]\nuser=x", "f:1: fleet 'a' has no command: add 'command = ...', what starts one worker, "
                              "in the foreground; split into "
                              "words without a shell\n"},
        {"[fleet:a]\ncommand=''",
         "f:2: command = '': it names no program: write the program, then its arguments\n"},
        {"[fleet:a]\ncommand=a 'b", "f:2: command = a 'b: a single quote is not closed: add the missing ', "
                                    "or write \\' for the character itself\n"},
        {"[fleet:a]\ncommand=run\nframework=native\nheartbeat=file\nredis_url=redis://h",
         "f:5: fleet 'a': 'redis_url' is for heartbeats in Redis only, and this is 'native'\n"},
        {"[fleet:a]\ncommand=run\nCommand=run",
         "f:3: 'command' is given twice in this section: first on line 2\n"},
        {"[fleet:a]\ncommand=run\n[fleet:b]\ncommand=run\n[fleet:a]\ncommand=run",
         "f:6: 'command' is given twice in this section: first on line 2\n"},
        {"[fleet:a]\ncommand=run\n[redis]\nurl=x\nurl=y",
         "f:4: url: not the URL of a Redis: it must begin with redis://, rediss:// or unix://\n"
         "f:5: 'url' is given twice in this section: first on line 4\n"},
        {"[fleet:a]\ncommand=run\nactive_process_count=4\nmax_processes=4",
         "f:4: fleet 'a': max_processes = 4 must exceed active_process_count = 4, since a replacement runs "
         "beside the "
         "worker it replaces; or set restart_surge = 0\n"},
        {"[fleet]\nmax_processes=4\n[fleet:a]\ncommand=run\nactive_process_count=5\nrestart_surge=0",
         "f:2: fleet 'a': max_processes = 4 must not be below active_process_count = 5\n"},
        {"[fleet:a]\ncommand=run\nmemory_limit=1G\nmemory_threshold=2G",
         "f:3: fleet 'a': memory_limit = 1G must not be below memory_threshold = 2G\n"},
        {"[fleet:a]\ncommand=run\nstop_timeout=29s",
         "f:3: fleet 'a': stop_timeout = 29s must be at least 30s, or workers are killed while sidekiq still "
         "saves its "
         "jobs\n"},
        {"[fleet:a]\nstop_timeout=60s\ncommand=sidekiq -t 90",
         "f:2: fleet 'a': stop_timeout = 1min must be at least 95s, or workers are killed while sidekiq "
         "still saves its jobs\n"},
        {"[fleet]\nstop_timeout=60s\n[fleet:a]\ncommand=sh -c 'exec sidekiq -t 56'",
         "f:2: fleet 'a': stop_timeout = 1min must be at least 61s, or workers are killed while sidekiq "
         "still saves its jobs\n"},
#define SENTINELS                                                                                            \
        "must be 'host:port, host:port': names or addresses, IPv6 ones in [], and ports from 1 to 65535\n"
        {"[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=h:0", "f:5: sentinels = h:0: " SENTINELS},
        {"[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=h,", "f:5: sentinels = h,: " SENTINELS},
        {"[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=::1", "f:5: sentinels = ::1: " SENTINELS},
        {"[fleet:a]\ncommand=run\n[redis]\nmaster_name=m\nsentinels=h\nurl=unix:///run/redis.sock",
         "f:5: sentinels name a server that is reached over the network: url must not be a unix:// one\n"},
        {"[fleet:a]\ncommand=run\nbackoff_min=2min",
         "f:3: fleet 'a': backoff_max = 1min must not be below backoff_min = 2min\n"},
        {"[fleet:a]\ncommand=run\nenvironment_file=env",
         "f:3: fleet 'a': environment_file = env must be an absolute path, or 'directory' be set, below "
         "which it is "
         "looked for\n"},
        {"[redis]\npassword=a\npassword_file=/b\n[fleet:a]\ncommand=run",
         "f:3: password and password_file are both given: leave one of them out\n"},
        {"[sqmgr]\nsocket=/" A103 "\n[fleet:a]\ncommand=run",
         "f:2: socket = /" A103 ": the path of the socket has at most 103 bytes\n"},
        /* All at once, by line; a bad value has no further consequences. */
        {"[fleet:a]\nstop_timeout=x\nactive_process_count=9\nmax_processes=9\n[nope]\nx=1\n[fleet:b]\nnice="
         "99",
         "f:1: fleet 'a' has no command: add 'command = ...', what starts one worker, in the foreground; "
         "split into "
         "words without a shell\n"
         "f:2: stop_timeout = x: must be a number with ms, s, min, h or d (10s, 1h 30min)\n"
         "f:4: fleet 'a': max_processes = 9 must exceed active_process_count = 9, since a replacement runs "
         "beside the "
         "worker it replaces; or set restart_surge = 0\n"
         "f:5: unknown section [nope]: there are [sqmgr], [redis], [fleet] and [fleet:NAME]\n"
         "f:7: fleet 'b' has no command: add 'command = ...', what starts one worker, in the foreground; "
         "split into "
         "words without a shell\n"
         "f:8: nice = 99: must be a number from -20 to 19\n"},
};

TEST_LOOP(collects_all_errors_by_line, ELEMENTSOF(file_cases))
{
        assert_errors(&root_surroundings, file_cases[_i].text, file_cases[_i].errors);
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

TEST(takes_defaults_from_its_surroundings)
{
        const struct settings_surroundings user = {.frameworks = framework_traits,
                                                   .redis_url = "redis://outer:1/5",
                                                   .runtime_dir = "/run/user/7"};
        const struct settings_surroundings bare = {.frameworks = framework_traits, .redis_url = ""};
        const struct settings_surroundings bad = {
                .frameworks = framework_traits, .redis_url = "nonsense", .runtime_dir = "/r"};
        char *errors = NULL;
        _cleanup_settings_ struct settings *s = read_settings(&user, "[fleet:a]\ncommand=run", &errors);
        ck_assert_ptr_nonnull(s);
        ck_assert_str_eq(s->socket, "/run/user/7/sqmgr/control.sock");
        ck_assert_str_eq(s->state_file, "/run/user/7/sqmgr/state");
        ck_assert_str_eq(s->redis.url, "redis://outer:1/5");

        const struct settings_surroundings unit = {.frameworks = framework_traits,
                                                   .is_root = true,
                                                   .service_dir = "/run/sqmgr/shop:/run/other",
                                                   .runtime_dir = "/run/user/7"};
        _cleanup_settings_ struct settings *service = read_settings(&unit, "[fleet:a]\ncommand=run", &errors);
        ck_assert_ptr_nonnull(service);
        ck_assert_str_eq(service->socket, "/run/sqmgr/shop/control.sock");
        ck_assert_str_eq(service->state_file, "/run/sqmgr/shop/state");

        ck_assert_ptr_null(service->alert_user);
        _cleanup_settings_ struct settings *alert =
                read_settings(&unit, "[sqmgr]\nalert_command=mail\n[fleet:a]\ncommand=run", &errors);
        ck_assert_ptr_nonnull(alert);
        ck_assert_str_eq(alert->alert_user, "sqmgr");
        ck_assert_int_eq(alert->alert_level, LOG_WARNING);
        _cleanup_settings_ struct settings *alert_as_user =
                read_settings(&user, "[sqmgr]\nalert_command=mail\n[fleet:a]\ncommand=run", &errors);
        ck_assert_ptr_nonnull(alert_as_user);
        ck_assert_ptr_null(alert_as_user->alert_user);

        _cleanup_settings_ struct settings *own =
                read_settings(&user, "[redis]\nurl=redis://own\n[fleet:a]\ncommand=run", &errors);
        ck_assert_ptr_nonnull(own);
        ck_assert_str_eq(own->redis.url, "redis://own");

        _cleanup_settings_ struct settings *set =
                read_settings(&bare, "[sqmgr]\nsocket=/s\n[fleet:a]\ncommand=run", &errors);
        ck_assert_ptr_nonnull(set);
        ck_assert_str_eq(set->state_file, "/state");
        ck_assert_str_eq(set->redis.url, "redis://127.0.0.1:6379/0");

        assert_errors(&bare, "[fleet:a]\ncommand=run\nmemory_limit=25%",
                      "f: socket is not set in section [sqmgr], and XDG_RUNTIME_DIR, below which it would "
                      "be, is not set "
                      "either: set one of them\n"
                      "f:3: memory_limit = 25%: a share is not possible, the machine's memory is not known: "
                      "write a size "
                      "(512M)\n");
        assert_errors(&bare, "[sqmgr]\nsocket=s\n[fleet:a]\ncommand=run",
                      "f:2: socket = s: must be an absolute path, without quotes: it begins with '/'\n");
        assert_errors(&bad, "[fleet:a]\ncommand=run",
                      "f: REDIS_URL in the environment: not the URL of a Redis: it must begin with redis://, "
                      "rediss:// or "
                      "unix://; or set url in section [redis]\n");
}

TEST(knows_the_lines_of_keys)
{
        _cleanup_settings_errors_ struct settings_errors errors = {0};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;
        struct fleet_settings stranger = {0};

        ck_assert_int_eq(settings_draft_new(&root_surroundings, &errors, &draft), 0);
        ck_assert_int_eq(settings_draft_section(draft, "fleet", 1), 0);
        ck_assert_int_eq(settings_draft_set(draft, "user", "u", 2), 0);
        ck_assert_int_eq(settings_draft_section(draft, "fleet:a", 3), 0);
        ck_assert_int_eq(settings_draft_set(draft, "command", "run", 4), 0);
        ck_assert_int_eq(settings_draft_section(draft, "redis", 5), 0);
        ck_assert_int_eq(settings_draft_set(draft, "password_file", "/p", 6), 0);
        ck_assert_int_eq(settings_draft_finish(draft), 0);
        const struct fleet_settings *fleet = settings_draft_settings(draft)->fleets[0];
        ck_assert_uint_eq(settings_draft_line(draft, fleet, "user"), 2);
        ck_assert_uint_eq(settings_draft_line(draft, fleet, "command"), 4);
        ck_assert_uint_eq(settings_draft_line(draft, fleet, "group"), 3);
        ck_assert_uint_eq(settings_draft_line(draft, NULL, "password_file"), 6);
        ck_assert_uint_eq(settings_draft_line(draft, NULL, "url"), 0);
        ck_assert_uint_eq(settings_draft_line(draft, &stranger, "user"), 0);
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
        ck_assert_ptr_nonnull(strstr(text, "\n# umask: sqmgr's own\n"));
        ck_assert_ptr_nonnull(strstr(text, "\numask = 0027\n"));

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
        ck_assert_str_eq(why, "must be the name of a signal (TERM)");
}

/* What 0 means is the key's to say, not its type's. */
TEST(shows_what_is_unset_by_the_key)
{
        static const struct {
                const char *name, *text;
        } keys[] = {
                {"rescue_limit", "0"},   {"umask", NULL},        {"nice", NULL},      {"oom_score_adj", "0"},
                {"max_processes", NULL}, {"limit_nofile", NULL}, {"max_age", "none"}, {"stop_signal", NULL},
        };
        struct fleet_settings fleet = {0};

        settings_values_clear(true, &fleet);
        for (size_t i = 0; i < ELEMENTSOF(keys); i++) {
                const struct settings_key *key = settings_key_find(SETTINGS_FLEET, keys[i].name);
                _cleanup_free_ char *text = NULL;

                ck_assert_int_eq(settings_value_text(key, &fleet, &text), 0);
                ck_assert_pstr_eq(text, keys[i].text);
        }
        ck_assert_int_eq(fleet.nice, SETTINGS_NICE_UNSET);
        ck_assert_uint_eq(fleet.umask, SETTINGS_UMASK_UNSET);
}

TEST(says_when_errors_were_lost)
{
        _cleanup_settings_errors_ struct settings_errors errors = {.lost = true};

        settings_errors_add(&errors, 3, "a\nb %d", 7);
        settings_errors_add(&errors, 0, "whole");
        _cleanup_free_ char *text = settings_errors_text(&errors, "f");
        ck_assert_str_eq(text,
                         "f: whole\nf:3: a?b 7\nf: memory was short, there are more errors than these\n");
        ck_assert(settings_errors_any(&errors));
}

/* Reads, prints, compares and merges, without an assertion, since these allocate too. Returns 1, or -errno.
 */
static int use_settings(void)
{
        static const char *const pairs[][2] = {{"socket_group", "g"},
                                               {"[redis", ""},
                                               {"[fleet", ""},
                                               {"user", "app"},
                                               {"[fleet:a", ""},
                                               {"command", "run 'this that' x"},
                                               {"environment", "A=1 B=2"},
                                               {"redis_url", "redis://u:p@h"},
                                               {"[fleet:b", ""},
                                               {"command", "run"},
                                               {"memory_limit", "1G"},
                                               {"max_processes", "7"}};
        const struct settings_surroundings surroundings = {
                .frameworks = framework_traits, .is_root = true, .redis_url = "redis://outer"};
        _cleanup_settings_errors_ struct settings_errors errors = {0};
        _cleanup_settings_draft_ struct settings_draft *draft = NULL;
        _cleanup_settings_ struct settings *settings = NULL, *merged = NULL;

        int r = settings_draft_new(&surroundings, &errors, &draft);
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
        free(fleet->user);
        fleet->user = NULL;
        char text[NOTES_MAX] = "";
        r = settings_diff(settings, merged, note_change, text);
        if (r < 0)
                return r;
        return strcmp(text, "fleet:b user: app -> sqmgr's own (outdates)\n") == 0 ? 1 : -EINVAL;
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
