/* SPDX-License-Identifier: MIT */
/* Settings while they are read: takes sections, keys and values in the file's order, then defaults and
 * checks. */
#pragma once

#include "settings/errors.h"
#include "settings/keys.h"

/* A fleet, or in the first place of the draft the defaults of all, with the line that gave each key. */
struct settings_draft_fleet {
        struct fleet_settings *settings; /* owned, until taken */
        unsigned lines[SETTINGS_KEYS_MAX];
};

struct settings_draft {
        struct settings_surroundings surroundings;
        struct settings *settings; /* owned; complete after settings_draft_finish() */
        unsigned lines[SETTINGS_KEYS_MAX];

        struct settings_draft_fleet *fleets; /* owned; [0]: the section [fleet] */
        size_t n_fleets;

        enum { SECTION_NONE, SECTION_REFUSED, SECTION_KNOWN } section;
        enum settings_scope scope; /* of the section being read */
        size_t fleet;              /* being read, where scope is SETTINGS_FLEET */
};

/* What follows adds what is wrong to errors, by the line of the file, and returns 0 even so; -ENOMEM alone
 * ends the reading. */

int settings_draft_new(const struct settings_surroundings *surroundings, struct settings_draft **ret);
struct settings_draft *settings_draft_free(struct settings_draft *draft);

static inline void settings_draft_free_pointer(struct settings_draft **draft)
{
        *draft = settings_draft_free(*draft);
}
#define _cleanup_settings_draft_ _cleanup_(settings_draft_free_pointer)

/* The section called name begins; it may have begun before. The keys of a refused one are passed over. */
int settings_draft_section(struct settings_draft *draft, const char *name, unsigned line,
                           struct settings_errors *errors);

/* `key = value` stands in the section that was begun last. */
int settings_draft_set(struct settings_draft *draft, const char *name, const char *value, unsigned line,
                       struct settings_errors *errors);

/* All has been read: fills in the defaults and makes the checks across keys. Once only. Bad values have been
 * replaced by defaults, so that draft->settings and draft->fleets can be looked at whatever was wrong. */
int settings_draft_finish(struct settings_draft *draft, struct settings_errors *errors);

/* The line of a key in force for that fleet (NULL: of [sqmgr] or [redis]), else of the fleet's section; 0:
 * none. */
unsigned settings_draft_line(const struct settings_draft *draft, const struct fleet_settings *fleet,
                             enum settings_scope scope, const char *name);

/* The finished settings, from now on the caller's. */
struct settings *settings_draft_take(struct settings_draft *draft);
