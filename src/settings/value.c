/* SPDX-License-Identifier: MIT */
/* Parses, formats, copies and compares the value of one key, by its type. */
#include "settings/value.h"
#include "base/argv.h"
#include "base/parse.h"
#include "base/text.h"
#include "settings/database_url.h"
#include "settings/limits.h"
#include "settings/redis_url.h"
#include "settings/settings.h"
#include <inttypes.h>
#include <stdarg.h>
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
/* The field is true if the check is off: settings in which nobody has set it have the check on. */
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

#define MASK "***"

static const char zeros[sizeof(uint64_t)] = {0};

/* Returns the field of the key. Write to it only if base is not const. */
static void *field_of(const struct settings_key *key, const void *base)
{
        return (char *)base + key->offset;
}

static bool type_is_text(enum settings_type type)
{
        return type <= SETTINGS_URL;
}

static size_t type_size(enum settings_type type)
{
        static const size_t sizes[_SETTINGS_TYPE_MAX] = {
                [SETTINGS_CHOICE] = sizeof(int),     [SETTINGS_FRAMEWORK] = sizeof(struct traits *),
                [SETTINGS_COUNT] = sizeof(unsigned), [SETTINGS_SHARE] = sizeof(struct share),
                [SETTINGS_SIGNAL] = sizeof(int),     [SETTINGS_DURATION] = sizeof(usec_t),
                [SETTINGS_SIZE] = sizeof(uint64_t),
        };

        return sizes[type];
}

/* A default beside an unset value means that both are valid. */
static bool may_be_none(const struct settings_key *key)
{
        return key->fallback && (key->unset_value || strcmp(key->fallback, "none") == 0);
}

/* Describes the valid values in why. Returns -EINVAL. */
static _printf_(2, 3) int refuse(char *why, const char *format, ...)
{
        va_list args;

        va_start(args, format);
        (void)vsnprintf(why, SETTINGS_WHY_MAX, format, args);
        va_end(args);
        return -EINVAL;
}

/* r is the result of a parser that describes the problem in error. */
static int refuse_failed(int r, char *why, const char *error)
{
        return r == -EINVAL ? refuse(why, "%s", error) : r;
}

/* Does not quote text: any part may belong to a secret. */
static int check_environment(const char *text, char *why)
{
        static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_";
        static const char more[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz_0123456789";
        _cleanup_argv_ char **words = NULL;
        const char *error = NULL;

        int r = argv_split(text, &words, &error);
        if (r < 0)
                return refuse_failed(r, why, error);
        for (unsigned i = 0; words[i]; i++) {
                if (!strchr(words[i], '='))
                        return refuse(why,
                                      "word %u has no '='; write K=V, and K='a b' for a value with spaces",
                                      i + 1);
                if (strspn(words[i], letters) == 0 || words[i][strspn(words[i], more)] != '=')
                        return refuse(why,
                                      "word %u: a name consists of letters, digits and '_' and cannot begin "
                                      "with a digit",
                                      i + 1);
        }
        return 0;
}

static int check_command(const char *text, char *why)
{
        _cleanup_argv_ char **words = NULL;
        const char *error = NULL;

        int r = argv_split(text, &words, &error);
        if (r < 0)
                return refuse_failed(r, why, error);
        if (!words[0] || words[0][0] == '\0')
                return refuse(why, "no program is named; write the program, then its arguments");
        return 0;
}

static int check_url(const char *text, char *why)
{
        _cleanup_redis_url_ struct redis_url url = {0};
        const char *error = NULL;

        int r = redis_url_parse(text, &url, &error);
        if (r == -EINVAL)
                return refuse(why, "not a Redis URL: %s", error);
        return r;
}

static int check_database(const char *text, char *why)
{
        _cleanup_database_url_ struct database_url url = {0};
        const char *error = NULL;

        int r = database_url_parse(text, &url, &error);
        return r == -EINVAL ? refuse(why, "not the URL of a database: %s", error) : r;
}

static int check_sentinels(const char *text, char *why)
{
        struct redis_url *list;
        const char *error = NULL;
        size_t n;

        int r = redis_sentinels_parse(text, &list, &n, &error);
        if (r < 0)
                return refuse_failed(r, why, error);
        redis_sentinels_free(list, n);
        return 0;
}

static int parse_text(const struct settings_key *key, const char *text, char **field, char *why)
{
        int r = 0;

        if (key->type == SETTINGS_PATH && text[0] != '/')
                return refuse(why, "must be an absolute path without quotes, beginning with '/'");
        if (key->type == SETTINGS_LOG && text[0] != '/' && strcmp(text, "inherit") != 0 &&
            strcmp(text, "journal") != 0)
                return refuse(why, "must be inherit, journal, or an absolute path beginning with '/'");
        if (key->type == SETTINGS_COMMAND)
                r = check_command(text, why);
        else if (key->type == SETTINGS_ENVIRONMENT)
                r = check_environment(text, why);
        else if (key->type == SETTINGS_SENTINELS)
                r = check_sentinels(text, why);
        else if (key->type == SETTINGS_URL)
                r = check_url(text, why);
        else if (key->type == SETTINGS_DATABASE)
                r = check_database(text, why);
        else if (key->type == SETTINGS_COUNTS)
                r = limits_check(text, LIMITS_COUNT, why, SETTINGS_WHY_MAX);
        else if (key->type == SETTINGS_DURATIONS)
                r = limits_check(text, LIMITS_DURATION, why, SETTINGS_WHY_MAX);
        if (r < 0)
                return r;
        *field = strdup(text);
        return *field ? 0 : -ENOMEM;
}

static int parse_choice(const struct settings_key *key, const char *text, int *field, char *why)
{
        char names[128] = "";
        size_t used = 0;

        for (const struct settings_choice *choice = key->choices; choice->name; choice++) {
                if (strcasecmp(text, choice->name) == 0) {
                        *field = choice->value;
                        return 0;
                }
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "",
                                         choice->name);
        }
        return refuse(why, "must be one of %s", names);
}

static int parse_framework(const char *text, const struct traits *const *frameworks,
                           const struct traits **field, char *why)
{
        char names[128] = "";
        size_t used = 0;

        for (const struct traits *const *traits = frameworks; *traits; traits++) {
                if (strcasecmp(text, (*traits)->name) == 0) {
                        *field = *traits;
                        return 0;
                }
                used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s", used > 0 ? ", " : "",
                                         (*traits)->name);
        }
        return refuse(why, "must be one of %s", names);
}

/* Parses a number within the key's bounds, optionally followed by '%'. */
static int parse_share(const struct settings_key *key, const char *text, struct share *field, char *why)
{
        char digits[24] = "";
        size_t length = strcspn(text, "%");
        uint64_t value = 0;

        if (length < sizeof(digits))
                memcpy(digits, text, length);
        if ((text[length] != '\0' && strcmp(text + length, "%") != 0) ||
            parse_unsigned(digits, (uint64_t)key->min, (uint64_t)key->max, &value) < 0)
                return refuse(
                        why,
                        "must be a number of workers (2) or a share of the count (50%%), at most %" PRId64,
                        key->max);
        *field = (struct share){.value = (uint32_t)value, .percent = text[length] == '%'};
        return 0;
}

static int parse_duration_field(const struct settings_key *key, const char *text, usec_t *field, char *why)
{
        const char *none = may_be_none(key) ? "none, or " : "";
        usec_t usec = 0;

        int r = parse_duration(text, &usec);
        if (r == -EINVAL)
                return refuse(why, "must be %s%s", none, PARSE_DURATION_HINT);
        if (r < 0 || usec < (usec_t)key->min || usec > (usec_t)key->max)
                return refuse(why, "must be %sfrom %s to %s", none, FORMAT_DURATION_EXACT((usec_t)key->min),
                              FORMAT_DURATION_EXACT((usec_t)key->max));
        *field = usec;
        return 0;
}

static int parse_size_field(const struct settings_key *key, const char *text, uint64_t total_bytes,
                            uint64_t *field, char *why)
{
        uint64_t bytes = 0;

        int r = parse_size(text, total_bytes, &bytes);
        if (r == -EINVAL)
                return refuse(why, "must be none, or %s", PARSE_SIZE_HINT);
        if (r == -ENODATA)
                return refuse(
                        why, "a share is not possible: the machine's memory is unknown; write a size (512M)");
        if (r < 0 || bytes < (uint64_t)key->min || bytes > (uint64_t)key->max)
                return refuse(why, "must be from %s to %s, or from 1%% to 100%%; is the unit missing (512M)?",
                              FORMAT_SIZE_EXACT((uint64_t)key->min), FORMAT_SIZE_EXACT((uint64_t)key->max));
        *field = bytes;
        return 0;
}

int settings_value_parse(const struct settings_key *key, const char *text,
                         const struct settings_surroundings *surroundings, void *base,
                         char why[static SETTINGS_WHY_MAX])
{
        void *field = field_of(key, base);
        uint64_t number = 0;

        if (!type_is_text(key->type) && may_be_none(key) && strcasecmp(text, "none") == 0) {
                memcpy(field, key->unset_value ?: zeros, type_size(key->type));
                return 0;
        }
        switch (key->type) {
        case SETTINGS_CHOICE:
                return parse_choice(key, text, field, why);
        case SETTINGS_FRAMEWORK:
                return parse_framework(text, surroundings->frameworks, field, why);
        case SETTINGS_COUNT:
                if (parse_unsigned(text, (uint64_t)key->min, (uint64_t)key->max, &number) < 0)
                        return refuse(why, "must be a number from %" PRId64 " to %" PRId64, key->min,
                                      key->max);
                *(unsigned *)field = (unsigned)number;
                return 0;
        case SETTINGS_SHARE:
                return parse_share(key, text, field, why);
        case SETTINGS_SIGNAL:
                if (parse_signal(text, field) < 0)
                        return refuse(why, "must be a signal name (TERM)");
                return 0;
        case SETTINGS_DURATION:
                return parse_duration_field(key, text, field, why);
        case SETTINGS_SIZE:
                return parse_size_field(key, text, surroundings->memory_total_bytes, field, why);
        default:
                return parse_text(key, text, field, why);
        }
}

static void value_clear(const struct settings_key *key, void *base)
{
        void *field = field_of(key, base);

        if (type_is_text(key->type)) {
                free(*(char **)field);
                *(char **)field = NULL;
        } else {
                memcpy(field, key->unset_value ?: zeros, type_size(key->type));
        }
}

void settings_values_clear(bool of_fleet, void *base)
{
        for (size_t i = 0; i < settings_keys_n; i++)
                if (settings_key_is_of_fleet(&settings_keys[i]) == of_fleet)
                        value_clear(&settings_keys[i], base);
}

int settings_value_copy(const struct settings_key *key, const void *from, void *to)
{
        const void *source = field_of(key, from);
        void *field = field_of(key, to);

        if (!type_is_text(key->type)) {
                memcpy(field, source, type_size(key->type));
                return 0;
        }
        char *copy;
        int r = text_copy(*(char *const *)source, &copy);
        if (r < 0)
                return r;
        free(*(char **)field);
        *(char **)field = copy;
        return 0;
}

bool settings_value_equal(const struct settings_key *key, const void *a, const void *b)
{
        const void *left = field_of(key, a), *right = field_of(key, b);

        if (key->type == SETTINGS_SHARE) {
                const struct share *x = left, *y = right;
                return x->value == y->value && x->percent == y->percent;
        }
        if (!type_is_text(key->type))
                return memcmp(left, right, type_size(key->type)) == 0;
        const char *x = *(char *const *)left, *y = *(char *const *)right;
        return x && y ? strcmp(x, y) == 0 : x == y;
}

/* Returns the URL with user and password masked. */
static char *mask_url(const char *url)
{
        char *redacted = redis_url_redact(url), *masked;
        const char *rest = redacted ? strstr(redacted, "://") : NULL;

        if (!rest || strcmp(redacted, url) == 0)
                return redacted;
        rest += strlen("://");
        masked = text_format("%.*s" MASK "@%s", (int)(rest - redacted), redacted, rest);
        free(redacted);
        return masked;
}

static char *text_of_text(const struct settings_key *key, const char *text)
{
        if (key->type == SETTINGS_URL)
                return mask_url(text);
        if (key->type == SETTINGS_DATABASE)
                return database_url_mask(text);
        return strdup(key->secret ? MASK : text);
}

static const char *choice_name(const struct settings_key *key, int value)
{
        const struct settings_choice *choice = key->choices;

        while (choice->name && choice->value != value)
                choice++;
        return choice->name;
}

/* For non-text types: returns true if the value is unset, or "none" where that is allowed. */
static bool is_cleared(const struct settings_key *key, const void *field)
{
        return memcmp(field, key->unset_value ?: zeros, type_size(key->type)) == 0;
}

/* Formats a value of a non-text type. */
static const char *number_text(const struct settings_key *key, const void *field,
                               char text[static FORMAT_MAX])
{
        const struct share *share = field;

        if (may_be_none(key) && is_cleared(key, field))
                return "none";
        switch (key->type) {
        case SETTINGS_CHOICE:
                return choice_name(key, *(const int *)field);
        case SETTINGS_FRAMEWORK:
                return (*(const struct traits *const *)field)->name;
        case SETTINGS_SIGNAL:
                return sigabbrev_np(*(const int *)field);
        case SETTINGS_COUNT:
                snprintf(text, FORMAT_MAX, "%u", *(const unsigned *)field);
                return text;
        case SETTINGS_SHARE:
                snprintf(text, FORMAT_MAX, "%u%s", share->value, share->percent ? "%" : "");
                return text;
        case SETTINGS_DURATION:
                return format_duration_exact(*(const usec_t *)field, text, FORMAT_MAX);
        default:
                return format_size_exact(*(const uint64_t *)field, text, FORMAT_MAX);
        }
}

int settings_value_text(const struct settings_key *key, const void *base, char **ret)
{
        const void *field = field_of(key, base);
        bool is_text = type_is_text(key->type);
        const char *value = is_text ? *(char *const *)field : NULL;
        char buffer[FORMAT_MAX];

        /* A key with a fallback always has a value. */
        if (is_text ? !value : key->unset && is_cleared(key, field)) {
                *ret = NULL;
                return 0;
        }
        char *text = is_text ? text_of_text(key, value) : strdup(number_text(key, field, buffer));
        if (!text)
                return -ENOMEM;
        *ret = text;
        return 0;
}
