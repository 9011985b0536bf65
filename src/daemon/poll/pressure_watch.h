/* SPDX-License-Identifier: MIT */
/* Watches memory pressure where pressure_limit asks for it: asleep until the kernel tells of some, then each
 * two seconds until it is over. */
#pragma once

#include "daemon/runtime/runtime.h"

struct psi;

struct pressure_watch {
        struct runtime *runtime; /* not owned */
        struct psi *psi;         /* NULL: it is not watched, or cannot be */
        unsigned limit;          /* that psi was opened for */
        sd_event_source *trigger;
        sd_event_source *timer; /* while something is to be read again soon */
        usec_t calm_at;         /* since when there has been nothing to see; 0: there is */
};

/* Puts the settings in force: at the beginning and after a reload. Costs nothing where nothing is to be
 * watched, nor was. */
void pressure_watch_apply(struct pressure_watch *watch);
/* At each regular look: what the kernel does not tell of by itself is read. */
void pressure_watch_poll(struct pressure_watch *watch);
void pressure_watch_close(struct pressure_watch *watch);

/* The file that is read; NULL: none is. */
const char *pressure_watch_path(const struct pressure_watch *watch);
