/* SPDX-License-Identifier: MIT */
/* Shows the reply of a method once, or with --watch each second. On a terminal, --watch repaints in place. */
#pragma once

#include "ctl/ctl.h"
#include "ctl/screen.h"

struct watch_view {
        const char *method; /* the only parameter is the list of fleets on the command line */
        /* Show a reply. Return CTL_DONE or an exit code. Without print_json, --json prints the reply
         * itself. */
        int (*render)(FILE *out, json_t *reply, const struct view *view);
        int (*print_json)(json_t *reply);
        int (*check)(json_t *reply); /* returns an exit code if the reply must not be shown; may be NULL */
};

/* Runs until the reply is shown, or with --watch until the user quits. Returns an exit code. */
int watch_show(struct ctl *ctl, struct watch_view watched);
