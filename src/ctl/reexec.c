/* SPDX-License-Identifier: MIT */
/* The command `reexec`: the installed sqmgr takes over. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"

int ctl_reexec(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "Reexec", json_object(), &reply);

        if (r == CTL_DONE && reply)
                say_line("sqmgr %s runs in its place (pid %lld)", reply_string(reply, "version"),
                         reply_integer(reply, "pid"));
        return r;
}
