/* SPDX-License-Identifier: MIT */
/* The command `metrics`: numbers for Prometheus. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include <stdio.h>

int ctl_metrics(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "GetMetrics", json_object(), &reply);

        if (r == CTL_DONE && reply)
                fputs(reply_string(reply, "text"), stdout);
        return r;
}
