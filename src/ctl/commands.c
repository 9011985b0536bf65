/* SPDX-License-Identifier: MIT */
/* The short commands: one call, one answer. */
#include "base/parse.h"
#include "ctl/ctl.h"
#include "ctl/screen.h"
#include <stdio.h>
#include <string.h>

json_t *ctl_fleets(const struct ctl *ctl)
{
        _cleanup_json_ json_t *fleets = json_array();

        if (ctl->n_arguments == 0)
                return json_null();
        for (size_t i = 0; i < ctl->n_arguments; i++)
                if (json_array_append_new(fleets, json_string(ctl->arguments[i])) < 0)
                        return NULL;
        return TAKE_PTR(fleets);
}

void ctl_print_json(json_t *json)
{
        json_dumpf(json, stdout, JSON_COMPACT | JSON_REAL_PRECISION(15));
        putchar('\n');
        fflush(stdout);
}

bool ctl_colour(void)
{
        const char *no_color = getenv("NO_COLOR");

        return screen_is_there() && (!no_color || no_color[0] == '\0');
}

struct view ctl_view(void)
{
        return (struct view){.columns = screen_columns(STDOUT_FILENO), .colour = ctl_colour()};
}

const char *ctl_string(json_t *object, const char *key)
{
        const char *text = json_string_value(json_object_get(object, key));

        return text ? text : "";
}

long long ctl_integer(json_t *object, const char *key)
{
        return json_integer_value(json_object_get(object, key));
}

/* Calls method; *ret is NULL where the answer was printed as JSON. */
static int call(struct ctl *ctl, const char *method, json_t *parameters, json_t **ret)
{
        json_t *reply = NULL;
        int r = client_call(ctl, method, parameters, &reply);

        if (r == CTL_DONE && ctl->json) {
                ctl_print_json(reply);
                json_decref(reply);
                reply = NULL;
        }
        if (r == CTL_DONE)
                *ret = reply;
        return r;
}

int command_abort(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "Abort", json_pack("{s:o}", "fleets", ctl_fleets(ctl)), &reply);
        json_t *names = json_object_get(reply, "aborted"), *name;
        size_t i;

        if (r != CTL_DONE || !reply)
                return r;
        json_array_foreach(names, i, name)
                ctl_say("%s: restart aborted, no further old worker is quieted", json_string_value(name));
        if (json_array_size(names) == 0)
                ctl_say("no restart is in progress");
        return CTL_DONE;
}

int command_quiet(struct ctl *ctl)
{
        const char *target = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "Quiet", json_pack("{s:s}", "target", target), &reply);

        if (r != CTL_DONE || !reply)
                return r;
        if (json_is_true(json_object_get(reply, "leaving")))
                ctl_say("%s: is quiet or stopping already", target);
        else if (strchr(target, '/'))
                ctl_say("%s: takes no new jobs and is replaced", target);
        else
                ctl_say("%s: takes no new jobs until 'sqmgrctl start %s' or a restart", target, target);
        return CTL_DONE;
}

int command_stop(struct ctl *ctl)
{
        const char *fleet = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "Stop", json_pack("{s:s, s:b}", "fleet", fleet, "force", (int)ctl->force), &reply);

        if (r != CTL_DONE || !reply)
                return r;
        ctl_say("%s: %s", fleet,
                ctl->force ? "stops now, without waiting for its jobs"
                           : "stops, each worker as its jobs are done");
        return CTL_DONE;
}

int command_start(struct ctl *ctl)
{
        const char *fleet = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "Start", json_pack("{s:s}", "fleet", fleet), &reply);

        if (r != CTL_DONE || !reply)
                return r;
        ctl_say("%s: starts", fleet);
        return CTL_DONE;
}

int command_scale(struct ctl *ctl)
{
        const char *fleet = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        uint64_t count;

        if (parse_unsigned(ctl->arguments[1], 0, UINT32_MAX, &count) < 0)
                return ctl_error(CTL_USAGE, "'%s' is not a count of workers: a whole number is wanted",
                                 ctl->arguments[1]);
        int r = call(ctl, "Scale", json_pack("{s:s, s:I}", "fleet", fleet, "count", (json_int_t)count),
                     &reply);
        if (r != CTL_DONE || !reply)
                return r;
        ctl_say("%s: scales to %llu", fleet, (unsigned long long)count);
        return CTL_DONE;
}

int command_reload(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "Reload", json_object(), &reply);
        json_t *changes = json_object_get(reply, "changes"), *line;
        size_t i;

        if (r != CTL_DONE || !reply)
                return r;
        json_array_foreach(changes, i, line) ctl_say("%s", json_string_value(line));
        if (json_array_size(changes) == 0)
                ctl_say("reloaded, nothing changed");
        return CTL_DONE;
}

int command_reexec(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "Reexec", json_object(), &reply);

        if (r == CTL_DONE && reply)
                ctl_say("sqmgr %s runs in its place (pid %lld)", ctl_string(reply, "version"),
                        ctl_integer(reply, "pid"));
        return r;
}

int command_metrics(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "GetMetrics", json_object(), &reply);

        if (r == CTL_DONE && reply)
                fputs(ctl_string(reply, "text"), stdout);
        return r;
}

int command_ping(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "Ping", json_object(), &reply);

        if (r == CTL_DONE && reply)
                ctl_say("sqmgr answers");
        return r;
}

int command_version(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = call(ctl, "GetVersion", json_object(), &reply);

        if (r == CTL_DONE && reply)
                ctl_say("sqmgr %s", ctl_string(reply, "version"));
        return r;
}
