/* SPDX-License-Identifier: MIT */
/* Frees, prints, compares and merges finished settings. */
#pragma once

#include "base/macro.h"
#include "settings/keys.h"

struct fleet_settings;
struct settings;
struct traits;

/* Without any value. name: NULL for the defaults of all fleets. Returns NULL where memory is short. */
struct fleet_settings *fleet_settings_new(const char *name);

/* Appends such a fleet to those of the settings. Returns NULL where memory is short. */
struct fleet_settings *settings_add_fleet(struct settings *settings, const char *name);

/* Both take NULL, and return NULL. */
struct settings *settings_free(struct settings *settings);
struct fleet_settings *fleet_settings_free(struct fleet_settings *fleet);

DEFINE_CLEANUP(struct settings *, settings_free)
#define _cleanup_settings_ _cleanup_(settings_free_pointer)

/* All settings in force as a config file has them, passwords as `***`. To be freed; NULL: out of memory. */
char *settings_print(const struct settings *settings);

/* One difference between two settings. Texts are as the file would have them, passwords as `***`, and live as
 * long as the call. */
struct settings_change {
        const char *section; /* "sqmgr", "redis", "fleet:NAME" */
        const char *key;     /* NULL: the fleet as a whole, added (new_text is "added") or removed */
        const char *old_text;
        const char *new_text;
        enum settings_reload reload;
};

/* Calls changed for each difference, in the order of the table of keys, until it returns other than 0.
 * Returns 0, what changed returned, or -ENOMEM. */
int settings_diff(const struct settings *old, const struct settings *new,
                  int (*changed)(const struct settings_change *change, void *userdata), void *userdata);

/* Makes settings of the old ones as a reload of the new ones leaves them. The fleets are the old ones in
 * their order, those that new does not have as they were, but removed; then the added ones. Returns 0 with
 * *ret, to be freed by settings_free(), or -ENOMEM. */
int settings_merge(const struct settings *old, const struct settings *new, struct settings **ret);

/* Drops the i-th fleet, a removed one that nothing refers to any more: should it come back, it is a new one.
 */
void settings_drop_removed(struct settings *settings, size_t i);

/* Adds a fleet of that name that is not configured, for workers that there still are: removed, and otherwise
 * as the defaults have it. Returns it, or NULL where memory is short. */
struct fleet_settings *settings_add_removed(struct settings *settings, const char *name,
                                            const struct traits *traits);

/* Derives argv, before_start_argv, after_exit_argv and environment_list, still NULL, from the texts, which
 * have been checked. Returns 0 or -ENOMEM. */
int fleet_settings_derive(struct fleet_settings *fleet);
