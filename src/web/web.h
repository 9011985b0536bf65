/* SPDX-License-Identifier: MIT */
/* Serves what the instances tell: each path, the streams, the history. */
#pragma once

#include "web/http.h"

struct web;

/* sockets: the socket of each sqmgr; not copied. history: the file of the history; NULL: the history is lost
 * at the end. Returns 0 or -errno; *ret is to be freed by web_free(). */
int web_new(struct web **ret, sd_event *event, const char *const *sockets, size_t n_sockets,
            const char *history);
/* Returns NULL, as web may be. */
struct web *web_free(struct web *web);

/* Where it is served. */
struct http *web_http(struct web *web);
