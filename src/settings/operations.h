/* SPDX-License-Identifier: MIT */
/* Frees, prints, compares and merges finished settings. */
#pragma once

#include "base/macro.h"
#include "settings/value.h"

struct fleet_settings;
struct settings;

/* Creates a fleet with all values unset; name NULL is for the defaults of all fleets. The caller owns the
 * result; NULL if memory is short. */
struct fleet_settings *fleet_settings_new(const char *name);

/* Appends a new fleet to the settings, which own the result. Returns NULL if memory is short. */
struct fleet_settings *settings_add_fleet(struct settings *settings, const char *name);

/* Accept NULL; return NULL. */
struct settings *settings_free(struct settings *settings);
struct fleet_settings *fleet_settings_free(struct fleet_settings *fleet);

DEFINE_CLEANUP(struct settings *, settings_free)
#define _cleanup_settings_ _cleanup_(settings_free_pointer)

/* Returns all effective settings in config file format, passwords as `***`. The caller frees the result; NULL
 * if memory is short. */
char *settings_print(const struct settings *settings);

/* A difference between two settings. Texts are in config file format, passwords as `***`, and valid during
 * the call. */
struct settings_change {
        const char *section; /* "sqmgr", "redis", "fleet:NAME" */
        const char *key;     /* NULL: the whole fleet was added or removed */
        bool added;          /* without a key: it was added */
        const char *old_text;
        const char *new_text;
        enum settings_reload reload;
};

/* Calls changed() for each difference, in the order of the table of keys, until changed() returns nonzero.
 * Returns 0, the nonzero result of changed(), or -ENOMEM. */
int settings_diff(const struct settings *old, const struct settings *new,
                  int (*changed)(const struct settings_change *change, void *userdata), void *userdata);

/* Returns the settings after a reload from old to new. The fleets of old come first, in their order; a fleet
 * missing from new keeps its values and is marked removed. Added fleets follow. Returns 0 with *ret, freed by
 * settings_free(), or -ENOMEM. */
int settings_merge(const struct settings *old, const struct settings *new, struct settings **ret);

/* Drops the i-th fleet, which must be removed and unreferenced. A fleet of the same name added later is a new
 * fleet. */
void settings_drop_removed(struct settings *settings, size_t i);

/* Adds a fleet that is not configured but still has workers: marked removed, with default values. The
 * settings own the result; NULL if memory is short. */
struct fleet_settings *settings_add_removed(struct settings *settings, const char *name,
                                            const struct traits *traits);

/* Derives argv, before_start_argv, after_exit_argv, environment_list and launch_hash. The lists must still be
 * NULL, and the texts must have been checked. Returns 0 or -ENOMEM. */
int fleet_settings_derive(struct fleet_settings *fleet);
