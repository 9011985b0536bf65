/* SPDX-License-Identifier: MIT */
/* The command `events`: what has happened, and with --follow what happens. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/render.h"
#include "ctl/reply.h"
#include "ctl/usage.h"
#include <stdio.h>
#include <string.h>

/* An argument with a slash is a worker, of which there can be one. */
static int call_parameters(const struct ctl *ctl, json_t **ret)
{
        bool worker = ctl->n_arguments > 0 && strchr(ctl->arguments[0], '/');

        if (worker && ctl->n_arguments > 1)
                return usage_error(ctl->command, "a worker is asked for alone");
        *ret = worker ? json_pack("{s:s}", "worker", ctl->arguments[0])
                      : json_pack("{s:o}", "fleets", client_fleets(ctl));
        return CTL_DONE;
}

/* Prints those that came after `after`; *last_at is the time of the last one that was printed. */
static void print_events(const struct ctl *ctl, json_t *events, double after, double *last_at)
{
        struct view view = screen_view();
        size_t i, first = 0, n = json_array_size(events);
        json_t *event;

        if (ctl->lines < n && after == 0)
                first = n - (size_t)ctl->lines;
        json_array_foreach(events, i, event)
        {
                if (i < first)
                        continue;
                double at = json_number_value(json_object_get(event, "at"));

                if (at <= after)
                        continue;
                *last_at = MAX(*last_at, at);
                if (ctl->json)
                        reply_print_json(event);
                else
                        render_event(stdout, event, &view);
        }
        fflush(stdout);
}

int ctl_events(struct ctl *ctl)
{
        bool continues = true, again = false;
        json_t *parameters = NULL;
        double last_at = 0, first_at;
        int r = call_parameters(ctl, &parameters);

        if (r == CTL_DONE)
                r = client_send(ctl, "GetEvents", parameters, ctl->follow);
        while (continues && r == CTL_DONE) {
                struct varlink_reply reply;

                r = client_receive(ctl, &reply);
                if (r == CTL_LOST && ctl->follow && !ferror(stdout)) {
                        (void)call_parameters(ctl, &parameters);
                        r = client_send_again(ctl, "GetEvents", parameters, true);
                        again = true;
                        continue;
                }
                if (r != CTL_DONE)
                        return r == CTL_LOST ? client_tell_lost(ctl) : r;
                /* The next sqmgr has none of those before; the same one would tell them again. */
                first_at = again ? last_at : 0;
                again = false;
                print_events(ctl, json_object_get(reply.parameters, "events"), first_at, &last_at);
                continues = reply.continues;
                varlink_reply_free(&reply);
        }
        return r;
}
