/* SPDX-License-Identifier: MIT */
/* Asks the instances, and serves what they tell: what the loop of sqmgr-web is made of. */
#pragma once

#include "web/http.h"

struct web;

/* sockets are not copied. Returns 0 or -errno; *ret is to be freed by web_free(). */
int web_new(struct web **ret, sd_event *event, const char *const *sockets, size_t n_sockets);
/* Returns NULL, as web may be. */
struct web *web_free(struct web *web);

/* Where it is served. */
struct http *web_http(struct web *web);
