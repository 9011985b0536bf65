/* SPDX-License-Identifier: MIT */
/* Settings while they are read: takes sections, keys and values in the file's order, then defaults and
 * checks. */
#pragma once

#include "base/macro.h"
#include "settings/keys.h"

struct fleet_settings;
struct settings;
struct settings_draft;
struct settings_errors;
struct settings_surroundings;

/* What follows adds what is wrong to errors, which must outlive the draft, by the line of the file
 * (settings_line()), and returns 0 even so; -ENOMEM alone ends the reading. */

int settings_draft_new(const struct settings_surroundings *surroundings, struct settings_errors *errors,
                       struct settings_draft **ret);
struct settings_draft *settings_draft_free(struct settings_draft *draft);

DEFINE_CLEANUP(struct settings_draft *, settings_draft_free)
#define _cleanup_settings_draft_ _cleanup_(settings_draft_free_pointer)

/* Another file begins: no section of it has. */
void settings_draft_begin_file(struct settings_draft *draft);

/* The section called name begins; it may have begun before. The keys of a refused one are passed over. */
int settings_draft_section(struct settings_draft *draft, const char *name, unsigned line);

/* The section that begins cannot be named: as a refused one. */
void settings_draft_refuse_section(struct settings_draft *draft);

/* `key = value` stands in the section that was begun last. */
int settings_draft_set(struct settings_draft *draft, const char *name, const char *value, unsigned line);

/* All has been read: fills in the defaults and makes the checks across keys. Once only. Bad values have been
 * replaced by defaults, so that what was read can be looked at whatever was wrong. */
int settings_draft_finish(struct settings_draft *draft);

/* What was read, after settings_draft_finish(): its password and the rollout_key of a fleet may be added. The
 * fleets stand in the order of the file. */
struct settings *settings_draft_settings(const struct settings_draft *draft);

/* The line of a key in force for that fleet (NULL: of [sqmgr] or [redis]), else of the fleet's section; 0:
 * none. */
unsigned settings_draft_line(const struct settings_draft *draft, const struct fleet_settings *fleet,
                             const char *name);

/* The finished settings, from now on the caller's. The draft can only be freed afterwards. */
struct settings *settings_draft_take(struct settings_draft *draft);
