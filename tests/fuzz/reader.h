/* SPDX-License-Identifier: MIT */
/* A server on the loop of peer.h, which decodes what the peer sends. */
#pragma once

#include "frameworks/backends.h"
#include "peer.h"
#include "servers/server.h"

static struct reader *reader_make(const struct redis_settings *settings, unsigned framework)
{
        const struct reader_options options = {
                .backend = &redis_backend, .framework = framework, .settings = settings};
        struct reader *reader;

        fuzz_check(reader_new(event, &options, &reader) == 0);
        return reader;
}
