/* SPDX-License-Identifier: MIT */
/* The command `ping`: does sqmgr answer?. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/say.h"

int ctl_ping(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "Ping", json_object(), &reply);

        if (r == CTL_DONE && reply)
                say_line("sqmgr answers");
        return r;
}
