/* SPDX-License-Identifier: MIT */
/* The command `version`: the version of the sqmgr that runs. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"

int ctl_version(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "GetVersion", json_object(), &reply);

        if (r == CTL_DONE && reply)
                say_line("sqmgr %s", reply_string(reply, "version"));
        return r;
}
