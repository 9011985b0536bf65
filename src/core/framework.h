/* SPDX-License-Identifier: MIT */
/* The table of frameworks: what quiets and stops a worker of each, how fresh is fresh, how it looks in /proc.
 */
#pragma once

#include "core/sidekiq.h"

struct framework {
        const char *name;
        int quiet_signal;
        int stop_signal;
        int wake_signal;      /* sent right after stop_signal, that a frozen process sees that; 0: none */
        usec_t shutdown_usec; /* its own time for running jobs once it is told to stop */
        usec_t stale_usec;    /* a beat unchanged for longer is no evidence */
        bool (*thread_is_processor)(const char *comm, const struct sidekiq_info *info);
        bool (*title_parse)(const char *title, struct sidekiq_title *ret);
};

/* id: enum framework_id. Never NULL. */
const struct framework *framework_get(int id);
