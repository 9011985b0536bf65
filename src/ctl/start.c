/* SPDX-License-Identifier: MIT */
/* The command `start`: brings a fleet back. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/say.h"

int ctl_start(struct ctl *ctl)
{
        const char *fleet = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "Start", json_pack("{s:s}", "fleet", fleet), &reply);

        if (r != CTL_DONE || !reply)
                return r;
        say_line("%s: starts", fleet);
        return CTL_DONE;
}
