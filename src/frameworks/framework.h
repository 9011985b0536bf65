/* SPDX-License-Identifier: MIT */
/* The operations that differ between frameworks. The properties that settings and model need are in struct
 * traits. */
#pragma once

#include "frameworks/title.h"
#include "settings/traits.h"
#include <sys/types.h>

struct heartbeat_info; /* facts that the framework stores about a process that sends heartbeats */
struct heartbeat;
struct redis;

struct framework {
        const struct traits *traits;
        int quiet_signal; /* 0: quieting is stopping; stop_signal is sent once */
        int stop_signal;
        int cut_off_signal; /* replaces stop_signal once sqmgr no longer waits for the jobs that the worker
                               may run; 0: stop_signal */
        int wake_signal;    /* sent right after stop_signal, so that a process stopped by SIGTSTP or SIGSTOP
                               handles it; 0: none */
        /* Returns true if a thread of this name runs jobs. info: what the process reported about itself;
         * NULL: unknown. The member is NULL if the traits have no job threads. */
        bool (*thread_is_processor)(const char *comm, const struct heartbeat_info *info);
        /* Decodes the title of a booted worker. Returns false for any other title. NULL: titles show nothing.
         */
        bool (*title_parse)(const char *title, struct title *ret);
        bool title_may_lack; /* the application may lack the library that sets titles: a missing title proves
                              * nothing */
        /* The name of the program whose workers always set titles begins with this: in another one, as in
         * JRuby's `java`, a missing title proves nothing either. NULL: any program. */
        const char *title_program;
        /* Splits an identity, the name under which a worker sends heartbeats to a server. Returns true with
         * the pid, and the length of the host name that text begins with. NULL: workers send no heartbeats to
         * a server. */
        bool (*identity_parse)(const char *text, size_t len, size_t *ret_host_len, pid_t *ret_pid);
        unsigned member_nsec; /* nanoseconds that a scan takes its server per identity, on a slow machine */
        /* Returns true if a heartbeat may name this signal for quieting its worker; with stops, for stopping
         * its worker. NULL: heartbeats name no signals. */
        bool (*signal_is_permitted)(int signo, bool stops);
        bool reports_start; /* heartbeats may contain the start time of their process */
        bool reports_birth; /* heartbeats may contain the time at which their process registered */
        bool has_queues;    /* queues can be read */
        /* Returns the queue names that a process reported: each name ends with a NUL, the list with two;
         * NULL: none reported. The member is set only if the traits say that workers report their queues. */
        const char *(*queue_names)(const struct heartbeat_info *info);
};
