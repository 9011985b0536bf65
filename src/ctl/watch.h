/* SPDX-License-Identifier: MIT */
/* Shows what sqmgr tells, once, or with --watch again and again: on a terminal in the place of what stood
 * there. */
#pragma once

#include "ctl/ctl.h"
#include "ctl/screen.h"

struct watch_view {
        const char *method; /* its one parameter: the fleets that the command line names */
        /* Show a reply. Both return CTL_DONE or an exit code. Without print_json JSON is the reply itself. */
        int (*render)(FILE *out, json_t *reply, const struct view *view);
        int (*print_json)(json_t *reply);
        int (*check)(json_t *reply); /* Returns an exit code for a reply that is not to be shown; or NULL */
};

/* Returns an exit code. */
int watch_show(struct ctl *ctl, struct watch_view watched);
