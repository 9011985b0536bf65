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
        if (reply_is_true(reply, "leaving"))
                say_line("%s: is quiet or stopping already", target);
        else if (strchr(target, '/'))
                say_line("%s: takes no new jobs and is replaced", target);
        else
                say_line("%s: takes no new jobs until 'sqmgrctl start %s' or a restart", target, target);
        return CTL_DONE;
}
