/* SPDX-License-Identifier: MIT */
/* One run of sqmgrctl: what its command line asks for, and its connection. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"
#include "wire/varlink.h"

struct command;

enum ctl_wait { CTL_WAIT_NONE, CTL_WAIT_REPLACED, CTL_WAIT_DRAINED };

struct ctl {
        unsigned options;         /* enum option_bit: those of the command line */
        const char *named_socket; /* by an option; NULL: none */
        char *socket;             /* owned; NULL before client_find_socket() */
        bool json;
        bool force;
        bool follow;
        bool watch;
        bool ready;
        bool everywhere;
        const char *release; /* NULL: none is named */
        uint64_t lines;      /* no more than the last so many; UINT64_MAX: all */
        enum ctl_wait wait;
        usec_t timeout;                /* USEC_INFINITY: none */
        const struct command *command; /* the one that runs */
        char **arguments;
        size_t n_arguments;

        int fd; /* -1: not connected */
        usec_t deadline;
        usec_t again_until; /* 0, or the connection was lost and is tried to be made again until then */
        int connect_error;  /* errno of the last try, 0: it succeeded */
        struct varlink_input input;
        const char *newer; /* a parameter that an older sqmgr does not know, and the call can do without;
                              NULL: none */

        /* What ends client_receive() besides a reply. */
        int signal_fd; /* -1: signals do what they always do */
        int signal;    /* the one that asked for an end; 0: none has */
        int key_fd;    /* -1: none; read by the caller */
};
