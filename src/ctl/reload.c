/* SPDX-License-Identifier: MIT */
/* The command `reload`: the configuration is read again. */
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/say.h"

int ctl_reload(struct ctl *ctl)
{
        _cleanup_json_ json_t *reply = NULL;
        int r = client_ask(ctl, "Reload", json_object(), &reply);
        json_t *changes = json_object_get(reply, "changes"), *line;
        size_t i;

        if (r != CTL_DONE || !reply)
                return r;
        json_array_foreach(changes, i, line) say_line("%s", json_string_value(line));
        if (json_array_size(changes) == 0)
                say_line("reloaded, nothing changed");
        return CTL_DONE;
}
