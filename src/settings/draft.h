/* SPDX-License-Identifier: MIT */
/* Settings while they are being read: takes sections, keys and values in file order, then fills in defaults
 * and makes the checks. */
#pragma once

#include "base/macro.h"
#include "settings/value.h"

struct fleet_settings;
struct settings;
struct settings_draft;
struct settings_errors;

/* A longer line of the config file is refused: inih's buffer of 200 bytes, minus a newline and the final
 * NUL. */
#define SETTINGS_LINE_BYTES_MAX 198

/* Creates a draft. errors and warnings must outlive the draft.
 *
 * The calls below add problems to errors and warnings, by line (settings_line()), and still return 0. Only
 * -ENOMEM ends the reading. */

int settings_draft_new(const struct settings_surroundings *surroundings, struct settings_errors *errors,
                       struct settings_errors *warnings, struct settings_draft **ret);
struct settings_draft *settings_draft_free(struct settings_draft *draft);

DEFINE_CLEANUP(struct settings_draft *, settings_draft_free)
#define _cleanup_settings_draft_ _cleanup_(settings_draft_free_pointer)

/* Starts the next file: no section is open. */
void settings_draft_begin_file(struct settings_draft *draft);

/* Opens the section `name`, which may have been opened before. The keys of a refused section are ignored. */
int settings_draft_section(struct settings_draft *draft, const char *name, unsigned line);

/* Opens a section whose name cannot be read, as a refused section. */
void settings_draft_refuse_section(struct settings_draft *draft);

/* Sets a key of the current section: `name = value`. */
int settings_draft_set(struct settings_draft *draft, const char *name, const char *value, unsigned line);

/* Completes the draft: fills in the defaults and makes the checks across keys. Call once. Defaults replace
 * bad values, so the settings are usable whatever the errors. */
int settings_draft_finish(struct settings_draft *draft);

/* Returns the settings, borrowed, after settings_draft_finish(). The caller may add the password of Redis and
 * each fleet's database_url. Fleets are in file order. */
struct settings *settings_draft_settings(const struct settings_draft *draft);

/* Returns the line that sets the key for that fleet (NULL: in [sqmgr] or [redis]), else the line of the
 * fleet's section; 0 if there is none. */
unsigned settings_draft_line(const struct settings_draft *draft, const struct fleet_settings *fleet,
                             const char *name);

/* Moves the finished settings to the caller. The draft can only be freed afterwards. */
struct settings *settings_draft_take(struct settings_draft *draft);
