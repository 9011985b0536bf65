/* SPDX-License-Identifier: MIT */
/* The command `doctor`: what there may be wrong with the surroundings, and what to do about it. */
#include "ctl/ctl.h"
#include <stdio.h>
#include <string.h>

static void print_finding(json_t *finding, bool colour)
{
        const char *level = ctl_string(finding, "level"), *remedy = ctl_string(finding, "remedy");
        const char *begin = strcmp(level, "problem") == 0   ? "\033[31m"
                            : strcmp(level, "warning") == 0 ? "\033[33m"
                                                            : "\033[32m";

        printf("%s%-7s%s  %s: %s%s%s\n", colour ? begin : "", level, colour ? "\033[0m" : "",
               ctl_string(finding, "about"), ctl_string(finding, "text"), remedy[0] != '\0' ? "; " : "",
               remedy);
}

int command_doctor(struct ctl *ctl)
{
        bool colour = ctl_colour(), bad = false;
        json_t *reply = NULL, *finding;
        size_t i;
        int r = client_call(ctl, "GetDiagnosis", json_object(), &reply);

        if (r != CTL_DONE)
                return r;
        if (ctl->json)
                ctl_print_json(reply);
        json_array_foreach(json_object_get(reply, "findings"), i, finding)
        {
                bad |= strcmp(ctl_string(finding, "level"), "problem") == 0;
                if (!ctl->json)
                        print_finding(finding, colour);
        }
        json_decref(reply);
        return bad ? CTL_FAILED : CTL_DONE;
}
