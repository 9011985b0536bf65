/* SPDX-License-Identifier: MIT */
/* What the shell holds while the workers of an earlier sqmgr are adopted: who is ours is
 * continuity/adoption's to judge. */
#pragma once

#include "daemon/runtime/env_marker.h"
#include "daemon/runtime/runtime.h"
#include "io/proc.h"

struct adoption;
struct persist; /* persist.h */

struct search {
        struct runtime *runtime;
        struct persist *persist;
        struct adoption *adoption;
        char service[512]; /* our control group where nothing but workers shares it; "": none */
        int failed;        /* the last one, so; 0: it did not */
        sd_event_source *timer;

        pid_t *pids; /* those that there were as this search began, and how many have been seen */
        size_t n_pids, at;
        size_t slice_bytes; /* of environments that were read in one go */
        char environment[ENV_MARKERS_MAX_BYTES];
};

enum search_outcome { SEARCH_WHOLE, SEARCH_GOES_ON };

/* Finds out whether we are a service of systemd's, whose control group tells who is ours. Returns 0 or
 * -errno. */
int search_service(struct search *search);
/* Looks at processes, some in each call, and once it has seen all adopts the workers that it found. Returns
 * an enum search_outcome, or -errno: those that are not adopted yet can be found by another search. Follow
 * with adoption_search_end(), or where it goes on with adoption_hold() and another call. */
int search_run(struct search *search, usec_t now);
