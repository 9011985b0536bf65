/* SPDX-License-Identifier: MIT */
/* Serves what the instances tell: each path, the streams, the history. */
#pragma once

#include "web/http.h"

struct web;

struct web_options {
        const char *const *sockets; /* of each sqmgr; not copied */
        size_t n_sockets;
        const char *history; /* the file of the history; NULL: it is lost at the end */
        const struct http_limits *limits;
};

/* Returns 0 or -errno; *ret is to be freed by web_free(). */
int web_new(struct web **ret, sd_event *event, const struct web_options *options);
/* Returns NULL, as web may be. */
struct web *web_free(struct web *web);

/* Where it is served. */
struct http *web_http(struct web *web);
