/* SPDX-License-Identifier: MIT */
/* Formats sqmgr's replies as the phrases that both the terminal and the page show. */
#include "wire/reply.h"
#include "base/printable.h"
#include "base/text.h"
#include <stdarg.h>

/* Longer times (300 years) are shown as this. */
#define SECONDS_MAX 1e10

static int clean_string(json_t *string, bool keep_newlines)
{
        size_t length = json_string_length(string);
        _cleanup_free_ char *copy = malloc(length + 1);

        if (!copy)
                return -ENOMEM;
        memcpy(copy, json_string_value(string), length + 1);
        printable_replace(copy, length, keep_newlines);
        return json_string_setn(string, copy, length) < 0 ? -ENOMEM : 0;
}

static bool is_printable(const char *name)
{
        _cleanup_free_ char *copy = printable_copy(name, false);

        return copy && strcmp(copy, name) == 0;
}

static int clean(json_t *value, const char *lines, bool keep_newlines)
{
        const char *name;
        json_t *member;
        void *next;
        int r = 0;

        if (json_is_string(value))
                return clean_string(value, keep_newlines);
        json_foreach(member, value)
                r = r < 0 ? r : clean(member, lines, false);
        json_object_foreach_safe(value, next, name, member)
        {
                keep_newlines = strcmp(name, "quoted") == 0 || (lines && strcmp(name, lines) == 0);
                if (!is_printable(name))
                        (void)json_object_del(value, name);
                else if (r == 0)
                        r = clean(member, lines, keep_newlines);
        }
        return r;
}

int reply_clean(json_t *reply, const char *lines)
{
        return clean(reply, lines, false);
}

int reply_decode(const char *text, size_t size, size_t max, const char *lines, struct varlink_reply *ret)
{
        struct varlink_reply reply;
        int r = varlink_decode_reply(text, size, max, &reply);

        if (r < 0)
                return r;
        r = reply_clean(reply.message, lines);
        if (r < 0) {
                varlink_reply_free(&reply);
                return r;
        }
        /* Cleaning replaces the text of a string. */
        reply.error = json_string_value(json_object_get(reply.message, "error"));
        *ret = reply;
        return 0;
}

const char *reply_string(const json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

const char *reply_server_kind(const json_t *redis)
{
        const char *kind = reply_string(redis, "kind");

        return strcmp(kind, "redis") == 0 ? "redis" : "database";
}

long long reply_integer(const json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

bool reply_is_true(const json_t *object, const char *key)
{
        return json_is_true(json_object_get(object, key));
}

bool reply_is(const json_t *object, const char *key, const char *value)
{
        return strcmp(reply_string(object, key), value) == 0;
}

const char *reply_quoting(const json_t *object, const char *text, char ret[static REPLY_QUOTING_MAX])
{
        const char *quoted = reply_string(object, "quoted");

        snprintf(ret, REPLY_QUOTING_MAX, "%s%s%s", text, quoted[0] != '\0' ? ":\n" : "", quoted);
        return ret;
}

usec_t reply_usec(const json_t *object, const char *key)
{
        double seconds = json_number_value(json_object_get(object, key));

        return seconds > 0 ? (usec_t)(MIN(seconds, SECONDS_MAX) * (double)USEC_PER_SEC) : 0;
}

long long reply_percent(long long part, long long whole)
{
        return (long long)MIN((double)part * 100 / (double)whole, 1e6);
}

const char *reply_seconds(const json_t *object, const char *key, char *text)
{
        usec_t usec = reply_usec(object, key);

        /* Fractions of a second are noise in a table. */
        return format_duration(usec - usec % USEC_PER_SEC, text, FORMAT_MAX);
}

const char *reply_seconds_left(const json_t *object, const char *key, char *text)
{
        usec_t usec = usec_add(reply_usec(object, key), USEC_PER_SEC - 1);

        return format_duration(usec - usec % USEC_PER_SEC, text, FORMAT_MAX);
}

const char *reply_memory(const json_t *object, char *text)
{
        long long bytes = reply_integer(object, "memory_bytes");

        if (bytes <= 0) {
                snprintf(text, FORMAT_MAX, "-");
                return text;
        }
        return format_size((uint64_t)bytes, text, FORMAT_MAX);
}

const char *reply_worker_state(const json_t *worker)
{
        return reply_is_true(worker, "hung") ? "hung" : reply_string(worker, "state");
}

bool reply_has_heartbeat(const json_t *worker)
{
        return !json_is_null(json_object_get(worker, "beat_age_seconds"));
}

const char *reply_heartbeat_age(const json_t *worker, char *text)
{
        return reply_seconds(worker, "beat_age_seconds", text);
}

const char *reply_worker_since(const json_t *worker, char *text)
{
        return reply_is_true(worker, "hung") ? reply_heartbeat_age(worker, text)
                                             : reply_seconds(worker, "state_seconds", text);
}

/* Appends a phrase to text, a buffer of size bytes. */
static void add_phrase(char *text, size_t size, const char *phrase)
{
        if (phrase[0] != '\0')
                text_append(text, size, "%s%s", text[0] != '\0' ? "; " : "", phrase);
}

#define PHRASE_MAX 64

static const char *ready_text(const json_t *worker, char text[static PHRASE_MAX])
{
        char left[FORMAT_MAX];

        if (!json_is_number(json_object_get(worker, "ready_seconds")))
                return "not ready yet";
        snprintf(text, PHRASE_MAX, "ready in %s", reply_seconds_left(worker, "ready_seconds", left));
        return text;
}

void reply_worker_why(const json_t *worker, char *text, size_t size)
{
        const char *state = reply_worker_state(worker), *evidence = reply_string(worker, "evidence");
        const char *waits_for = reply_string(worker, "waits_for");
        bool active = strcmp(state, "active") == 0;
        char phrase[PHRASE_MAX];

        text[0] = '\0';
        add_phrase(text, size, reply_string(worker, "reason"));
        if (reply_is_true(worker, "outdated") && text[0] == '\0')
                add_phrase(text, size, "outdated");
        add_phrase(text, size, waits_for);
        if (active && strcmp(evidence, "title") == 0 && waits_for[0] == '\0')
                add_phrase(text, size, "seen by process title only");
        else if (active && strcmp(evidence, "none") == 0 && waits_for[0] == '\0')
                add_phrase(text, size, "no fresh heartbeat");
        else if (active && !reply_is_true(worker, "ready"))
                add_phrase(text, size, ready_text(worker, phrase));
}

const char *reply_at_zero(const json_t *fleet)
{
        /* During a shutdown the target of every fleet is 0. */
        if (!reply_is(fleet, "state", "running") || reply_integer(fleet, "target") != 0 ||
            reply_integer(fleet, "configured") != 0 ||
            json_array_size(json_object_get(fleet, "workers")) != 0)
                return "";
        return json_is_object(json_object_get(fleet, "scaling")) ? "asleep, " : "disabled, ";
}

const char *reply_rollout(const json_t *rollout, char text[static REPLY_ROLLOUT_MAX])
{
        const char *state = reply_string(rollout, "state");
        long long replaced = reply_integer(rollout, "replaced"),
                  outdated = reply_integer(rollout, "outdated"),
                  draining = reply_integer(rollout, "draining");

        text[0] = '\0';
        if (json_is_integer(json_object_get(rollout, "rolled_back"))) {
                snprintf(text, REPLY_ROLLOUT_MAX,
                         "rolled back from %lld to %lld (%lld replaced, %lld outdated)",
                         reply_integer(rollout, "rolled_back"), reply_integer(rollout, "generation"),
                         replaced, outdated);
                return text;
        }
        /* An aborted restart is shown while outdated workers remain. */
        if (state[0] == '\0' || strcmp(state, "none") == 0 ||
            (strcmp(state, "aborted") == 0 && outdated == 0))
                return text;
        snprintf(text, REPLY_ROLLOUT_MAX, "restart %.32s", state);
        if (strcmp(state, "done") != 0)
                text_append(text, REPLY_ROLLOUT_MAX, " (%lld replaced, %lld outdated)", replaced, outdated);
        else if (draining > 0)
                text_append(text, REPLY_ROLLOUT_MAX, ", %lld draining", draining);
        return text;
}

const char *reply_trial(const json_t *fleet, char text[static REPLY_TRIAL_MAX])
{
        const json_t *trial = json_object_get(fleet, "trial");
        char left[FORMAT_MAX];

        text[0] = '\0';
        /* An aborted restart ends its trial without a verdict. */
        if (reply_is(trial, "verdict", "running") &&
            reply_is(json_object_get(fleet, "rollout"), "state", "running"))
                snprintf(text, REPLY_TRIAL_MAX, "trial: %.160s; ends within %s", reply_string(trial, "text"),
                         reply_seconds_left(trial, "left_seconds", left));
        return text;
}

const char *reply_template(const json_t *template, char text[static REPLY_TEMPLATE_MAX])
{
        const char *refused = reply_string(template, "refused"), *state = reply_string(template, "state");
        json_t *kept = json_object_get(template, "kept_generation");
        char memory[FORMAT_MAX];

        text[0] = '\0';
        if (refused[0] != '\0') {
                snprintf(text, REPLY_TEMPLATE_MAX, "template: none, workers boot separately: %s", refused);
                return text;
        }
        if (!json_is_object(template))
                return text;
        snprintf(text, REPLY_TEMPLATE_MAX, "template: %.32s, generation %lld",
                 state[0] != '\0' ? state : "none", reply_integer(template, "generation"));
        if (reply_integer(template, "memory_bytes") > 0)
                text_append(text, REPLY_TEMPLATE_MAX, ", %s", reply_memory(template, memory));
        if (json_is_integer(kept))
                text_append(text, REPLY_TEMPLATE_MAX, "; template of generation %lld kept",
                            (long long)json_integer_value(kept));
        if (json_is_integer(kept) && reply_integer(template, "kept_memory_bytes") > 0)
                text_append(text, REPLY_TEMPLATE_MAX, ", %s",
                            format_size((uint64_t)reply_integer(template, "kept_memory_bytes"), memory,
                                        sizeof(memory)));
        if (json_is_integer(kept) && json_is_number(json_object_get(template, "kept_seconds")))
                text_append(text, REPLY_TEMPLATE_MAX, ", for %s: 'sqmgrctl rollback' returns to it",
                            reply_seconds_left(template, "kept_seconds", memory));
        return text;
}

const char *reply_scaling(const json_t *scaling, char text[static REPLY_SCALING_MAX])
{
        text[0] = '\0';
        if (json_is_object(scaling))
                snprintf(text, REPLY_SCALING_MAX, "autoscaling, %lld to %lld workers: %.560s",
                         reply_integer(scaling, "min"), reply_integer(scaling, "max"),
                         reply_string(scaling, "because"));
        return text;
}

json_t *reply_lacks(const json_t *status)
{
        _cleanup_json_ json_t *lacks = json_array();
        const json_t *problems = json_object_get(status, "problems"), *problem;
        int r = lacks ? 0 : -1;

        if (!json_is_array(json_object_get(status, "fleets")) || !json_is_array(problems))
                r = r < 0 ? r
                          : json_array_append_new(lacks, json_string("sqmgr has not reported its status"));
        json_foreach(problem, r < 0 ? NULL : problems)
                if (reply_is_true(problem, "unready"))
                        r = r < 0 ? r : json_array_append(lacks, json_object_get(problem, "summary"));
        return r < 0 ? NULL : TAKE_PTR(lacks);
}

#define MEBIBYTES(n) ((size_t)(n) << 20)

/* Each limit is several times what sqmgr sends, except for the workers: the status of 10,000 workers in 1,000
 * fleets has 293,000 values in 6 MB. */
const struct reply_limits reply_limits[] = {
        [INSTANCE_QUERY_STATUS] = {.bytes = MEBIBYTES(8),
                                   .values = 320000,
                                   .containers = 40000,
                                   .string_bytes = 16384,
                                   .escaped = 200000},
        [INSTANCE_QUERY_EVENTS] = {.bytes = MEBIBYTES(4),
                                   .values = 20000,
                                   .containers = 5000,
                                   .string_bytes = 16384,
                                   .escaped = 200000},
        [INSTANCE_QUERY_QUEUES] = {.bytes = MEBIBYTES(4),
                                   .values = 50000,
                                   .containers = 10000,
                                   .string_bytes = 16384,
                                   .escaped = 200000},
        [INSTANCE_QUERY_METRICS] = {.bytes = MEBIBYTES(8),
                                    .values = 100,
                                    .containers = 10,
                                    .string_bytes = MEBIBYTES(8),
                                    .escaped = MEBIBYTES(8)},
        [INSTANCE_QUERY_TERMINAL] = {.bytes = VARLINK_REPLY_MAX,
                                     .values = 640000,
                                     .containers = 80000,
                                     .string_bytes = 65536,
                                     .escaped = VARLINK_REPLY_MAX},
};
static_assert(ELEMENTSOF(reply_limits) == _INSTANCE_QUERY_MAX + 1, "limits for each query");

/* Writes the reason. Returns false, for the caller to return. */
static _printf_(2, 3) bool refuse(char *reason, const char *format, ...)
{
        va_list arguments;

        va_start(arguments, format);
        vsnprintf(reason, REPLY_REASON_MAX, format, arguments);
        va_end(arguments);
        return false;
}

bool reply_limits_scan(enum instance_query query, const char *text, size_t size,
                       char reason[static REPLY_REASON_MAX])
{
        const struct reply_limits *limits = &reply_limits[query];
        struct json_counts counts;

        if (size > limits->bytes)
                return refuse(reason, "more than %zu bytes", limits->bytes);
        json_count(text, size, &counts);
        if (counts.string_bytes > limits->string_bytes)
                return refuse(reason, "a text of more than %zu bytes", limits->string_bytes);
        if (counts.containers > limits->containers)
                return refuse(reason, "more than %zu lists and objects", limits->containers);
        if (counts.values > limits->values)
                return refuse(reason, "more than %zu values", limits->values);
        if (counts.escaped > limits->escaped)
                return refuse(reason, "more than %zu characters of markup", limits->escaped);
        if (counts.depth > REPLY_DEPTH_MAX)
                return refuse(reason, "more than %d levels", REPLY_DEPTH_MAX);
        return true;
}

static bool check_workers(const json_t *fleet, size_t *n, char *reason)
{
        const json_t *worker;

        json_foreach_in(worker, fleet, "workers") {
                if (++*n > REPLY_WORKERS_MAX)
                        return refuse(reason, "more than %d workers", REPLY_WORKERS_MAX);
                if (strlen(reply_string(worker, "id")) > REPLY_NAME_MAX)
                        return refuse(reason, "a worker name of more than %d bytes", REPLY_NAME_MAX);
        }
        return true;
}

/* Refuses fleets of the same name: the page shows each event with every fleet of its name, so a thousand of
 * them would show it a thousand times. */
static bool check_fleets(const json_t *answer, char *reason)
{
        _cleanup_json_ json_t *names = json_object();
        const json_t *fleet;
        size_t n = 0, n_workers = 0;

        json_foreach_in(fleet, answer, "fleets") {
                const char *name = reply_string(fleet, "name");

                if (++n > REPLY_FLEETS_MAX)
                        return refuse(reason, "more than %d fleets", REPLY_FLEETS_MAX);
                if (strlen(name) > REPLY_NAME_MAX)
                        return refuse(reason, "a fleet name of more than %d bytes", REPLY_NAME_MAX);
                if (json_object_get(names, name))
                        return refuse(reason, "two fleets with the same name");
                if (json_object_set_new(names, name, json_true()) < 0)
                        return refuse(reason, "more data than memory is available for");
                if (!check_workers(fleet, &n_workers, reason))
                        return false;
        }
        return true;
}

/* Returns about how many bytes of memory the value needs. */
static size_t value_bytes(json_t *value)
{
        size_t bytes = 64;
        const char *key;
        json_t *member;

        if (json_is_string(value))
                return bytes + json_string_length(value);
        json_object_foreach(value, key, member) bytes += strlen(key) + value_bytes(member);
        json_foreach(member, value)
                bytes += value_bytes(member);
        return bytes;
}

static bool check_events(const json_t *answer, char *reason)
{
        json_t *event;
        size_t n = 0;

        json_foreach_in(event, answer, "events") {
                if (++n > REPLY_EVENTS_MAX)
                        return refuse(reason, "more than %d events", REPLY_EVENTS_MAX);
                if (value_bytes(event) > REPLY_EVENT_BYTES_MAX)
                        return refuse(reason, "an event of more than %zu bytes", REPLY_EVENT_BYTES_MAX);
        }
        return true;
}

static bool check_metrics(const json_t *answer, char *reason)
{
        const char *text = reply_string(answer, "text");
        size_t n = 0;

        while ((text = strchr(text, '\n'))) {
                text++;
                n++;
        }
        return n <= REPLY_METRICS_MAX || refuse(reason, "more than %d lines of metrics", REPLY_METRICS_MAX);
}

bool reply_limits_check(enum instance_query query, const json_t *answer, char reason[static REPLY_REASON_MAX])
{
        switch ((int)query) {
        case INSTANCE_QUERY_STATUS:
                return check_fleets(answer, reason);
        case INSTANCE_QUERY_TERMINAL:
                return check_fleets(answer, reason) && check_events(answer, reason);
        case INSTANCE_QUERY_EVENTS:
                return check_events(answer, reason);
        case INSTANCE_QUERY_METRICS:
                return check_metrics(answer, reason);
        default:
                return true;
        }
}
