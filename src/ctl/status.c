/* SPDX-License-Identifier: MIT */
/* The command `status`. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/render.h"
#include "ctl/reply.h"
#include "ctl/watch.h"

static int get_status(struct ctl *ctl, json_t **ret)
{
        return client_call(ctl, "GetStatus", json_pack("{s:o}", "fleets", client_fleets(ctl)), ret);
}

static int print_json(json_t *status)
{
        reply_print_json(status);
        return CTL_DONE;
}

int ctl_status(struct ctl *ctl)
{
        static const struct watched status = {
                .get = get_status, .render = render_status, .print_json = print_json};

        return watch_show(ctl, &status);
}
