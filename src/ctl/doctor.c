/* SPDX-License-Identifier: MIT */
/* The command `doctor`: what there may be wrong with the surroundings, and what to do about it. */
#include "ctl/ctl.h"
#include <stdio.h>
#include <string.h>

/* What is found begins behind the level, and what is to be done about it. */
#define TEXT_INDENT 9

static void print_finding(json_t *finding, const struct view *view)
{
        const char *level = ctl_string(finding, "level"), *remedy = ctl_string(finding, "remedy");
        const char *begin = strcmp(level, "problem") == 0   ? "\033[31m"
                            : strcmp(level, "warning") == 0 ? "\033[33m"
                                                            : "\033[32m";

        _cleanup_free_ char *text = NULL;
        if (asprintf(&text, "%s: %s%s%s", ctl_string(finding, "about"), ctl_string(finding, "text"),
                     remedy[0] == '\0'   ? ""
                     : view->columns > 0 ? "\nremedy: "
                                         : "; ",
                     remedy) < 0)
                text = NULL;
        printf("%s%-*s%s", view->colour ? begin : "", TEXT_INDENT, level, view->colour ? "\033[0m" : "");
        render_text(stdout, text ?: ctl_string(finding, "text"), TEXT_INDENT, TEXT_INDENT, view);
}

int command_doctor(struct ctl *ctl)
{
        struct view view = ctl_view();
        bool bad = false;
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
                        print_finding(finding, &view);
        }
        json_decref(reply);
        return bad ? CTL_FAILED : CTL_DONE;
}
