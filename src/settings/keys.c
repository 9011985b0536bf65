/* SPDX-License-Identifier: MIT */
/* The table of all keys of the config file. */
#include "settings/keys.h"
#include "base/argv.h"
#include "settings/presets.h"
#include "settings/settings.h"
#include <string.h>
#include <strings.h>
#include <syslog.h>

/* Reload behavior: a plain key is applied at once, a _KEPT key keeps its old value, and a LAUNCH key applies
 * to workers started afterwards. */
#define SQMGR_KEPT(field) .scope = SETTINGS_SQMGR, .name = #field, .offset = offsetof(struct settings, field)
#define SQMGR(field)      SQMGR_KEPT(field), .reload = SETTINGS_APPLIED
#define REDIS_KEPT(field)                                                                                    \
        .scope = SETTINGS_REDIS, .name = #field, .offset = offsetof(struct settings, redis.field)
#define REDIS(field) REDIS_KEPT(field), .reload = SETTINGS_APPLIED
#define FLEET_AS(key, field)                                                                                 \
        .scope = SETTINGS_FLEET, .name = #key, .offset = offsetof(struct fleet_settings, field)
#define FLEET_KEPT(field) FLEET_AS(field, field)
#define FLEET(field)      FLEET_AS(field, field), .reload = SETTINGS_APPLIED
#define LAUNCH(field)     FLEET_AS(field, field), .reload = SETTINGS_OUTDATES

#define MSEC(n)   ((int64_t)((n)*USEC_PER_MSEC))
#define HOURS(n)  ((int64_t)((n)*USEC_PER_HOUR))
#define DAYS(n)   ((int64_t)((n)*USEC_PER_DAY))
#define BYTES_MIN (INT64_C(1) << 20) /* a smaller value probably lacks its unit */
#define BYTES_MAX (INT64_C(1) << 50)
#define COUNT_MAX 10000

static const struct settings_choice log_levels[] = {
        {"debug", LOG_DEBUG},     {"info", LOG_INFO}, {"notice", LOG_NOTICE},
        {"warning", LOG_WARNING}, {"error", LOG_ERR}, {0},
};
static const struct settings_choice alert_levels[] = {
        {"error", LOG_ERR}, {"warning", LOG_WARNING}, {"info", LOG_INFO}, {0}};
static const struct settings_choice on_stops[] = {{"drain", ON_STOP_DRAIN}, {"leave", ON_STOP_LEAVE}, {0}};
static const struct settings_choice hang_actions[] = {{"keep", HANG_KEEP}, {"kill", HANG_KILL}, {0}};
static const struct settings_choice rescues[] = {
        {"off", RESCUE_JOBS_OFF}, {"report", RESCUE_JOBS_REPORT}, {"requeue", RESCUE_JOBS_REQUEUE}, {0}};
static const struct settings_choice trial_defaults[] = {
        {"pass", TRIAL_DEFAULT_PASS}, {"halt", TRIAL_DEFAULT_HALT}, {0}};
static_assert(ELEMENTSOF(trial_defaults) == _TRIAL_DEFAULT_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(rescues) == _RESCUE_JOBS_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(hang_actions) == _HANG_ACTION_MAX + 1, "a name for each");
static_assert(ELEMENTSOF(on_stops) == _ON_STOP_MAX + 1, "a name for each");

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
/* Of a field that is set where the check is off: what sets no field has it on. */
static const struct settings_choice verified[] = {{"no", 1}, {"yes", 0}, {0}};

static const int heartbeat_unset = HEARTBEAT_UNSET, preset_unset = PRESET_NONE;
static const usec_t no_timeout = USEC_INFINITY;

const struct settings_key settings_keys[] = {
        {SQMGR(include), .type = SETTINGS_PATH, .unset = "none", .merged = true},
        {SQMGR_KEPT(socket), .type = SETTINGS_PATH,
         .unset = "control.sock in $RUNTIME_DIRECTORY, else $XDG_RUNTIME_DIR/sqmgr, else /run/sqmgr/USER"},
        {SQMGR_KEPT(socket_group), .type = SETTINGS_TEXT, .unset = "none"},
        {SQMGR_KEPT(state_file), .type = SETTINGS_PATH, .unset = "the file 'state' beside the socket"},
        {SQMGR(check_interval), .type = SETTINGS_DURATION, .fallback = "5s", .min = MSEC(100),
         .max = HOURS(1)},
        {SQMGR(log_level), .type = SETTINGS_CHOICE, .fallback = "info", .choices = log_levels},
        {SQMGR(shutdown_timeout), .type = SETTINGS_DURATION, .fallback = "60s", .max = DAYS(30)},
        {SQMGR(on_stop), .type = SETTINGS_CHOICE, .fallback = "drain", .choices = on_stops},
        {SQMGR(alert_command), .type = SETTINGS_COMMAND, .unset = "none"},
        {SQMGR(alert_level), .type = SETTINGS_CHOICE, .fallback = "warning", .choices = alert_levels},

        {REDIS_KEPT(url), .type = SETTINGS_URL, .fallback = "redis://127.0.0.1:6379/0", .secret = true},
        {REDIS_KEPT(username), .type = SETTINGS_TEXT, .unset = "none"},
        {REDIS_KEPT(password), .type = SETTINGS_TEXT, .unset = "none", .secret = true},
        {REDIS_KEPT(password_file), .type = SETTINGS_PATH, .unset = "none"},
        {REDIS_KEPT(sentinels), .type = SETTINGS_SENTINELS, .unset = "none"},
        {REDIS_KEPT(master_name), .type = SETTINGS_TEXT, .unset = "none"},
        {REDIS_KEPT(sentinel_password), .type = SETTINGS_TEXT, .unset = "none", .secret = true},
        {REDIS_KEPT(tls_ca_file), .type = SETTINGS_PATH, .unset = "the machine's certificates"},
        {REDIS_KEPT(tls_cert_file), .type = SETTINGS_PATH, .unset = "none"},
        {REDIS_KEPT(tls_key_file), .type = SETTINGS_PATH, .unset = "none"},
        {.scope = SETTINGS_REDIS,
         .name = "tls_verify",
         .offset = offsetof(struct settings, redis.tls_unverified),
         .type = SETTINGS_CHOICE,
         .fallback = "yes",
         .choices = verified},
        {REDIS_KEPT(namespace), .type = SETTINGS_TEXT, .unset = "none"},
        {REDIS(queue_warn_size), .type = SETTINGS_COUNTS, .fallback = "none"},
        {REDIS(queue_warn_latency), .type = SETTINGS_DURATIONS, .fallback = "none"},

        {LAUNCH(command), .type = SETTINGS_COMMAND, .unset = "required"},
        {LAUNCH(before_start), .type = SETTINGS_COMMAND, .unset = "none"},
        {FLEET(after_exit), .type = SETTINGS_COMMAND, .unset = "none"},
        {FLEET_AS(framework, traits), .type = SETTINGS_FRAMEWORK, .fallback = "sidekiq"},
        {FLEET_KEPT(heartbeat), .type = SETTINGS_CHOICE, .unset = "the framework's",
         .unset_value = &heartbeat_unset, .choices = heartbeats},
        {FLEET(preset), .type = SETTINGS_CHOICE, .unset = "none", .unset_value = &preset_unset,
         .choices = preset_names},
        {LAUNCH(preload), .type = SETTINGS_CHOICE, .fallback = "no", .choices = yes_no},
        {LAUNCH(namespaced), .type = SETTINGS_CHOICE, .fallback = "no", .choices = yes_no},
        {LAUNCH(directory), .type = SETTINGS_PATH, .unset = "sqmgr's own"},
        {LAUNCH(environment), .type = SETTINGS_ENVIRONMENT, .unset = "none"},
        {LAUNCH(environment_file), .type = SETTINGS_TEXT, .unset = "none"},
        {LAUNCH(log), .type = SETTINGS_LOG,
         .unset = "journal where sqmgr logs to it, workers.log in $LOGS_DIRECTORY where sqmgr cannot read "
                  "that, else inherit"},
        {FLEET_KEPT(redis_url), .type = SETTINGS_URL, .unset = "the url of [redis]", .secret = true},
        {FLEET_KEPT(database_url), .type = SETTINGS_DATABASE, .unset = "DATABASE_URL in sqmgr's environment",
         .secret = true},
        {FLEET_KEPT(database_url_file), .type = SETTINGS_PATH, .unset = "none"},
        {FLEET(active_process_count), .type = SETTINGS_COUNT, .fallback = "1", .max = COUNT_MAX},
        {FLEET(active_process_max), .type = SETTINGS_COUNT, .unset = "none", .min = 1, .max = COUNT_MAX},
        {FLEET(latency_target), .type = SETTINGS_DURATIONS, .fallback = "30s"},
        {FLEET(scale_down_after), .type = SETTINGS_DURATION, .fallback = "10min", .min = MSEC(1000),
         .max = DAYS(30)},
        {FLEET(max_processes), .type = SETTINGS_COUNT,
         .unset = "3 x the larger of active_process_count and active_process_max", .min = 1,
         .max = 3 * COUNT_MAX},
        {FLEET(restart_surge), .type = SETTINGS_SHARE, .fallback = "100%", .max = COUNT_MAX},
        {FLEET(ready_after), .type = SETTINGS_DURATION, .fallback = "30s", .max = HOURS(1)},
        {FLEET(boot_timeout), .type = SETTINGS_DURATION, .fallback = "120s", .min = MSEC(100),
         .max = DAYS(1)},
        {FLEET(rollout_timeout), .type = SETTINGS_DURATION, .fallback = "10min", .min = MSEC(100),
         .max = DAYS(30)},
        {FLEET(rollout_trial), .type = SETTINGS_DURATION, .fallback = "none", .min = MSEC(1000),
         .max = DAYS(30)},
        {FLEET(rollout_trial_share), .type = SETTINGS_SHARE, .fallback = "10%", .max = COUNT_MAX},
        {FLEET(rollout_trial_default), .type = SETTINGS_CHOICE, .fallback = "pass",
         .choices = trial_defaults},
        {FLEET(memory_threshold), .type = SETTINGS_SIZE, .fallback = "none", .min = BYTES_MIN,
         .max = BYTES_MAX},
        {FLEET(memory_limit), .type = SETTINGS_SIZE, .fallback = "none", .min = BYTES_MIN, .max = BYTES_MAX},
        {FLEET(max_age), .type = SETTINGS_DURATION, .fallback = "none", .min = MSEC(1000), .max = DAYS(3650)},
        {FLEET(drain_timeout), .type = SETTINGS_DURATION, .fallback = "none", .min = MSEC(1000),
         .max = DAYS(3650)},
        {FLEET(stop_timeout), .type = SETTINGS_DURATION, .fallback = "60s", .unset_value = &no_timeout,
         .min = MSEC(1000), .max = DAYS(1)},
        {FLEET(hang_after), .type = SETTINGS_DURATION, .fallback = "5min", .min = MSEC(1000),
         .max = DAYS(3650)},
        {FLEET(hang_action), .type = SETTINGS_CHOICE, .fallback = "keep", .choices = hang_actions},
        {FLEET(rescue_jobs), .type = SETTINGS_CHOICE, .fallback = "report", .choices = rescues},
        {FLEET(interruptible), .type = SETTINGS_TEXT, .unset = "none"},
        {FLEET(job_warn_after), .type = SETTINGS_DURATIONS, .fallback = "none"},
        {FLEET(stop_signal), .type = SETTINGS_SIGNAL, .unset = "that of the preset, or the framework's"},
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
                unsigned distance = edit_distance(name, settings_keys[i].name);
                if (distance < best) {
                        best = distance;
                        near = &settings_keys[i];
                }
        }
        return near;
}
