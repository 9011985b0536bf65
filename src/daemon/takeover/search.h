/* SPDX-License-Identifier: MIT */
/* Adopts the workers of an earlier sqmgr (adopt.c), and searches /proc for others (search.c).
 * continuity/adoption decides which processes are ours. */
#pragma once

#include "daemon/runtime/proc_evidence.h"
#include "daemon/takeover/persist.h"

struct adoption;

/* Adopts the workers named in the state, and searches for others. Unclear processes are searched for a while
 * longer; meanwhile no worker is started in fleets that they may belong to. settings are the current
 * settings; fleets that are no longer configured but still have workers are added to them. Returns 0, or
 * -errno if a running worker cannot be watched: then no fleet may run. */
int adopt_begin(struct runtime *runtime, struct settings *settings, usec_t now);
/* Ends the search, if any. Accepts NULL; returns NULL. */
struct search *adopt_free(struct search *search);
/* Continues a search that awaits answers of the proc reader (daemon/runtime/proc_facts.h). */
void adopt_resume(const struct runtime *runtime);

struct search {
        struct runtime *runtime;
        struct adoption *adoption;
        char service[512]; /* our control group if only workers share it; else "" */
        int failed;        /* -errno of the last search; 0: no error */
        sd_event_source *timer;

        /* Processes at the start of this search; at counts those that were seen. */
        pid_t *pids;
        size_t n_pids, at;
        size_t n_waiting; /* number of seen processes that await answers of the proc reader, and are seen
                             again */
        bool waits;       /* only processes that await the proc reader are left */
        usec_t began_at;
        size_t slice_bytes; /* bytes of environments read in this slice */
        char environment[PROC_ENVIRONMENT_MAX];
};

enum search_outcome { SEARCH_WHOLE, SEARCH_GOES_ON };

/* Detects whether sqmgr is a systemd service, whose control group identifies its workers. Returns 0 or
 * -errno. */
int search_service(struct search *search);
/* Checks a slice of the processes, and adopts the workers found once all were seen. Returns an enum
 * search_outcome, or -errno; another search can then find the workers that are not adopted yet. Next, call
 * adoption_search_end(), or after SEARCH_GOES_ON adoption_hold() and search_run() again. */
int search_run(struct search *search, usec_t now);
/* Like search_run(), for at most this many slices. Blocks for the proc reader, at most one second. Only for
 * the start. Returns as search_run(). */
int search_run_first(struct search *search, unsigned slices, usec_t now);
