/* SPDX-License-Identifier: MIT */
/* The messages of a launched child to the launcher, and the child's part of a start. */
#pragma once

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct launch_request;

#define LAUNCH_ERROR_MAX 1024

enum launch_message_kind {
        LAUNCH_MESSAGE_LOG = 1, /* carries the descriptor of the log */
        LAUNCH_MESSAGE_ERROR,
        LAUNCH_MESSAGE_SEPARATE, /* the child has descriptors of its own */
        LAUNCH_MESSAGE_REDIS,    /* the worker's environment names another Redis */
};

struct launch_message {
        uint32_t kind;
        uint32_t length; /* of text */
        uint64_t log_start_bytes;
        uint32_t log_uid, log_gid;                           /* user and group that opened the log */
        uint32_t redis_difference, redis_db, redis_other_db; /* as struct redis_comparison */
        char text[LAUNCH_ERROR_MAX];
};

/* Facts of the fork that the child needs. */
struct launch_birth {
        int report_fd;
        pid_t parent;
        bool shares;             /* the child shares the parent's table of descriptors */
        const sigset_t *actions; /* the signals that have an action in the parent */
};

/* Runs in the forked child, with all signals blocked. request is only read. Ends in execve() of the command
 * or in _exit(). */
_Noreturn void launch_child_run(const struct launch_request *request, const struct launch_birth *birth);
