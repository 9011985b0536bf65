/* SPDX-License-Identifier: MIT */
/* Formats sqmgr's replies as the phrases that both the terminal and the page show. */
#include "wire/reply.h"
#include "base/printable.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

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
        _cleanup_free_ char *copy = strdup(name);

        if (copy)
                printable_replace(copy, strlen(copy), false);
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
