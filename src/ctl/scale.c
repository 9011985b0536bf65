/* SPDX-License-Identifier: MIT */
/* The command `scale`: how many workers take jobs. */
#include "base/parse.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/say.h"
#include <string.h>

int ctl_scale(struct ctl *ctl)
{
        const char *fleet = ctl->arguments[0];
        _cleanup_json_ json_t *reply = NULL;
        uint64_t count = 0;
        bool automatic = strcmp(ctl->arguments[1], "auto") == 0;

        if (!automatic && parse_unsigned(ctl->arguments[1], 0, UINT32_MAX, &count) < 0)
                return say_error(CTL_USAGE,
                                 "'%s' is not a count of workers: a whole number is wanted, or auto",
                                 ctl->arguments[1]);
        /* An older sqmgr knows a count alone. */
        json_t *parameters = automatic ? json_pack("{s:s, s:b}", "fleet", fleet, "auto", 1)
                                       : json_pack("{s:s, s:I}", "fleet", fleet, "count", (json_int_t)count);
        int r = client_ask(ctl, "Scale", parameters, &reply);
        if (r != CTL_DONE || !reply)
                return r;
        if (automatic) {
                say_line("%s: its count follows its queues", fleet);
                return CTL_DONE;
        }
        say_line("%s: scales to %llu", fleet, (unsigned long long)count);
        return CTL_DONE;
}
