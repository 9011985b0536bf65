/* SPDX-License-Identifier: MIT */
/* Settings from a text, for tests. */
#pragma once

#include "frameworks/sidekiq/format.h"
#include "frameworks/table.h"
#include "settings/draft.h"
#include "settings/operations.h"
#include "settings/settings.h"

#define GIB (UINT64_C(1) << 30)

/* Those of root, on a machine of 8 GiB. */
extern const struct settings_surroundings root_surroundings;

/* Reads lines of `[section]` and `key=value`, counted from 1. Returns the settings where nothing is wrong
 * with them; else *ret_errors says what is. Both are to be freed. */
struct settings *read_settings(const struct settings_surroundings *surroundings, const char *text,
                               char **ret_errors);
/* The same; *ret_warnings is a line for each warning, to be freed. */
struct settings *read_settings_warned(const struct settings_surroundings *surroundings, const char *text,
                                      char **ret_errors, char **ret_warnings);
/* The same for root, of a text that nothing is wrong with. */
struct settings *read_good(const char *text);

/* Adds what is wrong with the text, in which something is, to a golden text (golden.h). */
void add_refused_settings(const struct settings_surroundings *surroundings, const char *text,
                          const char *what);

#define NOTES_MAX 2048
/* For settings_diff(): appends `section key: old -> new` and a mark to userdata, a text of NOTES_MAX bytes.
 */
int note_change(const struct settings_change *change, void *userdata);
/* How many changes note_change() has appended. */
unsigned count_changes(const char *text);
