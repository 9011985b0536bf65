/* SPDX-License-Identifier: MIT */
/* The command `stop`: drains a fleet. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/say.h"

int ctl_stop(struct ctl *ctl)
{
        const char *fleet = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "Stop", json_pack("{s:s, s:b}", "fleet", fleet, "force", (int)ctl->force),
                           &reply);

        if (r != CTL_DONE || !reply)
                return r;
        say_line("%s: %s", fleet,
                 ctl->force ? "stops now, without waiting for its jobs"
                            : "stops, each worker as its jobs are done");
        return CTL_DONE;
}
