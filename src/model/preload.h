/* SPDX-License-Identifier: MIT */
/* Which template workers are forked from, when another one is loaded, and when one ends. All of it
 * follows from the settings, the generation and the rollout of the fleet.
 */
#pragma once

#include "model/fleet.h"

static inline bool template_is_current(const struct template *template)
{
        return template->generation == template->fleet->generation;
}

/* Its workers are forked from templates: it is configured so, is to have workers, and its present generation
 * was not refused. */
bool fleet_preloads(const struct fleet *fleet);

/* Why workers of the present generation boot separately; "": they do not. */
const char *fleet_preload_refused(const struct fleet *fleet);

/* There is one, whatever its state. */
bool fleet_has_templates(const struct fleet *fleet);

/* The template of the present generation, whatever its state, but for one that ends; NULL: there is none. */
struct template *fleet_template(const struct fleet *fleet);

/* A free place for another template; NULL: there is none. */
struct template *fleet_template_place(const struct fleet *fleet);

/* One of an older generation that lives on beside it, or in its place; NULL: there is none. */
struct template *fleet_template_kept(const struct fleet *fleet);

/* The one that a new worker is to be forked from, ready; NULL: there is none yet. missing: one that the count
 * lacks is neither active nor starting. */
struct template *fleet_template_to_fork(const struct fleet *fleet, bool missing);

/* Is it to live on? An older one is, while what crashes must come back from the old code. */
bool template_is_kept(const struct template *template);

/* A template of the present generation is due, and there is a place for it. */
bool fleet_wants_template(const struct fleet *fleet);

/* When one that loads is given up; counts only time with Redis up and undoubted, as of a worker. */
usec_t template_boot_deadline(const struct template *template);

/* When one that was told to end is killed. */
usec_t template_kill_at(const struct template *template);

/* How long the fork that was asked for may take in all, as template_observe_fork_waits() counts. */
usec_t fleet_fork_patience(const struct fleet *fleet);

/* What it is expected to grow to, in bytes; 0: nothing is known. */
uint64_t fleet_template_bytes(const struct fleet *fleet);

const char *template_state_name(enum template_state value); /* "loading", "ready", "ending" */
