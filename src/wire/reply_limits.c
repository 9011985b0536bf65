/* SPDX-License-Identifier: MIT */
/* Limits on the replies of sqmgr. No I/O. */
#include "wire/reply_limits.h"
#include "wire/reply.h"
#include "wire/varlink.h"
#include <stdarg.h>
#include <stdio.h>

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

struct census {
        size_t values, containers, depth, escaped;
};

/* Returns the end of the string that begins at text: its closing quote, or the NUL. */
static const char *take_string(struct census *census, const char *text)
{
        while (*(text += strcspn(text, "\"\\&<>'")) != '\0' && *text != '"') {
                bool pair = text[0] == '\\' && text[1] != '\0';

                census->escaped++;
                text += pair ? 2 : 1;
        }
        return text;
}

/* Takes the character at `at`, outside of strings. Garbage is counted, too; the parser rejects it later. */
static void take_character(struct census *census, char at)
{
        bool opens = at == '{' || at == '[', closes = at == '}' || at == ']';

        census->containers += opens;
        census->values += opens || at == ',';
        census->depth += opens;
        census->depth -= closes && census->depth > 0;
}

static bool check_census(const struct census *census, const struct reply_limits *limits, char *reason)
{
        if (census->containers > limits->containers)
                return refuse(reason, "more than %zu lists and objects", limits->containers);
        if (census->values > limits->values)
                return refuse(reason, "more than %zu values", limits->values);
        if (census->escaped > limits->escaped)
                return refuse(reason, "more than %zu characters of markup", limits->escaped);
        if (census->depth > REPLY_DEPTH_MAX)
                return refuse(reason, "more than %d levels", REPLY_DEPTH_MAX);
        return true;
}

bool reply_limits_scan(enum instance_query query, const char *text, size_t size,
                       char reason[static REPLY_REASON_MAX])
{
        const struct reply_limits *limits = &reply_limits[query];
        struct census census = {0};

        if (size > limits->bytes)
                return refuse(reason, "more than %zu bytes", limits->bytes);
        for (const char *at = text; *(at += strcspn(at, "\"{}[],")) != '\0'; at++) {
                if (*at == '"') {
                        const char *end = take_string(&census, at + 1);

                        if ((size_t)(end - at - 1) > limits->string_bytes)
                                return refuse(reason, "a text of more than %zu bytes", limits->string_bytes);
                        at = end - (*end == '\0');
                } else {
                        take_character(&census, *at);
                }
                if (!check_census(&census, limits, reason))
                        return false;
        }
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
