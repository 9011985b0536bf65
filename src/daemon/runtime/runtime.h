/* SPDX-License-Identifier: MIT */
/* Everything needed to run workers: the event loop, connections to Redis, children, and the context of each
 * launch. */
#pragma once

#include "daemon/runtime/children.h"
#include "daemon/runtime/database_helpers.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/proc_facts.h"
#include "daemon/runtime/subsystem.h"
#include "daemon/runtime/wakeup.h"
#include "io/ledger_file.h"
#include <sys/resource.h>

struct proc_host;  /* io/host.h */
struct state_dead; /* continuity/state.h */
struct exit_log;   /* workers/exit_log.c */
struct side_start; /* workers/side_start.c */

/* A socket passed from one image of sqmgr to the next; see daemon/lifecycle/reexec.h. */
struct handed {
        enum {
                HANDED_LISTEN,   /* the control socket */
                HANDED_IDLE,     /* an idle connection */
                HANDED_CALLER,   /* a connection with a call for the next image to answer */
                HANDED_TEMPLATE, /* the socket of a template */
                _HANDED_MAX,
        } kind;
        int fd;
        pid_t pid; /* HANDED_TEMPLATE: pid of the template's command */
};

struct runtime {
        sd_event *event; /* with wakeup and world: not owned */
        struct wakeup *wakeup;
        struct world *world;
        struct links links;
        struct subsystems subsystems;  /* the optional features */
        struct heartbeats *local;      /* heartbeats of fleets without a link, which need no Redis */
        char *status_parent;           /* parent of the heartbeat file directories; owned */
        struct children children;      /* children other than workers */
        struct proc_facts *proc_facts; /* owned */
        struct database_helpers database_helpers;
        struct proc_host *host;
        struct rlimit nofile;           /* limit before sqmgr raised its own */
        char instance[17];              /* the same for every sqmgr with this state file */
        struct ledger_file ledger;      /* see start_record.h */
        struct state_dead *rescues;     /* list of rescue.c, written to the state */
        struct exit_log *exit_log;      /* journal readings in progress */
        struct side_start *after_exits; /* running commands */
        char *preload_script;           /* Ruby script of templates; owned */
        char *outcomes_script;          /* Ruby script that counts the jobs of Sidekiq; owned */
        char *shims;                    /* folder of the shims, see traits.h; owned */
        struct handed *handed;          /* sockets from the previous image; not owned */
        size_t n_handed;
        uint64_t lines_token; /* last token handed out */
        bool lines_missed;    /* a missing log tail of an adopted worker was logged */
};
