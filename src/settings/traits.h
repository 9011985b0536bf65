/* SPDX-License-Identifier: MIT */
/* What settings and model must know of a framework: data, given by the framework's own folder. */
#pragma once

#include "base/macro.h"
#include "base/usec.h"

struct traits {
        const char *name;  /* as the ini file has it */
        const char *title; /* as people write it */
        unsigned id;       /* stands in state files: never changed, never given again */

        /* It knows no quieting that is not the begin of its end: it gets its stop signal once, as it would be
         * quieted, and its exit proves that it runs no job. */
        bool quiet_is_stop;
        bool has_work_list; /* what it runs can be read, and no entry there is one more proof that it is idle
                             */
        bool has_job_threads; /* those that run jobs can be told from outside, and go once it is quiet */
        bool memory_of_tree;  /* it works in children: their memory counts as its own */

        usec_t stale_usec; /* a beat unchanged for longer is no evidence */

        usec_t shutdown_usec; /* its own time for running jobs once it is told to stop */
        /* The same as its command line has it; 0: that does not tell. NULL: none can. */
        usec_t (*command_shutdown_usec)(char *const *argv);
        const char *shutdown_option; /* by which it does */

        const char *host_variable; /* of its environment: renames the host that it beats under; NULL: none */
        unsigned oldest_version;   /* that knows the signals; 0: all do */
};
