/* SPDX-License-Identifier: MIT */
/* What is to be started, and how: for the launcher (io/launch.h) and for the child that it forks. */
#pragma once

#include "base/usec.h"
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct fleet_settings;

/* How a worker ended, for after_exit: as systemd tells an ExecStopPost=. */
struct launch_end {
        pid_t pid;
        const char *code; /* "exited", "killed" or "unknown" */
        char status[16];  /* the exit status, or the signal's name; "" where it is unknown */
        usec_t timeout;
};

/* A template is to be started, from which workers are forked. Its command begins once "go" has come by the
 * socket. */
struct launch_template {
        int fd;             /* its socket; for the child alone */
        const char *script; /* the Ruby file that makes its command one; no blank in it */
};

/* With `release` nothing of the fleet's is run: as its user, its directory is resolved, and must end in that
 * path. What is wrong is reported as an error, and LAUNCH_RUNNING means that all is well. */
struct launch_request {
        const struct fleet_settings *fleet;
        unsigned index;
        uint64_t generation;
        usec_t started_at; /* by which this start is known from all others */
        const char *instance;
        struct rlimit nofile;          /* sqmgr's original one: see launch_raise_nofile() */
        char *const *base_environment; /* sqmgr's own, NULL-terminated; filtered before it is handed on */
        const char *status_parent;     /* where status directories are; NULL: it needs none */
        bool rehearsal;                /* see launch_rehearse() */
        const struct launch_end *end;  /* its after_exit is run, and not the worker; NULL else */
        const char *release;           /* its directory is looked at, and nothing run: see above; NULL: not */
        const struct launch_template *template; /* it becomes one of these, and not a worker; NULL else */
};
