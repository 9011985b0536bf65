/* SPDX-License-Identifier: MIT */
/* The command `quiet`: no new jobs for a fleet or a worker. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"
#include <string.h>

int ctl_quiet(struct ctl *ctl)
{
        const char *target = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "Quiet", json_pack("{s:s}", "target", target), &reply);

        if (r != CTL_DONE || !reply)
                return r;
        bool exits = reply_is_true(reply, "exits");
        if (reply_is_true(reply, "leaving"))
                say_line("%s: is quiet or stopping already", target);
        else if (strchr(target, '/'))
                say_line("%s: %s and is replaced", target, exits ? "is told to exit" : "takes no new jobs");
        else
                say_line("%s: %s until 'sqmgrctl start %s' or a restart", target,
                         exits ? "its workers are told to exit, and none is started" : "takes no new jobs",
                         target);
        return CTL_DONE;
}
