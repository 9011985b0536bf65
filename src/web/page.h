/* SPDX-License-Identifier: MIT */
/* The page: the state of each sqmgr as HTML. No I/O, no clock. */
#pragma once

#include "base/macro.h"
#include <jansson.h>

enum page_part {
        PAGE_WHOLE, /* the whole document */
        PAGE_LIVE,  /* only the elements that change, each with its id; page.js replaces them */
};

/* status: the document of /api/status. events: a list of Events of the control interface, the newest first,
 * each with a member `socket`. At most 200 events are shown. Missing members and members of a wrong type
 * count as empty. now: realtime clock. The caller frees *ret, which ends with a NUL not counted in *ret_size.
 * Returns 0 or -ENOMEM. */
int page_render(enum page_part part, const json_t *status, const json_t *events, usec_t now, char **ret,
                size_t *ret_size);

/* The page's Content-Security-Policy, a constant: no foreign resources, no inline scripts, no styles but the
 * embedded style sheet. */
const char *page_csp(void);
