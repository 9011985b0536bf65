/* SPDX-License-Identifier: MIT */
/* The page, as HTML. No I/O, no clock. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include <jansson.h>

enum page_part {
        PAGE_WHOLE, /* the document */
        PAGE_LIVE,  /* what changes of it */
};

/* status: the document of /api/status; events: array of Events with "socket", the newest first; now:
 * realtime. *ret is to be freed. Returns 0 or -ENOMEM. */
int page_render(enum page_part part, const json_t *status, const json_t *events, usec_t now, char **ret,
                size_t *ret_size);

/* The value of the page's header Content-Security-Policy; constant. */
const char *page_csp(void);
