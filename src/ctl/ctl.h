/* SPDX-License-Identifier: MIT */
/* A run of sqmgrctl: its command line and its connection. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "wire/varlink.h"

struct command;

enum ctl_wait { CTL_WAIT_NONE, CTL_WAIT_REPLACED, CTL_WAIT_DRAINED };

struct ctl {
        unsigned options; /* set of enum option_bit: options on the command line */
        char *socket;     /* owned; NULL: not given, and not found by instances_choose() yet */
        char *instance;   /* owned; its name; NULL: the path of the socket was given */
        bool json;
        bool force;
        bool resume;
        bool previous;
        bool follow;
        bool watch;
        bool ready;
        const char *release; /* NULL: not given */
        uint64_t lines;      /* print at most the last `lines` events or lines; UINT64_MAX: no limit */
        enum ctl_wait wait;
        usec_t timeout;                /* USEC_INFINITY: none */
        const struct command *command; /* the current command */
        char **arguments;
        size_t n_arguments;

        int fd; /* -1: not connected */
        usec_t deadline;
        usec_t again_until; /* reconnect until this time; 0: the connection was not lost */
        int connect_error;  /* errno of the last connection attempt; 0: success */
        struct varlink_input input;
        const char *method; /* of the last call, without the interface name */

        /* Wake client_receive() in addition to a reply. */
        int signal_fd; /* signalfd; -1: signals have their default action */
        int signal;    /* signal that asked sqmgrctl to end; 0: none */
        int key_fd;    /* -1: none; the caller reads it */
};
