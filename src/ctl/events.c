/* SPDX-License-Identifier: MIT */
/* The command `events`: past events, and with --follow new ones. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/follow.h"
#include "ctl/output.h"
#include "ctl/render.h"
#include <stdio.h>
#include <string.h>

struct events_shown {
        double last_at; /* time of the last printed event */
        bool again;     /* the connection was lost since then */
};

/* An argument with a slash is a worker; only one is allowed. */
static bool names_worker(const struct ctl *ctl)
{
        return ctl->n_arguments > 0 && strchr(ctl->arguments[0], '/');
}

static int send_call(struct follow *follow)
{
        struct ctl *ctl = follow->ctl;
        json_t *parameters = names_worker(ctl) ? json_pack("{s:s}", "worker", ctl->arguments[0])
                                               : json_pack("{s:o}", "fleets", client_fleets(ctl));

        return client_send(ctl, "GetEvents", parameters, ctl->follow);
}

/* After a reconnect, a new sqmgr process does not have the earlier events. The same process sends them again,
 * so events that were printed already are skipped. */
static int take_events(struct follow *follow, json_t *reply)
{
        struct events_shown *printed = follow->userdata;
        json_t *events = json_object_get(reply, "events"), *event;
        struct view view = screen_view();
        double after = printed->again ? printed->last_at : 0;
        size_t i, first = 0, n = json_array_size(events);

        printed->again = false;
        if (follow->ctl->lines < n && after == 0)
                first = n - (size_t)follow->ctl->lines;
        json_array_foreach(events, i, event)
        {
                if (i < first)
                        continue;
                double at = json_number_value(json_object_get(event, "at"));

                if (at <= after)
                        continue;
                printed->last_at = MAX(printed->last_at, at);
                if (follow->ctl->json)
                        output_print_json(event);
                else
                        render_event(stdout, event, &view);
        }
        fflush(stdout);
        return CTL_DONE;
}

static int fail(struct follow *follow, int code)
{
        struct ctl *ctl = follow->ctl;
        struct events_shown *printed = follow->userdata;

        if (code != CTL_LOST)
                return code;
        if (!ctl->follow || ferror(stdout))
                return client_report_lost(ctl);
        printed->again = true;
        follow->until = ctl->deadline;
        if (follow_away(follow) == CTL_DONE)
                return CTL_DONE;
        return output_error(CTL_CONNECT, "cannot reconnect to '%s': %s", ctl->socket,
                            strerrordesc_np(ctl->connect_error));
}

int ctl_events(struct ctl *ctl)
{
        struct events_shown printed = {0};
        struct follow follow = {
                .ctl = ctl, .userdata = &printed, .send = send_call, .take = take_events, .fail = fail};

        if (names_worker(ctl) && ctl->n_arguments > 1)
                return usage_error(ctl->command, "give one worker, or fleets");
        return follow_run(&follow);
}
