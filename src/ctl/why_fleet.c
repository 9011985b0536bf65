/* SPDX-License-Identifier: MIT */
/* `why FLEET`: what happened to a fleet as a whole, and why it has the count that it has. */
#include "ctl/why_fleet.h"
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/exit.h"
#include "ctl/render.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include "ctl/screen.h"
#include <stdio.h>

/* Those of its workers have a story of their own. */
static void print_events(json_t *events, const struct view *view)
{
        json_t *event;
        size_t i;

        json_array_foreach(events, i, event) if (reply_string(event, "worker")[0] == '\0')
                render_event(stdout, event, view);
}

static void print_scaling(json_t *fleet, const struct view *view)
{
        json_t *scaling = json_object_get(fleet, "scaling"), *line;
        char text[REPLY_SCALING_MAX];
        size_t i;

        if (!json_is_object(scaling)) {
                text_print_wrapped(stdout,
                                   "Its count does not follow its queues: active_process_max is not set", 0,
                                   2, view->columns);
                return;
        }
        reply_scaling(scaling, text);
        text_print_wrapped(stdout, text, 0, 2, view->columns);
        json_array_foreach(json_object_get(scaling, "arithmetic"), i, line)
        {
                fputs("  ", stdout);
                text_print_wrapped(stdout, json_string_value(line) ?: "", 2, 4, view->columns);
        }
}

static int tell(const struct ctl *ctl, json_t *fleet, json_t *events)
{
        struct view view = screen_view();

        if (ctl->json) {
                _cleanup_json_ json_t *json = json_pack("{s:O, s:O}", "fleet", fleet, "events", events);

                if (!json)
                        return say_error(CTL_FAILED, "there is too little memory");
                reply_print_json(json);
                return CTL_DONE;
        }
        _cleanup_free_ char *summary = render_fleet_summary(fleet);
        if (!summary)
                return say_error(CTL_FAILED, "there is too little memory");
        print_events(events, &view);
        text_print_wrapped(stdout, summary, 0, 2, view.columns);
        print_scaling(fleet, &view);
        return CTL_DONE;
}

int why_fleet(struct ctl *ctl)
{
        _cleanup_json_ json_t *status = NULL, *events = NULL;
        int r = client_call(ctl, "GetStatus", json_pack("{s:o}", "fleets", client_fleets(ctl)), &status);

        client_close(ctl);
        if (r == CTL_DONE)
                r = client_call(ctl, "GetEvents", json_pack("{s:o}", "fleets", client_fleets(ctl)), &events);
        if (r != CTL_DONE)
                return r;
        return tell(ctl, json_array_get(json_object_get(status, "fleets"), 0),
                    json_object_get(events, "events"));
}
