/* SPDX-License-Identifier: MIT */
/* Handles RestartEverywhere, AbortEverywhere, ForgetHost and GetRollouts. */
#include "daemon/api/handler.h"

/* The fleet that is named, or NULL where the call was answered with an error. */
static struct fleet *parse_grouped(struct control *control, struct call *call, json_t *parameters)
{
        struct fleet *fleet = handler_parse_fleet(control, call, parameters);

        if (fleet)
                handler_refuse(
                        call,
                        "fleet '%s' has no rollout_group: set one in its section on each host, and reload",
                        fleet->settings->name);
        return NULL;
}

void handle_restart_everywhere(struct control *control, struct call *call, json_t *parameters,
                               usec_t now _unused_)
{
        (void)parse_grouped(control, call, parameters);
}

void handle_abort_everywhere(struct control *control, struct call *call, json_t *parameters,
                             usec_t now _unused_)
{
        (void)parse_grouped(control, call, parameters);
}

void handle_forget_host(struct control *control, struct call *call, json_t *parameters, usec_t now _unused_)
{
        (void)parse_grouped(control, call, parameters);
}

void handle_get_rollouts(struct control *control, struct call *call, json_t *parameters, usec_t now _unused_)
{
        _cleanup_(handler_fleets_free) struct handler_fleets list = {0};

        if (!handler_parse_fleets(control, call, parameters, &list))
                return;
        server_reply(call, json_pack("{s:[]}", "rollouts"), false);
}
