/* SPDX-License-Identifier: MIT */
/* The command `doctor`: what there may be wrong with the surroundings, and what to do about it. */
#include "base/text.h"
#include "ctl/client.h"
#include "ctl/commands.h"
#include "ctl/exit.h"
#include "ctl/reply.h"
#include "ctl/screen.h"
#include <stdio.h>
#include <string.h>

/* What is found begins behind the level, and what is to be done about it. */
#define TEXT_INDENT 9

static void print_finding(json_t *finding, const struct view *view)
{
        const char *level = reply_string(finding, "level"), *remedy = reply_string(finding, "remedy");
        const char *begin = strcmp(level, "problem") == 0   ? "\033[31m"
                            : strcmp(level, "warning") == 0 ? "\033[33m"
                                                            : "\033[32m";

        _cleanup_free_ char *text = NULL;
        if (asprintf(&text, "%s: %s%s%s", reply_string(finding, "about"), reply_string(finding, "text"),
                     remedy[0] == '\0'   ? ""
                     : view->columns > 0 ? "\nremedy: "
                                         : "; ",
                     remedy) < 0)
                text = NULL;
        printf("%s%-*s%s", view->colour ? begin : "", TEXT_INDENT, level, view->colour ? "\033[0m" : "");
        text_print_wrapped(stdout, text ?: reply_string(finding, "text"), TEXT_INDENT, TEXT_INDENT,
                           view->columns);
}

int ctl_doctor(struct ctl *ctl)
{
        struct view view = screen_view();
        bool bad = false;
        json_t *reply = NULL, *finding;
        size_t i;
        int r = client_call(ctl, "GetDiagnosis", json_object(), &reply);

        if (r != CTL_DONE)
                return r;
        if (ctl->json)
                reply_print_json(reply);
        json_array_foreach(json_object_get(reply, "findings"), i, finding)
        {
                bad |= strcmp(reply_string(finding, "level"), "problem") == 0;
                if (!ctl->json)
                        print_finding(finding, &view);
        }
        json_decref(reply);
        return bad ? CTL_FAILED : CTL_DONE;
}
