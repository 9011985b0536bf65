/* SPDX-License-Identifier: MIT */
/* Shows what sqmgr tells, once, or with --watch again and again: on a terminal in the place of what stood
 * there. */
#pragma once

#include "ctl/ctl.h"
#include "ctl/screen.h"

struct watched {
        /* Asks: *ret is a new reference to the reply. Returns CTL_DONE or an exit code. */
        int (*get)(struct ctl *ctl, json_t **ret);
        /* Shows a reply. Both return CTL_DONE or an exit code. */
        int (*render)(FILE *out, json_t *reply, const struct view *view);
        int (*print_json)(json_t *reply);
};

/* Returns an exit code. */
int watch_show(struct ctl *ctl, const struct watched *watched);
