/* SPDX-License-Identifier: MIT */
/* The page: HTML of what is known of each sqmgr. No I/O, no clock. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <jansson.h>

enum page_part {
        PAGE_WHOLE, /* the document */
        PAGE_LIVE,  /* the elements of it that change, each with its id: page.js puts them in force */
};

/* status: the document of /api/status. events: a list of Events of the control interface, each with a member
 * `socket`, the newest first; of more than 200 the others are not shown. Members that are missing, or of
 * another kind, are taken for empty. now: realtime. *ret is to be freed, and ends with a NUL that *ret_size
 * does not count. Returns 0 or -ENOMEM. */
int page_render(enum page_part part, const json_t *status, const json_t *events, usec_t now, char **ret,
                size_t *ret_size);

/* The value of the page's Content-Security-Policy, which is constant: nothing from elsewhere, no inline
 * script, no style but the sheet that the page brings within itself. */
const char *page_csp(void);
