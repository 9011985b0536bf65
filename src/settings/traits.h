/* SPDX-License-Identifier: MIT */
/* What settings and model must know of a framework: data, given by the framework's own folder. */
#pragma once

#include "base/usec.h"
#include <stdbool.h>

enum heartbeat_place {
        HEARTBEAT_REDIS,
        HEARTBEAT_FILE, /* in a folder of its fleet's */
        HEARTBEAT_NONE, /* it writes none: that it runs is its beat */
        _HEARTBEAT_PLACE_MAX,
};

struct traits {
        const char *name;  /* as the ini file has it */
        const char *title; /* as people write it */
        unsigned id;       /* stands in state files: never changed, never given again */
        bool untried;      /* what is known of it was read: no test runs the real one */

        /* It knows no quieting that is not the begin of its end: it gets its stop signal once, as it would be
         * quieted, and its exit proves that it runs no job. */
        bool quiet_is_stop;
        /* Its stop signal, where it comes as it takes a job, costs that job: it is quieted while it runs one,
         * or has waited for one for a while. */
        bool quiet_when_idle;
        bool has_work_list; /* what it runs can be read, and no entry there is one more proof that it is idle
                             */
        bool can_rescue;    /* jobs that are left there when it has died can be put back */
        bool can_dump;      /* a signal has it write to its log what its threads are at */
        bool has_job_threads; /* those that run jobs can be told from outside, and go once it is quiet */
        bool has_title;       /* set at each beat, it tells how many jobs it runs and whether it is quiet */
        bool memory_of_tree;  /* it works in children: their memory counts as its own */

        enum heartbeat_place heartbeat; /* where it stands, unless the fleet's settings say otherwise */
        bool heartbeat_chosen;          /* they may */
        bool reports_busy;              /* how many jobs it runs is known, from its beats or its title */
        /* It beats too rarely to be heard in time: that its process lives and its record stands is its beat.
         */
        bool lives_as_heartbeat;
        bool title_completes; /* its beats say neither whether it is quiet nor how many jobs it runs, but its
                               * title does */
        /* Its stop signal is for the fleet's settings to say, and a stop_timeout that they have for it is how
         * long it may take from that signal on. */
        bool stop_chosen;
        bool jobs_outlive_it;  /* it runs each job in a child, which goes on where it is killed */
        bool uncaught_is_stop; /* one that does not catch the quiet signal is stopped in its place */
        bool can_preload;      /* its workers can be forked from a process with the application loaded */
        bool reports_queues;   /* they tell from which queues they take, and what waits there can be read */

        usec_t sent_usec;  /* between two beats it has at most so long; 0: it promises nothing */
        usec_t stale_usec; /* a beat unchanged for longer is no evidence */

        usec_t shutdown_usec; /* its own time for running jobs once it is told to stop */
        /* The same as its command line has it, and as the title of a process shows it, which may be one of
         * anything; 0: that does not tell. NULL: none can. */
        usec_t (*command_shutdown_usec)(char *const *argv);
        usec_t (*title_shutdown_usec)(const char *title);
        const char *shutdown_option; /* by which it does */

        const char *host_variable; /* of its environment: renames the host that it beats under; NULL: none */
        unsigned oldest_version;   /* that knows the signals; 0: all do */
};
