/* SPDX-License-Identifier: MIT */
/* The server's paths, streams and history. */
#pragma once

#include "web/http.h"
#include "web/watch.h"

struct web;

/* places: not copied. history: path of the history file; NULL: the history is lost at exit. Returns 0 or
 * -errno. Free *ret with web_free(). */
int web_new(struct web **ret, sd_event *event, const struct watch_places *places, const char *history);
/* web may be NULL. Returns NULL. */
struct web *web_free(struct web *web);

/* The HTTP server of web. */
struct http *web_http(struct web *web);
