/* SPDX-License-Identifier: MIT */
/* Watches memory pressure if pressure_limit is set. Sleeps until the kernel reports pressure, then reads it
 * every two seconds until it is over. */
#pragma once

#include "daemon/runtime/runtime.h"

struct psi;

struct pressure_watch {
        struct runtime *runtime; /* not owned */
        struct psi *psi;         /* NULL: pressure is not watched, or cannot be */
        unsigned limit;          /* the limit that psi was opened for */
        sd_event_source *trigger;
        sd_event_source *timer; /* runs while another reading is due soon */
        usec_t no_pressure_at;  /* start of the time without pressure; 0: under pressure */
};

/* Applies the settings. Call at startup and after a reload; a call without a change of the limit is cheap. */
void pressure_watch_apply(struct pressure_watch *watch);
/* Call at each regular poll. Reads the pressure where the kernel does not report by itself. */
void pressure_watch_poll(struct pressure_watch *watch);
/* Stops watching. The observed pressure stays in the world. */
void pressure_watch_close(struct pressure_watch *watch);

/* Returns the path of the file that is read, or NULL if none. */
const char *pressure_watch_path(const struct pressure_watch *watch);
