/* SPDX-License-Identifier: MIT */
/* Decides which template workers are forked from, when another one is loaded, and when one ends. Everything
 * follows from the settings, the generation and the rollout of the fleet. */
#pragma once

#include "model/fleet.h"

static inline bool template_is_current(const struct template *template)
{
        return template->generation == template->fleet->generation;
}

/* Returns true if workers are forked from templates: configured so, with workers to run, and not refused for
 * the current generation. */
bool fleet_preloads(const struct fleet *fleet);

/* Returns true if preloading was given up for the current generation. */
bool fleet_preload_is_refused(const struct fleet *fleet);

/* Returns why workers boot separately: preloading was given up for the current generation, or forks are not
 * possible now. "": workers are forked. Borrowed from the fleet. */
const char *fleet_preload_refused(const struct fleet *fleet);

/* Returns true if the fleet has a template in any state. */
bool fleet_has_templates(const struct fleet *fleet);

/* Returns the template of the current generation in any state except ending; NULL: none. */
struct template *fleet_template(const struct fleet *fleet);

/* Returns true if the workers of the current generation are to be forked, and its template is not ready. */
bool fleet_awaits_template(const struct fleet *fleet);

/* Returns a free slot for another template; NULL: none. */
struct template *fleet_template_place(const struct fleet *fleet);

/* Returns the ready template, in reach, of the generation before the last restart, which may be current
 * again; NULL: none. */
struct template *fleet_template_before(const struct fleet *fleet);

/* Returns the oldest ready template of another generation, if template_is_kept(); NULL: none. */
struct template *fleet_template_kept(const struct fleet *fleet);

/* Returns the ready template to fork a new worker from; NULL: none yet. missing: the fleet has fewer active
 * and starting workers than its count; a template of an older generation is then better than none. */
struct template *fleet_template_to_fork(const struct fleet *fleet, bool missing);

/* Returns false if the template must be asked to end. A template of an older generation is kept during a
 * restart, and after one that failed, for replacing crashed workers with the old code. A lost template is
 * kept until its serving process is known. */
bool template_is_kept(const struct template *template);

/* Returns true if a template of the current generation must be loaded and a slot is free. */
bool fleet_wants_template(const struct fleet *fleet);

/* Returns when a loading template is given up. As for workers, only time with Redis up and without doubt
 * about time counts. */
usec_t template_boot_deadline(const struct template *template);

/* Returns when a template is killed that was asked to end. */
usec_t template_kill_at(const struct template *template);

/* Returns how long a requested fork may take in total, as counted by template_observe_fork_waits(). */
usec_t fleet_fork_patience(const struct fleet *fleet);

/* Returns the expected size of a template in bytes; 0: not known. */
uint64_t fleet_template_bytes(const struct fleet *fleet);

const char *template_state_name(enum template_state value); /* "loading", "ready", "ending" */
