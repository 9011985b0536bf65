/* SPDX-License-Identifier: MIT */
/* The table of all keys of the config file. */
#include "settings/keys.h"
#include "base/words.h"
#include "config.h"
#include "settings/presets.h"
#include "settings/settings.h"
#include <string.h>
#include <strings.h>
#include <syslog.h>

#define SQMGR(field) .scope = SETTINGS_SQMGR, .name = #field, .offset = offsetof(struct settings, field)
#define REDIS(field) .scope = SETTINGS_REDIS, .name = #field, .offset = offsetof(struct settings, redis.field)
#define FLEET_AS(key, field)                                                                                 \
        .scope = SETTINGS_FLEET, .name = #key, .offset = offsetof(struct fleet_settings, field)
/* Of a fleet, by what a reload does: nothing; it is in force at once; its workers are started with it. */
#define FLEET_KEPT(field) FLEET_AS(field, field)
#define FLEET(field)      FLEET_AS(field, field), .reload = SETTINGS_APPLIED
#define LAUNCH(field)     FLEET_AS(field, field), .reload = SETTINGS_OUTDATES

#define MSEC(n)   ((int64_t)((n)*USEC_PER_MSEC))
#define HOURS(n)  ((int64_t)((n)*USEC_PER_HOUR))
#define DAYS(n)   ((int64_t)((n)*USEC_PER_DAY))
#define BYTES_MIN (INT64_C(1) << 20) /* less is a forgotten unit */
#define BYTES_MAX (INT64_C(1) << 50)
#define COUNT_MAX 10000

#if HAVE_TLS
#define NO_TLS NULL
#else
#define NO_TLS "TLS is not supported by this build, whose hiredis has none"
#endif

#if HAVE_SEAL
#define NO_SEAL NULL
#else
#define NO_SEAL "orders cannot be sealed by this build, which has no OpenSSL"
#endif

static const struct settings_choice log_levels[] = {
        {"debug", LOG_DEBUG},     {"info", LOG_INFO}, {"notice", LOG_NOTICE},
        {"warning", LOG_WARNING}, {"error", LOG_ERR}, {0},
};
static const struct settings_choice alert_levels[] = {
        {"error", LOG_ERR}, {"warning", LOG_WARNING}, {"info", LOG_INFO}, {0}};
static const struct settings_choice on_stops[] = {{"drain", ON_STOP_DRAIN}, {"leave", ON_STOP_LEAVE}, {0}};
static const struct settings_choice pressure_actions[] = {
        {"tell", PRESSURE_TELL}, {"quiet", PRESSURE_QUIET}, {0}};
static const struct settings_choice memory_metrics[] = {{"rss", MEMORY_RSS}, {"pss", MEMORY_PSS}, {0}};
static const struct settings_choice hang_actions[] = {{"keep", HANG_KEEP}, {"kill", HANG_KILL}, {0}};
static const struct settings_choice rescues[] = {
        {"off", RESCUE_JOBS_OFF}, {"report", RESCUE_JOBS_REPORT}, {"requeue", RESCUE_JOBS_REQUEUE}, {0}};
static const struct settings_choice stuck_job_actions[] = {
        {"warn", STUCK_JOB_WARN}, {"dump", STUCK_JOB_DUMP}, {0}};
static_assert(ELEMENTSOF(stuck_job_actions) == _STUCK_JOB_ACTION_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(rescues) == _RESCUE_JOBS_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(hang_actions) == _HANG_ACTION_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(pressure_actions) == _PRESSURE_ACTION_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(on_stops) == _ON_STOP_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(memory_metrics) == _MEMORY_METRIC_MAX + 1, "a name for each");

static const struct settings_choice heartbeats[] = {
        {"redis", HEARTBEAT_REDIS}, {"file", HEARTBEAT_FILE}, {0}};
static const struct settings_choice preset_names[] = {
        {"celery", PRESET_CELERY},
        {"huey", PRESET_HUEY},
        {"good_job", PRESET_GOOD_JOB},
        {"solid_queue", PRESET_SOLID_QUEUE},
        {"delayed_job", PRESET_DELAYED_JOB},
        {"que", PRESET_QUE},
        {"dramatiq", PRESET_DRAMATIQ},
        {"puma", PRESET_PUMA},
        {0},
};
static_assert(ELEMENTSOF(preset_names) == _PRESET_MAX + 1, "a name for each");

static const struct settings_choice yes_no[] = {{"no", 0}, {"yes", 1}, {0}};

static const int heartbeat_unset = HEARTBEAT_UNSET, preset_unset = PRESET_NONE;
static const mode_t umask_unset = SETTINGS_UMASK_UNSET;
static const int nice_unset = SETTINGS_NICE_UNSET;

const struct settings_key settings_keys[] = {
        {SQMGR(include), .type = SETTINGS_PATH, .unset = "none", .merged = true, .reload = SETTINGS_APPLIED,
         .help = "files to read besides, by their names' order: a pattern as '/etc/sqmgr/conf.d/*.ini'"},
        {SQMGR(socket), .type = SETTINGS_PATH,
         .unset = "control.sock in $RUNTIME_DIRECTORY, else /run/sqmgr, not root: $XDG_RUNTIME_DIR/sqmgr",
         .help = "where sqmgrctl reaches sqmgr"},
        {SQMGR(socket_mode), .type = SETTINGS_MODE, .fallback = "0660", .max = 0777,
         .help = "permissions of the socket"},
        {SQMGR(socket_group), .type = SETTINGS_TEXT, .unset = "sqmgr's own group",
         .help = "group of the socket: its members may give every order but reexec"},
        {SQMGR(read_socket), .type = SETTINGS_SOCKET,
         .unset = "read.sock beside a control.sock, NAME.read.sock beside a NAME.sock",
         .help = "where members of the group sqmgr-read may look, and give no order; or none"},
        {SQMGR(state_file), .type = SETTINGS_PATH, .unset = "the file 'state' beside the socket",
         .help = "what sqmgr remembers of its workers over its own restarts"},
        {SQMGR(check_interval), .type = SETTINGS_DURATION, .fallback = "5s", .min = MSEC(100),
         .max = HOURS(1), .reload = SETTINGS_APPLIED, .help = "how often workers are looked at"},
        {SQMGR(log_level), .type = SETTINGS_CHOICE, .fallback = "info", .choices = log_levels,
         .reload = SETTINGS_APPLIED, .help = "the least important messages that are logged"},
        {SQMGR(shutdown_timeout), .type = SETTINGS_DURATION, .fallback = "60s", .max = DAYS(30),
         .reload = SETTINGS_APPLIED, .help = "how long jobs may finish when sqmgr is stopped"},
        {SQMGR(on_stop), .type = SETTINGS_CHOICE, .fallback = "drain", .choices = on_stops,
         .reload = SETTINGS_APPLIED,
         .help = "when sqmgr is stopped: drain the workers, or leave them running"},
        {SQMGR(pressure_limit), .type = SETTINGS_PERCENT, .fallback = "none", .min = 1, .max = 99,
         .reload = SETTINGS_APPLIED, .help = "share of the time in which something may wait for memory: 20%"},
        {SQMGR(pressure_action), .type = SETTINGS_CHOICE, .fallback = "tell", .choices = pressure_actions,
         .reload = SETTINGS_APPLIED,
         .help = "what is done beyond that: tell, or quiet the worker that holds the most"},
        {SQMGR(alert_command), .type = SETTINGS_COMMAND, .unset = "none", .reload = SETTINGS_APPLIED,
         .help = "what is run to tell someone of an event; split into words without a shell"},
        {SQMGR(alert_user), .type = SETTINGS_TEXT, .unset = "as root sqmgr, else sqmgr's own",
         .reload = SETTINGS_APPLIED, .help = "user that alert_command runs as"},
        {SQMGR(alert_level), .type = SETTINGS_CHOICE, .fallback = "warning", .choices = alert_levels,
         .reload = SETTINGS_APPLIED, .help = "the least important events that are told so"},

        {REDIS(url), .type = SETTINGS_URL, .fallback = "redis://127.0.0.1:6379/0", .secret = true,
         .help = "the Redis that the workers use"},
        {REDIS(username), .type = SETTINGS_TEXT, .unset = "none", .help = "user to log in to Redis as"},
        {REDIS(password), .type = SETTINGS_TEXT, .unset = "none", .secret = true,
         .help = "password to log in to Redis with"},
        {REDIS(password_file), .type = SETTINGS_PATH, .unset = "none",
         .help = "file whose first line is the password"},
        {REDIS(sentinels), .type = SETTINGS_SENTINELS, .unset = "none",
         .help = "Sentinels to ask for the Redis: host:port, host:port"},
        {REDIS(master_name), .type = SETTINGS_TEXT, .unset = "none",
         .help = "what the Sentinels call the Redis"},
        {REDIS(sentinel_password), .type = SETTINGS_TEXT, .unset = "none", .secret = true,
         .help = "password to log in to the Sentinels with"},
        {REDIS(tls_ca_file), .type = SETTINGS_PATH, .unset = "the machine's certificates", .refusal = NO_TLS,
         .help = "with rediss://: who signs the certificates of servers to trust"},
        {REDIS(tls_cert_file), .type = SETTINGS_PATH, .unset = "none", .refusal = NO_TLS,
         .help = "certificate to show to the server"},
        {REDIS(tls_key_file), .type = SETTINGS_PATH, .unset = "none", .refusal = NO_TLS,
         .help = "private key of that certificate"},
        {REDIS(namespace), .type = SETTINGS_TEXT, .unset = "none",
         .help = "prefix of all keys, as redis-namespace writes it"},
        {REDIS(connect_timeout), .type = SETTINGS_DURATION, .fallback = "1s", .min = MSEC(10),
         .max = HOURS(1), .help = "how long connecting may take"},
        {REDIS(command_timeout), .type = SETTINGS_DURATION, .fallback = "1s", .min = MSEC(10),
         .max = HOURS(1), .help = "how long Redis may take to answer"},
        {REDIS(queue_warn_size), .type = SETTINGS_COUNTS, .fallback = "none", .reload = SETTINGS_APPLIED,
         .help = "jobs beyond which a queue is told of; QUEUE=N for one queue"},
        {REDIS(queue_warn_latency), .type = SETTINGS_DURATIONS, .fallback = "none",
         .reload = SETTINGS_APPLIED,
         .help = "how long a queue's oldest job may wait until it is told of; QUEUE=DURATION for one"},

        {LAUNCH(command), .type = SETTINGS_COMMAND, .unset = "required", .required = true,
         .help = "what starts one worker, in the foreground; split into words without a shell"},
        {LAUNCH(before_start), .type = SETTINGS_COMMAND, .unset = "none",
         .help = "what is run before each start of a worker, which fails where it does"},
        {FLEET(after_exit), .type = SETTINGS_COMMAND, .unset = "none",
         .help = "what is run after the end of each worker"},
        {FLEET_AS(framework, traits), .type = SETTINGS_FRAMEWORK, .fallback = "sidekiq",
         .help = "what the workers speak"},
        {FLEET_KEPT(heartbeat), .type = SETTINGS_CHOICE, .unset = "the framework's",
         .unset_value = &heartbeat_unset, .choices = heartbeats,
         .help = "where a native worker's heartbeat is: redis, or file, in $SQMGR_STATUS_DIR"},
        {FLEET(preset), .type = SETTINGS_CHOICE, .unset = "none", .unset_value = &preset_unset,
         .choices = preset_names,
         .help = "what a plain worker is, whose stop_signal and stop_timeout are known"},
        {LAUNCH(preload), .type = SETTINGS_CHOICE, .fallback = "no", .choices = yes_no,
         .help = "load the application once, in a template, and fork the workers from it"},
        {LAUNCH(preload_compact), .type = SETTINGS_CHOICE, .fallback = "no", .choices = yes_no,
         .help = "compact the template's heap before workers are forked"},
        {LAUNCH(directory), .type = SETTINGS_PATH, .unset = "sqmgr's own",
         .help = "where workers start, resolved anew each time"},
        {LAUNCH(user), .type = SETTINGS_TEXT, .unset = "sqmgr's own", .help = "user that workers run as"},
        {LAUNCH(group), .type = SETTINGS_TEXT, .unset = "the user's", .help = "group that workers run as"},
        {LAUNCH(environment), .type = SETTINGS_ENVIRONMENT, .unset = "none",
         .help = "environment of workers: K=V, separated by spaces, quotes allowed"},
        {LAUNCH(environment_file), .type = SETTINGS_TEXT, .unset = "none",
         .help = "file of K=V lines, read anew at each start"},
        {LAUNCH(umask), .type = SETTINGS_MODE, .unset = "sqmgr's own", .unset_value = &umask_unset,
         .max = 0777, .help = "permissions that files of workers do not get"},
        {LAUNCH(nice), .type = SETTINGS_INT, .unset = "sqmgr's own", .unset_value = &nice_unset, .min = -20,
         .max = 19, .help = "CPU priority, 19 is the lowest"},
        {LAUNCH(oom_score_adj), .type = SETTINGS_INT, .fallback = "0", .min = -1000, .max = 1000,
         .help = "how gladly the kernel ends a worker when memory is out"},
        {LAUNCH(cpu_affinity), .type = SETTINGS_CPUS, .unset = "sqmgr's own",
         .help = "processors that workers may run on: 0-3 5"},
        {LAUNCH(limit_as), .type = SETTINGS_LIMIT_SIZE, .unset = "sqmgr's own",
         .help = "how much address space a process may have"},
        {LAUNCH(limit_core), .type = SETTINGS_LIMIT_SIZE, .unset = "sqmgr's own",
         .help = "how large a core dump may be"},
        {LAUNCH(limit_fsize), .type = SETTINGS_LIMIT_SIZE, .unset = "sqmgr's own",
         .help = "how large a file may be that is written"},
        {LAUNCH(limit_memlock), .type = SETTINGS_LIMIT_SIZE, .unset = "sqmgr's own",
         .help = "how much memory may be locked"},
        {LAUNCH(limit_nofile), .type = SETTINGS_LIMIT, .unset = "sqmgr's own", .min = 16,
         .help = "how many files a worker may have open"},
        {LAUNCH(limit_nproc), .type = SETTINGS_LIMIT, .unset = "sqmgr's own",
         .help = "how many processes and threads the user may have"},
        {LAUNCH(limit_stack), .type = SETTINGS_LIMIT_SIZE, .unset = "sqmgr's own",
         .help = "how large a stack may be"},
        {LAUNCH(log), .type = SETTINGS_LOG, .fallback = "inherit",
         .help = "where output goes: inherit, journal, or a file"},
        {FLEET_KEPT(redis_url), .type = SETTINGS_URL, .unset = "the url of [redis]", .secret = true,
         .help = "the Redis of this fleet"},
        {FLEET(active_process_count), .type = SETTINGS_COUNT, .fallback = "1", .max = COUNT_MAX,
         .help = "how many workers take jobs at all times; 0: none"},
        {FLEET(active_process_max), .type = SETTINGS_COUNT, .unset = "none", .min = 1, .max = COUNT_MAX,
         .help = "how many take jobs at the most, as the queues ask for them"},
        {FLEET(latency_target), .type = SETTINGS_TARGETS, .fallback = "30s",
         .help = "how long a job may wait, with active_process_max; QUEUE:DURATION for one queue"},
        {FLEET(scale_down_after), .type = SETTINGS_DURATION, .fallback = "10min", .min = MSEC(1000),
         .max = DAYS(30), .help = "how long fewer workers must have been enough before one leaves"},
        {FLEET(max_processes), .type = SETTINGS_COUNT,
         .unset = "3 x the larger of active_process_count and active_process_max", .min = 1,
         .max = 3 * COUNT_MAX, .help = "how many may live at once, those that drain included"},
        {FLEET(restart_surge), .type = SETTINGS_SHARE, .fallback = "100%", .max = COUNT_MAX,
         .help = "how many workers beyond the count a restart may run"},
        {FLEET(ready_after), .type = SETTINGS_DURATION, .fallback = "30s", .max = HOURS(1),
         .help = "how long a new worker is on trial before an old one may go"},
        {FLEET(boot_timeout), .type = SETTINGS_DURATION, .fallback = "120s", .min = MSEC(100), .max = DAYS(1),
         .help = "how long a worker may take to its first beat"},
        {FLEET(rollout_timeout), .type = SETTINGS_DURATION, .fallback = "10min", .min = MSEC(100),
         .max = DAYS(30), .help = "how long a restart may make no progress"},
        {FLEET(memory_threshold), .type = SETTINGS_SIZE, .fallback = "none", .min = BYTES_MIN,
         .max = BYTES_MAX, .help = "memory above which a worker is replaced, replacement first"},
        {FLEET(memory_limit), .type = SETTINGS_SIZE, .fallback = "none", .min = BYTES_MIN, .max = BYTES_MAX,
         .help = "memory above which a worker is quieted at once"},
        {FLEET(memory_metric), .type = SETTINGS_CHOICE, .fallback = "rss", .choices = memory_metrics,
         .help = "what is measured: rss, or pss, in which shared pages count in part"},
        {FLEET(max_age), .type = SETTINGS_DURATION, .fallback = "none", .min = MSEC(1000), .max = DAYS(3650),
         .help = "age above which a worker is replaced"},
        {FLEET(drain_timeout), .type = SETTINGS_DURATION, .fallback = "none", .min = MSEC(1000),
         .max = DAYS(3650), .help = "how long a quiet worker may finish its jobs"},
        {FLEET(stop_timeout), .type = SETTINGS_DURATION, .fallback = "60s", .min = MSEC(1000), .max = DAYS(1),
         .help = "how long a worker that was told to exit may take before it is killed"},
        {FLEET(hang_after), .type = SETTINGS_DURATION, .fallback = "5min", .min = MSEC(1000),
         .max = DAYS(3650), .help = "how long a worker may be without a beat before another takes its place"},
        {FLEET(hang_action), .type = SETTINGS_CHOICE, .fallback = "keep", .choices = hang_actions,
         .help = "what becomes of such a worker: keep it, or kill it"},
        {FLEET(rescue_jobs), .type = SETTINGS_CHOICE, .fallback = "report", .choices = rescues,
         .help = "jobs of a worker that was killed: off, report them, or requeue them"},
        {FLEET(rescue_limit), .type = SETTINGS_COUNT, .fallback = "3", .max = 1000,
         .help = "how often a job is put back, before it is parked among the dead ones"},
        {FLEET(job_warn_after), .type = SETTINGS_DURATIONS, .fallback = "none",
         .help = "how long a job may run until it is told of; CLASS=DURATION for one class"},
        {FLEET(stuck_job_action), .type = SETTINGS_CHOICE, .fallback = "warn", .choices = stuck_job_actions,
         .help = "what is done about such a job: warn, or dump what it is at"},
        {FLEET(rollout_group), .type = SETTINGS_TEXT, .unset = "none",
         .help = "group of hosts that 'sqmgrctl restart --everywhere' restarts one after another"},
        {FLEET(rollout_hosts), .type = SETTINGS_SHARE, .fallback = "1", .min = 1, .max = 1024,
         .help = "how many hosts of the group restart at once"},
        {FLEET(rollout_canary), .type = SETTINGS_DURATION, .fallback = "none", .max = DAYS(1),
         .help = "how long the first host must be well before the others follow"},
        {FLEET(rollout_failures), .type = SETTINGS_COUNT, .fallback = "0", .max = 1024,
         .help = "how many hosts may fail before the others stay as they are"},
        {FLEET(rollout_key_file), .type = SETTINGS_PATH, .unset = "none", .refusal = NO_SEAL,
         .help = "file whose first line seals the orders of the group"},
        {FLEET(stop_signal), .type = SETTINGS_SIGNAL, .unset = "that of the preset, or the framework's",
         .help = "signal that tells a plain worker to exit"},
        {FLEET(backoff_min), .type = SETTINGS_DURATION, .fallback = "1s", .min = MSEC(10), .max = DAYS(1),
         .help = "the first wait before a crashed worker is started again"},
        {FLEET(backoff_max), .type = SETTINGS_DURATION, .fallback = "60s", .min = MSEC(10), .max = DAYS(1),
         .help = "the longest of these waits"},
};
const size_t settings_keys_n = ELEMENTSOF(settings_keys);
static_assert(ELEMENTSOF(settings_keys) <= SETTINGS_KEYS_MAX, "room for each key's line");

static const char *const scope_names[] = {
        [SETTINGS_SQMGR] = "sqmgr",
        [SETTINGS_REDIS] = "redis",
        [SETTINGS_FLEET] = "fleet",
};
DEFINE_ENUM_NAMES(settings_scope_name, enum settings_scope, _SETTINGS_SCOPE_MAX, scope_names)

const struct settings_key *settings_key_find(enum settings_scope scope, const char *name)
{
        for (size_t i = 0; i < settings_keys_n; i++) {
                if (settings_keys[i].scope == scope && strcasecmp(settings_keys[i].name, name) == 0)
                        return &settings_keys[i];
        }
        return NULL;
}

const struct settings_key *settings_key_near(enum settings_scope scope, const char *name)
{
        const struct settings_key *near = NULL;
        unsigned best = strlen(name) <= 4 ? 2 : 3;

        for (size_t i = 0; i < settings_keys_n; i++) {
                if (settings_keys[i].scope != scope)
                        continue;
                unsigned distance = words_distance(name, settings_keys[i].name);
                if (distance < best) {
                        best = distance;
                        near = &settings_keys[i];
                }
        }
        return near;
}
