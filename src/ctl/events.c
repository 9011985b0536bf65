/* SPDX-License-Identifier: MIT */
/* The command `events`: what has happened, and with --follow what happens. */
#include "ctl/ctl.h"
#include <stdio.h>
#include <string.h>
#include <time.h>

void ctl_print_event(json_t *event, bool colour)
{
        const char *level = ctl_string(event, "level");
        time_t at = (time_t)json_number_value(json_object_get(event, "at"));
        const char *begin = "";
        struct tm local;
        char stamp[32] = "";

        if (localtime_r(&at, &local))
                strftime(stamp, sizeof(stamp), "%Y-%m-%d %H:%M:%S", &local);
        if (colour && strcmp(level, "error") == 0)
                begin = "\033[31m";
        else if (colour && strcmp(level, "warning") == 0)
                begin = "\033[33m";
        printf("%s %s%s%s%s%s\n", stamp, begin, strcmp(level, "info") == 0 ? "" : level,
               strcmp(level, "info") == 0 ? "" : ": ", ctl_string(event, "text"), begin[0] ? "\033[0m" : "");
}

/* An argument with a slash is a worker, of which there can be one. */
static int call_parameters(const struct ctl *ctl, json_t **ret)
{
        bool worker = ctl->n_arguments > 0 && strchr(ctl->arguments[0], '/');

        if (worker && ctl->n_arguments > 1)
                return ctl_error(CTL_USAGE, "usage: sqmgrctl events [FLEET...|WORKER]");
        *ret = worker ? json_pack("{s:s}", "worker", ctl->arguments[0])
                      : json_pack("{s:o}", "fleets", ctl_fleets(ctl));
        return CTL_DONE;
}

int command_events(struct ctl *ctl)
{
        bool continues = true, colour = ctl_colour();
        json_t *parameters = NULL;
        int r = call_parameters(ctl, &parameters);

        if (r == CTL_DONE)
                r = client_send(ctl, "GetEvents", parameters, ctl->follow);
        while (continues && r == CTL_DONE) {
                struct varlink_reply reply;
                json_t *event;
                size_t i;

                r = client_receive(ctl, &reply);
                if (r != CTL_DONE)
                        return r == CTL_LOST ? client_tell_lost(ctl) : r;
                json_array_foreach(json_object_get(reply.parameters, "events"), i, event)
                {
                        if (ctl->json)
                                ctl_print_json(event);
                        else
                                ctl_print_event(event, colour);
                }
                fflush(stdout);
                continues = reply.continues;
                varlink_reply_free(&reply);
        }
        return r;
}
