/* SPDX-License-Identifier: MIT */
/* The description of a start, for the launcher (privileged/launch.h) and for the child that it forks. */
#pragma once

#include "base/usec.h"
#include "privileged/ledger_file.h"
#include <stdbool.h>
#include <sys/resource.h>
#include <sys/types.h>

struct fleet_settings;

/* How a worker ended, for after_exit: the values that systemd passes to ExecStopPost=. */
struct launch_end {
        pid_t pid;
        const char *code; /* "exited", "killed" or "unknown" */
        char status[16];  /* the exit status, or the name of the signal; "" if unknown */
        usec_t timeout;
};

/* Starts a template, from which workers are forked. The template's command runs once "go" was received over
 * the socket. */
struct launch_template {
        int fd;             /* the socket's end for the child only */
        const char *script; /* the Ruby file that turns the command into a template; no blanks in the path */
};

/* Everything is borrowed until launch_start() returns. With `release`, no command runs: the child resolves
 * the fleet's directory as the fleet's user. The result must end in that path, else the report is
 * LAUNCH_FAILED; LAUNCH_RUNNING means success. */
struct launch_request {
        const struct fleet_settings *fleet;
        unsigned index;
        uint64_t generation;
        usec_t started_at;                /* identifies this start */
        struct ledger_claim claim;        /* the record of this start; zeros: none */
        const struct ledger_file *ledger; /* contains the claimed record; NULL: no ledger */
        const char *instance;
        const char *unique_host;       /* see model/unique_host.h; NULL or "": the worker gets none */
        struct rlimit nofile;          /* the limit before launch_raise_nofile() */
        char *const *base_environment; /* sqmgr's own, NULL-terminated; filtered before it is passed to the
                                        * command */
        const char *status_parent;     /* parent of the status directories; NULL: the worker needs none */
        const char *redis_url;         /* the Redis with the heartbeats; NULL: not known, or none */
        bool rehearsal;                /* see launch_rehearse() */
        bool shares_descriptors;       /* the caller attends to launched.child_fd */
        const struct launch_end *end;  /* run after_exit instead of the worker; NULL: run the worker */
        const char *release;           /* check the directory only, see above; NULL: no */
        const char *outcomes_script;   /* for fleet_settings_load_outcomes(): the Ruby file, no blanks in the
                                          path; NULL: none */
        const struct launch_template *template; /* start a template; NULL: a worker */
};
