/* SPDX-License-Identifier: MIT */
/* What it takes to look after workers: the loop, the connections to Redis, the children, and what every
 * launch is given. */
#pragma once

#include "daemon/runtime/children.h"
#include "daemon/runtime/links.h"
#include "daemon/runtime/subsystem.h"
#include "daemon/runtime/wakeup.h"
#include <sys/resource.h>

struct proc_host;      /* io/host.h */
struct pressure_watch; /* pressure_watch.h */
struct state_dead;     /* continuity/state.h */
struct exit_log;       /* exit_log.c */
struct after_exit;     /* after_exit.c */

/* A socket that one image of sqmgr leaves to the next; see handover.h. */
struct handed {
        enum {
                HANDED_LISTEN,   /* the control socket */
                HANDED_VIEW,     /* the read socket */
                HANDED_IDLE,     /* a connection without a call */
                HANDED_CALLER,   /* a connection whose call the next image answers */
                HANDED_TEMPLATE, /* the socket of a template */
                _HANDED_MAX,
        } kind;
        int fd;
        pid_t pid; /* of the command of the template */
};

struct runtime {
        sd_event *event; /* not owned; nor are turn and world */
        struct wakeup *wakeup;
        struct world *world;
        struct links links;
        struct subsystems subsystems; /* the optional features */
        struct heartbeats *local;     /* of fleets that have no link, since they need no Redis */
        char *status_parent;          /* of the directories that heartbeats are written to; owned */
        bool status_untidy;           /* some of them may be those of fleets without workers */
        struct children children;     /* those that are no workers */
        struct proc_host *host;
        struct pressure_watch *pressure; /* not owned */
        struct rlimit nofile;            /* before sqmgr raised its own */
        char instance[17];               /* the same for every sqmgr on this state file */
        struct state_dead *rescues;      /* of rescue.c: they are written into the state */
        struct exit_log *exit_log;       /* those that are being read */
        struct after_exit *after_exits;  /* those that run */
        char *preload_script;            /* the Ruby file of templates; owned */
        struct handed *handed;           /* sockets that the image before left; not owned */
        size_t n_handed;
        uint64_t lines_token; /* the last that was given */
        bool lines_missed;    /* those of a worker that was adopted: that was told */
};
