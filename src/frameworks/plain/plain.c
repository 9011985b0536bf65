/* SPDX-License-Identifier: MIT */
/* Any process; see the header. */
#include "frameworks/plain/plain.h"
#include <signal.h>

const struct traits plain_traits = {
        .name = "plain",
        .title = "its command",
        .id = 5,
        .quiet_is_stop = true,
        .memory_of_tree = true,
        .heartbeat = HEARTBEAT_NONE,
        .stop_chosen = true,
};

const struct framework plain_framework = {
        .traits = &plain_traits,
        .stop_signal = SIGTERM,
};
