/* SPDX-License-Identifier: MIT */
/* The command `abort`: ends restarts that are in progress. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/everywhere.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/say.h"

static int abort_here(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "Abort", json_pack("{s:o}", "fleets", client_fleets(ctl)), &reply);
        json_t *names = json_object_get(reply, "aborted"), *name;
        json_t *acknowledged = json_object_get(reply, "acknowledged");
        size_t i;

        if (r != CTL_DONE || !reply)
                return r;
        json_array_foreach(names, i, name)
                say_line("%s: restart aborted, no further old worker is quieted", json_string_value(name));
        json_array_foreach(acknowledged, i, name)
                say_line("%s: the halted restart is acknowledged, its workers stay as they are",
                         json_string_value(name));
        if (json_array_size(names) == 0 && json_array_size(acknowledged) == 0)
                say_line("no restart is in progress");
        return CTL_DONE;
}

int ctl_abort(struct ctl *ctl)
{
        return ctl->everywhere ? everywhere_abort(ctl) : abort_here(ctl);
}
