/* SPDX-License-Identifier: MIT */
/* Servers on the loop of the test. */
#pragma once

#include "frameworks/backends.h"
#include "loop.h"

/* The server of the settings. */
static inline struct reader *local_reader_new(const struct redis_settings *settings, const char *url,
                                              unsigned framework, reader_state_fn on_state, void *userdata)
{
        const struct reader_options options = {
                .backend = &redis_backend,
                .framework = framework,
                .settings = settings,
                .url = url,
                .on_state = on_state,
                .userdata = userdata,
        };
        struct reader *reader;

        ck_assert_int_eq(reader_new(event, &options, &reader), 0);
        return reader;
}

/* The same, once it is connected. */
static inline struct reader *local_reader_up(const struct redis_settings *settings, unsigned framework)
{
        struct reader *reader = local_reader_new(settings, NULL, framework, NULL, NULL);

        run_until(reader_state(reader) == READER_STATE_CONNECTED);
        return reader;
}
