/* SPDX-License-Identifier: MIT */
/* Properties of a framework that settings and model depend on. Each framework's folder supplies its
 * traits. */
#pragma once

#include "base/macro.h"

enum heartbeat_place {
        HEARTBEAT_REDIS,
        HEARTBEAT_FILE, /* in the fleet's status directory */
        HEARTBEAT_NONE, /* no heartbeats: a running process counts as a heartbeat */
        HEARTBEAT_DATABASE,
        _HEARTBEAT_PLACE_MAX,
};

/* A file that sqmgr installs, and that a worker loads because a variable of its environment names it. The
 * file sends the heartbeats. */
struct shim {
        const char *file;     /* below the folder of shims */
        const char *variable; /* keeps what the environment has in it */
        char separator;       /* between two parts of the value */
        const char *option; /* the text before the path in the value; NULL: the value is the file's folder */
        const char *missed; /* for a problem: conditions under which a worker does not load it */
        /* The line that loads it in an application, before and after the folder of shims. */
        const char *line[2];
        const char *refused; /* the error of a process that does not start without the file; NULL: none */
        /* Each process catches its stop signal, also one whose jobs that ends: without the shim none is sent.
         */
        bool always_caught;
};

/* Options of a command with which, or without which, a worker does not do what sqmgr needs of it. */
struct command_flaw {
        const char *options[3]; /* the command has each of them; up to the first NULL */
        bool prevents;          /* workers cannot be supervised; otherwise they can, with a disadvantage */
        /* The rest of a sentence that begins with "'command' has" and the options; without options, with
         * "'command'". */
        const char *text;
        const char *remedy;
        /* Up to the first NULL: words of the command, or entries NAME=VALUE of `environment`, any of which
         * prevents the flaw. */
        const char *unless[4];
};

struct traits {
        const char *name;  /* in the ini file */
        const char *title; /* in messages */
        unsigned id;       /* stored in state files: never changed, never reused */
        bool stand_in;     /* the tests use a stand-in; the real framework was run by hand only */

        /* Quieting ends the worker: the stop signal is sent once, in place of a quiet signal. The worker's
         * exit proves that it runs no job. */
        bool quiet_is_stop;
        /* Heartbeats do not show that the worker was asked to exit in this way. */
        bool quiet_is_hidden;
        /* A stop signal that arrives while the worker takes a job costs that job. The worker is quieted only
         * while it runs a job, or after it has waited for one for a while. */
        bool quiet_when_idle;
        /* The worker reads signals from its server, one at each heartbeat, and a repeated signal ends no
         * jobs: a worker that signals cannot reach is quieted and stopped so, see worker_process.remote. */
        bool signals_by_server;
        bool has_work_list; /* running jobs can be read from a server; an empty list is part of the proof that
                             * a worker is idle */
        bool can_rescue;    /* jobs left in the list of a dead worker can be requeued */
        /* The list does not expire. A worker that exits in good order leaves none; later, the framework fails
         * the jobs of the others, and so it does with jobs that were put back too often. */
        bool jobs_stay;
        /* For a worker that exits in the middle of its jobs after it was asked to exit; NULL: none. The
         * reader then answers QUERY_RELEASED. */
        const char *drain_remedy;
        bool has_job_threads; /* job threads can be recognized from outside, and exit once the worker is quiet
                               */
        bool has_title; /* the process title, set at each heartbeat, shows the number of jobs and whether the
                         * worker is quiet */
        bool memory_of_tree; /* the worker uses child processes: their memory counts as its own */

        enum heartbeat_place heartbeat; /* default location of the heartbeats */
        bool postgresql_only;           /* HEARTBEAT_DATABASE: no other database will do */
        bool heartbeat_chosen;          /* the fleet's settings may choose another location */
        /* The number of running jobs is that at the time of the poll, which may be long after the
         * heartbeat. */
        bool jobs_are_current;
        bool reports_busy; /* heartbeats or the title show the number of running jobs */
        /* Heartbeats are too rare to be awaited: a live process with an existing record counts as a
         * heartbeat. */
        bool process_is_heartbeat;
        bool title_completes; /* heartbeats show neither quiet nor the number of jobs; the title does */
        /* The fleet's settings choose the stop signal. A stop_timeout in them bounds the time from that
         * signal to the exit. */
        bool stop_chosen;
        bool jobs_outlive_it;  /* each job runs in a child process that continues if the worker is killed */
        bool uncaught_is_stop; /* a worker that does not catch the quiet signal is stopped instead */
        bool resumes_jobs; /* jobs that a stop signal interrupts are put back, and may be made to be resumed
                            */
        bool counts_outcomes; /* workers report how many jobs they have done and how many of these failed */
        /* The worker does that only if it loads sqmgr-outcomes.rb. */
        bool outcomes_by_script;
        bool can_preload; /* workers can be forked from a process that has the application loaded */
        /* Workers report their queues. The number of waiting jobs and their latency can be read, so the count
         * may follow the queues. */
        bool reports_queues;
        /* Each host sees the workers of all hosts, and the queues that they serve. */
        bool records_workers;
        /* Without any worker, sqmgr sees the jobs that wait and those that fall due: the count may be 0. */
        bool shows_due_jobs;
        /* The time is an estimate, so a change of it is no evidence that a job was taken. */
        bool latency_estimated;

        usec_t sent_usec;  /* longest interval between two heartbeats; 0: unspecified */
        usec_t stale_usec; /* a heartbeat unchanged for longer is no evidence */

        usec_t shutdown_usec; /* time that a stopping worker gives its running jobs */
        /* Return the shutdown time from a command line, or from a process title, which may be any text; 0:
         * not given. NULL: no such source. */
        usec_t (*command_shutdown_usec)(char *const *argv);
        usec_t (*title_shutdown_usec)(const char *title);
        const char *shutdown_option; /* the command line option for the shutdown time */

        const char *host_variable; /* environment variable that overrides the host name in heartbeats; NULL:
                                    * none */
        /* The environment variable that names a worker, where the command names none, and what follows the
         * names of fleet and worker in its value. sqmgr sets it, so that no two workers of a host have one
         * name. NULL: none. */
        const char *name_variable, *name_suffix;
        const struct shim *shim; /* NULL: none */
        const char *program;     /* how commands name the framework; NULL: as it is named in the ini file */
        /* A word that the command of a worker contains besides that name; NULL: none. */
        const char *subcommand;
        const char *url_variable; /* environment variable with the URL of the server; NULL: REDIS_URL */
        /* For doctor: what to check if no worker of a fleet is heard although all run; NULL: nothing. */
        const char *unheard_remedy;
        const struct command_flaw *command_flaws; /* a list that ends with a row without text; NULL: none */
        /* Returns true if the command passes the option, or the subcommand, of a flaw to the framework. NULL:
         * any word of the command counts. */
        bool (*command_passes_option)(char *const *argv, const char *option);
        unsigned oldest_version; /* oldest major version that supports the signals; 0: all do */
};
