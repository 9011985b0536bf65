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

int ctl_events(struct ctl *ctl)
{
        bool continues = true;
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
                struct view view = screen_view();
                json_array_foreach(json_object_get(reply.parameters, "events"), i, event)
                {
                        if (ctl->json)
                                reply_print_json(event);
                        else
                                render_event(stdout, event, &view);
                }
                fflush(stdout);
                continues = reply.continues;
                varlink_reply_free(&reply);
        }
        return r;
}
