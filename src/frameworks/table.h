/* SPDX-License-Identifier: MIT */
/* The table of frameworks, a row for each: what the shell must do otherwise for each of them. What settings
 * and model must know is in its traits. */
#pragma once

#include "frameworks/sidekiq/format.h"

struct framework {
        const struct traits *traits;
        int quiet_signal;
        int stop_signal;
        int wake_signal; /* sent right after stop_signal, that a frozen process sees that; 0: none */
        bool (*thread_is_processor)(const char *comm, const struct sidekiq_info *info);
        bool (*title_parse)(const char *title, struct sidekiq_title *ret);
};

/* The traits of all, NULL-terminated: for settings_surroundings. */
extern const struct traits *const framework_traits[];

/* The traits of that id, or NULL. */
const struct traits *framework_traits_find(unsigned id);

/* The row of these traits, which must be of the table. */
const struct framework *framework_of(const struct traits *traits);
