/* SPDX-License-Identifier: MIT */
/* What a child tells the launcher before it runs its command, and the child's own part. */
#pragma once

#include <stdint.h>

struct launch_request;

#define LAUNCH_ERROR_MAX 1024

enum launch_message_kind {
        LAUNCH_MESSAGE_LOG = 1, /* carries the log's descriptor */
        LAUNCH_MESSAGE_ERROR,
};

struct launch_message {
        uint32_t kind;
        uint32_t length; /* of text */
        uint64_t log_start_bytes;
        char text[LAUNCH_ERROR_MAX];
};

/* Runs in the child, with all signals blocked. */
_Noreturn void launch_child_run(const struct launch_request *request, int report_fd);
