/* SPDX-License-Identifier: MIT */
/* What the shell holds while the workers of an earlier sqmgr are adopted: who is ours is model/adoption's to
 * judge. */
#pragma once

#include "daemon/run/keep.h"
#include "io/proc.h"
#include "model/adoption.h"

struct search {
        struct crew *crew;
        struct keeper *keeper;
        struct adoption *adoption;
        char service[512]; /* our control group where nothing but workers shares it; "": none */
        int failed;        /* the last one, so; 0: it did not */
        sd_event_source *timer;
};

/* Finds out whether we are a service of systemd's, whose control group tells who is ours. Returns 0 or
 * -errno. */
int search_service(struct search *search);
/* Looks once at all processes, and adopts the workers that it finds. Returns 0 or more, or -errno: those that
 * are not adopted yet can be found by another search. Follow with adoption_search_end(). */
int search_run(struct search *search, usec_t now);
/* Takes hold of the process that had this pid and start time. Returns 0 with *ret, NULL where it is gone; or
 * -errno. */
int search_hold(pid_t pid, uint64_t start, struct proc **ret);
